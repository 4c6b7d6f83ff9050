/* training_choices.c - which algorithm carries out a collective, in each of its groups. */
#include <string.h>

#include "sim/collective/kept.h"
#include "sim/collective/seats.h"
#include "sim/engine/training_instances.h"

/* Groups that go on at once, of each pair where pairs are drawn: those of all lockstep groups that come together. */
static dl_digits beside(const struct dl_step *s, const struct dl_comm *comm)
{
    const dl_digits together = s->in_lockstep | (comm->channel == DL_CHANNEL_REPLICAS ? s->replicas : 0);
    return together & ~comm->members.digits;
}

/* Two stages are counted from the first of all. */
static uint32_t first_rank(const struct dl_training *t, const struct communicator *at, const struct dl_comm *comm)
{
    const struct lockstep_group *const c = &t->lockstep_groups[at->first];
    return comm->members.is_pair ? t->lockstep_groups[c->replica].first_rank : c->first_rank;
}

static struct dl_seats seats_of(const struct dl_training *t)
{
    const struct dl_training_request *const q = &t->request;
    return (struct dl_seats){.ranks = q->step.ranks,
                             .device_of_rank = q->device_of_rank,
                             .n_servers = q->step.n_servers,
                             .topology = q->estimator->topology};
}

/* Who they are in the iteration: those of the collective, or of the k-th pair. */
static struct dl_members members_of(const struct dl_comm *comm, uint32_t (*pairs)[2], uint32_t k)
{
    if (!pairs) return comm->members;
    return (struct dl_members){.digits = comm->members.digits, .is_pair = true, .pair = {pairs[k][0], pairs[k][1]}};
}

static uint32_t (*pairs_of(const struct dl_training *t, const struct chosen *c))[2]
{
    return c->comm.members.are_drawn ? dl_training_pairs(t, c->comm.members.digits, c->iteration) : NULL;
}

/* Pair by pair, if pairs are drawn. */
static const struct dl_group *list_groups(struct dl_training *t, const struct communicator *at, const struct chosen *c)
{
    const struct dl_training_request *const q = &t->request;
    const struct dl_seats seats = seats_of(t);
    const uint32_t n_pairs = dl_training_n_pairs(t, &c->comm), of_pair = c->n_groups / n_pairs;
    struct dl_group *const groups = dl_arena_alloc(q->arena, c->n_groups * sizeof *groups);
    uint32_t(*const pairs)[2] = pairs_of(t, c);
    for (uint32_t k = 0; k < n_pairs; k++) {
        const struct dl_members members = members_of(&c->comm, pairs, k);
        const struct dl_group *const some =
            dl_seats_groups(&seats, &members, beside(&q->step, &c->comm), first_rank(t, at, &c->comm), q->arena);
        memcpy(&groups[k * of_pair], some, of_pair * sizeof *groups);
    }
    dl_free(pairs);
    return groups;
}

static const struct dl_group *groups_for(struct dl_training *t, const struct communicator *at, const struct chosen *c)
{
    for (size_t i = 0; i < at->n_chosen; i++)
        if (dl_members_equal(&at->chosen[i].comm.members, &c->comm.members) && at->chosen[i].iteration == c->iteration)
            return at->chosen[i].groups;
    return list_groups(t, at, c);
}

/* Of any of its groups. */
static struct dl_wish wish_of(const struct dl_training *t, const struct chosen *c)
{
    const bool is_among_replicas = c->comm.channel == DL_CHANNEL_REPLICAS;
    return (struct dl_wish){.op = c->comm.op,
                            .algorithm = c->comm.algorithm ? c->comm.algorithm : "auto",
                            .protocol = "auto",
                            .bytes = c->comm.bytes,
                            .back_fraction = c->comm.back_fraction,
                            .servers = is_among_replicas ? t->request.step.n_servers : 0,
                            .payload = c->comm.payload,
                            .n_alike = is_among_replicas ? c->n_groups : 0};
}

/* What is chosen on one replica is of few groups, and stays with the estimator for the next step. */
static void choose(struct dl_training *t, const struct dl_wish *wish, struct dl_choice *out)
{
    struct dl_estimator *const e = t->request.estimator;
    if (!t->request.one_replica) {
        dl_choose(e, wish, t->request.arena, out, t->err);
        return;
    }
    const struct dl_together *const kept = dl_choose_together(e, wish, wish->group->device, wish->group->n, 1, t->err);
    if (kept) *out = kept->choices[0];
}

static void choose_each(struct dl_training *t, const struct communicator *at, struct chosen *c)
{
    struct dl_wish wish = wish_of(t, c);
    c->groups = groups_for(t, at, c);
    c->choices = c->own = dl_alloc(c->n_groups * sizeof *c->own);
    for (uint32_t i = 0; i < c->n_groups && !t->err->status; i++) {
        wish.group = &c->groups[i];
        choose(t, &wish, &c->own[i]);
    }
}

