/* training_choices.c - which algorithm carries out a collective, in each of its groups. */
#include "sim/collective/kept.h"
#include "sim/collective/seats.h"
#include "sim/engine/training_parts.h"

/* Groups that go on at once: those of all lockstep groups that come together. */
static dl_digits beside(const struct dl_step *s, const struct dl_comm *comm)
{
    const dl_digits together = s->in_lockstep | (comm->channel == DL_CHANNEL_REPLICAS ? s->replicas : 0);
    return together & ~comm->members.digits;
}

/* Two stages are counted from the first of all. */
static uint32_t first_rank(const struct dl_training *t, const struct communicator *at, const struct dl_comm *comm)
{
    const struct lockstep_group *const c = &t->lockstep_groups[at->first];
    return dl_step_rank(&t->request.step, comm->members.is_pair ? 0 : c->stage, c->replica);
}

static struct dl_seats seats_of(const struct dl_training *t)
{
    const struct dl_training_request *const q = &t->request;
    return (struct dl_seats){.ranks = q->step.ranks,
                             .device_of_rank = q->device_of_rank,
                             .n_servers = q->step.n_servers,
                             .topology = q->estimator->topology};
}

static const struct dl_group *groups_for(struct dl_training *t, const struct communicator *at,
                                         const struct dl_comm *comm)
{
    const struct dl_training_request *const q = &t->request;
    const struct dl_seats seats = seats_of(t);
    for (size_t i = 0; i < at->n_chosen; i++)
        if (dl_members_equal(&at->chosen[i].comm.members, &comm->members)) return at->chosen[i].groups;
    return dl_seats_groups(&seats, &comm->members, beside(&q->step, comm), first_rank(t, at, comm), q->arena);
}

/* Of any of its groups. */
static struct dl_wish wish_of(const struct dl_training *t, const struct chosen *c)
{
    const bool is_among_replicas = c->comm.channel == DL_CHANNEL_REPLICAS;
    return (struct dl_wish){.op = c->comm.op,
                            .algorithm = c->comm.algorithm ? c->comm.algorithm : "auto",
                            .protocol = "auto",
                            .bytes = c->comm.bytes,
                            .servers = is_among_replicas ? t->request.step.n_servers : 0,
                            .payload = c->comm.payload,
                            .n_alike = is_among_replicas ? c->n_groups : 0};
}

static void choose_each(struct dl_training *t, const struct communicator *at, struct chosen *c)
{
    struct dl_wish wish = wish_of(t, c);
    c->groups = groups_for(t, at, &c->comm);
    c->choices = c->own = dl_alloc(c->n_groups * sizeof *c->own);
    for (uint32_t i = 0; i < c->n_groups && !t->err->status; i++) {
        wish.group = &c->groups[i];
        dl_choose(t->request.estimator, &wish, t->request.arena, &c->own[i], t->err);
    }
}

/* Nothing of it is played: the same groups of another step take as long. */
static void take_timed(struct dl_training *t, const struct communicator *at, struct chosen *c)
{
    const struct dl_seats seats = seats_of(t);
    const struct dl_members *const members = &c->comm.members;
    const struct dl_wish wish = wish_of(t, c);
    uint32_t *const devices =
        dl_seats_devices(&seats, members, beside(&t->request.step, &c->comm), first_rank(t, at, &c->comm));
    const struct dl_together *const together = dl_choose_together(
        t->request.estimator, &wish, devices, dl_members_count(seats.ranks, members), c->n_groups, t->err);
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

/* Blocks are equal, so there are few kinds of collectives. */
struct chosen *dl_training_chosen(struct dl_training *t, struct communicator *at, const struct dl_comm *comm)
{
    for (size_t i = 0; i < at->n_chosen; i++)
        if (dl_comm_alike(&at->chosen[i].comm, comm)) return &at->chosen[i];
    struct chosen made = {.comm = *comm,
                          .n_groups = dl_ranks_count(t->request.step.ranks, beside(&t->request.step, comm)),
                          .n_instances = 1};
    const struct instances *const instances = dl_training_instances(t, comm);
    if (instances) made.by_instance = dl_training_groups_by_instance(t, comm, beside(&t->request.step, comm));
    if (instances) made.n_instances = instances->n;
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
