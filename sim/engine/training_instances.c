#include "sim/engine/training_instances.h"

#include "sim/program/peers.h"

/* The digits of replicas that its members differ in. */
static dl_digits along(const struct dl_step *s, const struct dl_members *members)
{
    dl_digits digits = 0;
    for (uint32_t i = 0; i < s->ranks->n_digits; i++)
        if (s->ranks->digits[i].n > 1) digits |= 1u << i;
    return digits & s->replicas & members->digits;
}

uint32_t (*dl_training_pairs(const struct dl_training *t, dl_digits digits, uint32_t iteration))[2]
{
    const uint32_t n = dl_ranks_count(t->request.step.ranks, digits);
    uint32_t *const peer = dl_alloc(n * sizeof *peer), (*const pairs)[2] = dl_alloc(n / 2 * sizeof *pairs);
    dl_peers_draw(n, iteration, t->request.seed, peer);
    dl_peers_pairs(n, peer, pairs);
    dl_free(peer);
    return pairs;
}

uint32_t dl_training_n_pairs(const struct dl_training *t, const struct dl_comm *comm)
{
    return comm->members.are_drawn ? dl_ranks_count(t->request.step.ranks, comm->members.digits) / 2 : 1;
}

/* The place of each value of the digits among those that come together, instance by instance. */
static uint32_t *places_at(const struct dl_training *t, const struct instances *of, uint32_t time)
{
    const uint32_t n = dl_ranks_count(t->request.step.ranks, of->along);
    uint32_t *const places = dl_alloc(n * sizeof *places);
    uint32_t(*const pairs)[2] = of->are_drawn ? dl_training_pairs(t, of->along, time) : NULL;
    for (uint32_t i = 0; i < n; i++) places[pairs ? pairs[i / 2][i % 2] : i] = i;
    dl_free(pairs);
    return places;
}

static void list_instances(const struct dl_training *t, struct instances *of, uint32_t time)
{
    const struct dl_step *const s = &t->request.step;
    uint32_t *const places = places_at(t, of, time);
    const uint32_t n = dl_ranks_count(s->ranks, of->along);
    for (uint32_t replica = 0; replica < t->n_replicas; replica++) {
        const uint32_t rank = dl_ranks_offset(s->ranks, s->replicas, replica),
                       other = dl_ranks_index(s->ranks, s->replicas & ~of->along, rank),
                       place = other * n + places[dl_ranks_index(s->ranks, of->along, rank)];
        of->of_replica[time * t->n_replicas + replica] = place / of->size;
        of->replicas[time * t->n_replicas + place] = replica;
    }
    dl_free(places);
}

/* Who goes on by itself comes to one iteration more than is asked for. */
static void open_instances(const struct dl_training *t, struct instances *of, const struct dl_members *members)
{
    const struct dl_step *const s = &t->request.step;
    const dl_digits digits = along(s, members);
    *of = (struct instances){.along = digits,
                             .are_drawn = members->are_drawn,
                             .size = members->are_drawn ? 2 : dl_ranks_count(s->ranks, digits),
                             .n_times = members->are_drawn ? t->n_iterations + 1 : 1};
    const size_t n = (size_t)of->n_times * t->n_replicas;
    of->n = t->n_replicas / of->size;
    of->of_replica = dl_alloc(n * sizeof *of->of_replica);
    of->replicas = dl_alloc(n * sizeof *of->replicas);
    for (uint32_t time = 0; time < of->n_times; time++) list_instances(t, of, time);
}

static bool is_for(const struct instances *i, const struct dl_step *s, const struct dl_members *members)
{
    return i->along == along(s, members) && i->are_drawn == members->are_drawn;
}

/* The kind for these, + 1. */
static uint32_t kind_for(struct dl_training *t, const struct dl_members *members, size_t *capacity)
{
    uint32_t kind = 0;
    while (kind < t->n_instance_kinds && !is_for(&t->instances[kind], &t->request.step, members)) kind++;
    if (kind < t->n_instance_kinds) return kind + 1;
    DL_GROW(t->instances, kind, *capacity);
    open_instances(t, &t->instances[kind], members);
    t->instances[kind].first = t->n_stages + dl_training_n_instances(t);
    return ++t->n_instance_kinds;
}

void dl_training_open_instances(struct dl_training *t)
{
    const struct dl_step *const s = &t->request.step;
    size_t capacity = 0;
    t->instances_of = dl_alloc(s->n_calls * sizeof *t->instances_of);
    for (size_t i = 0; i < s->n_calls && t->n_played > 1; i++) {
        const struct dl_members *const members = &s->calls[i].members;
        const bool of_all = !members->are_drawn && dl_ranks_count(s->ranks, along(s, members)) == t->n_played;
        if (s->calls[i].channel == DL_CHANNEL_REPLICAS && !of_all) t->instances_of[i] = kind_for(t, members, &capacity);
    }
}

void dl_training_close_instances(struct dl_training *t)
{
    for (uint32_t i = 0; i < t->n_instance_kinds; i++) {
        dl_free(t->instances[i].of_replica);
        dl_free(t->instances[i].replicas);
    }
    dl_free(t->instances);
    dl_free(t->instances_of);
}

size_t dl_training_n_instances(const struct dl_training *t)
{
    if (!t->n_instance_kinds) return 0;
    const struct instances *const last = &t->instances[t->n_instance_kinds - 1];
    return last->first + (size_t)last->n_times * t->n_stages * last->n - t->n_stages;
}

const struct instances *dl_training_instances(const struct dl_training *t, const struct dl_comm *comm)
{
    const uint32_t kind = t->instances_of[comm - t->request.step.calls];
    return kind ? &t->instances[kind - 1] : NULL;
}

uint32_t *dl_training_groups_by_instance(const struct dl_training *t, const struct dl_comm *comm, dl_digits beside)
{
    const struct dl_step *const s = &t->request.step;
    const struct instances *const of = dl_training_instances(t, comm);
    const uint32_t n_beside = dl_ranks_count(s->ranks, beside), n_pairs = dl_training_n_pairs(t, comm),
                   of_each = n_beside * n_pairs / of->n;
    uint32_t *const groups = dl_alloc((size_t)n_beside * n_pairs * sizeof *groups);
    uint32_t *const n_found = dl_alloc(of->n * sizeof *n_found);
    for (uint32_t i = 0; i < n_beside * n_pairs; i++) {
        const uint32_t rank = dl_ranks_offset(s->ranks, beside, i % n_beside),
                       other = dl_ranks_index(s->ranks, s->replicas & ~of->along, rank),
                       instance = other * n_pairs + i / n_beside;
        groups[instance * of_each + n_found[instance]++] = i;
    }
    dl_free(n_found);
    return groups;
}