/* They are the same for all stages. */
static const uint32_t *offsets_of(struct dl_training *t, const struct dl_members *members, dl_digits others)
{
    struct offsets *const kept = &t->offsets;
    if (kept->ranks && kept->beside == others && dl_members_equal(&kept->members, members)) return kept->ranks;
    dl_free(kept->ranks);
    *kept = (struct offsets){*members, others, dl_seats_offsets(t->request.step.ranks, members, others)};
    return kept->ranks;
}

/* Pair by pair, if pairs are drawn. */
static uint32_t *list_devices(struct dl_training *t, const struct communicator *at, const struct chosen *c)
{
    const struct dl_seats seats = seats_of(t);
    const uint32_t n_pairs = dl_training_n_pairs(t, &c->comm),
                   n_members = dl_members_count(seats.ranks, &c->comm.members);
    const uint32_t n_groups = c->n_groups / n_pairs, rank = first_rank(t, at, &c->comm);
    const size_t of_pair = (size_t)n_groups * (n_members + seats.n_servers);
    uint32_t *const devices = dl_alloc(n_pairs * of_pair * sizeof *devices);
    uint32_t(*const pairs)[2] = pairs_of(t, c);
    for (uint32_t k = 0; k < n_pairs; k++) {
        const struct dl_members members = members_of(&c->comm, pairs, k);
        const uint32_t *const offsets = offsets_of(t, &members, beside(&t->request.step, &c->comm));
        dl_seats_devices(&seats, offsets, n_groups, n_members, rank, devices + k * of_pair);
    }
    dl_free(pairs);
    return devices;
}

/* Nothing of it is played: the same groups of another step take as long. */
static void take_timed(struct dl_training *t, const struct communicator *at, struct chosen *c)
{
    const struct dl_wish wish = wish_of(t, c);
    const uint32_t n_ranks = dl_members_count(t->request.step.ranks, &c->comm.members);
    uint32_t *const devices = list_devices(t, at, c);
    const struct dl_together *const together =
        dl_choose_together(t->request.estimator, &wish, devices, n_ranks, c->n_groups, t->err);
    dl_free(devices);
    if (!together) return;
    c->groups = together->groups;
    c->choices = together->choices;
    c->estimated_s = together->time_s;
    c->is_timed = true;
}

/* Without a simulation: the lanes of an exchange share links in its estimate, and its groups share theirs. */
void dl_training_time(struct dl_training *t, struct chosen *c)
{
    dl_choices_together_s(t->request.estimator, c->choices, c->n_groups, &c->estimated_s, t->err);
    c->is_timed = true;
}

static struct chosen new_kind(const struct dl_training *t, const struct dl_comm *comm, uint32_t iteration)
{
    const dl_digits others = beside(&t->request.step, comm);
    const struct instances *const instances = dl_training_instances(t, comm);
    return (struct chosen){.comm = *comm,
                           .iteration = iteration,
                           .n_groups = dl_ranks_count(t->request.step.ranks, others) * dl_training_n_pairs(t, comm),
                           .by_instance = instances ? dl_training_groups_by_instance(t, comm, others) : NULL,
                           .n_instances = instances ? instances->n : 1};
}

/* Blocks are equal, so there are few kinds of collectives. */
struct chosen *dl_training_chosen(struct dl_training *t, struct communicator *at, const struct dl_comm *comm,
                                  uint32_t iteration)
{
    const uint32_t of_iteration = comm->members.are_drawn ? iteration : 0;
    for (size_t i = 0; i < at->n_chosen; i++)
        if (dl_comm_alike(&at->chosen[i].comm, comm) && at->chosen[i].iteration == of_iteration) return &at->chosen[i];
    struct chosen made = new_kind(t, comm, of_iteration);
    if (t->request.one_replica && comm->channel == DL_CHANNEL_REPLICAS)
        take_timed(t, at, &made);
    else
        choose_each(t, at, &made);
    DL_GROW(at->chosen, at->n_chosen, at->chosen_capacity);
    at->chosen[at->n_chosen] = made;
    return &at->chosen[at->n_chosen++];
}

bool dl_training_choice(const struct dl_training *t, uint32_t stage, const struct dl_comm *call, struct dl_choice *out)
{
    const struct communicator *const at = dl_training_replicas(t, stage);
    size_t i = 0;
    while (i < at->n_chosen && !dl_comm_alike(&at->chosen[i].comm, call)) i++;
    if (i == at->n_chosen || call->channel != DL_CHANNEL_REPLICAS || !at->chosen[i].choices) return false;
    *out = at->chosen[i].choices[0];
    return true;
}
