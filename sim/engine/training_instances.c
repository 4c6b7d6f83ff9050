/* training_instances.c - replicas that come together to a collective, where these are not all of a stage: the instances
 * of a group need not wait for each other. */
#include "sim/engine/training_parts.h"

/* The digits of replicas that its members differ in. */
static dl_digits along(const struct dl_step *s, const struct dl_comm *comm)
{
    dl_digits digits = 0;
    for (uint32_t i = 0; i < s->ranks->n_digits; i++)
        if (s->ranks->digits[i].n > 1) digits |= 1u << i;
    return digits & s->replicas & comm->members.digits;
}

static uint32_t rank_of_replica(const struct dl_step *s, uint32_t replica)
{
    return dl_ranks_offset(s->ranks, s->replicas, replica);
}

static void open_instances(const struct dl_training *t, struct instances *i, dl_digits digits)
{
    const struct dl_step *const s = &t->request.step;
    *i = (struct instances){.along = digits, .size = dl_ranks_count(s->ranks, digits)};
    i->n = t->n_replicas / i->size;
    i->of_replica = dl_alloc(t->n_replicas * sizeof *i->of_replica);
    i->replicas = dl_alloc(t->n_replicas * sizeof *i->replicas);
    for (uint32_t replica = 0; replica < t->n_replicas; replica++) {
        const uint32_t rank = rank_of_replica(s, replica),
                       instance = dl_ranks_index(s->ranks, s->replicas & ~digits, rank);
        i->of_replica[replica] = instance;
        i->replicas[instance * i->size + dl_ranks_index(s->ranks, digits, rank)] = replica;
    }
}

/* The kind for these digits, + 1. */
static uint32_t kind_for(struct dl_training *t, dl_digits digits, size_t *capacity)
{
    uint32_t kind = 0;
    while (kind < t->n_instance_kinds && t->instances[kind].along != digits) kind++;
    if (kind < t->n_instance_kinds) return kind + 1;
    DL_GROW(t->instances, kind, *capacity);
    open_instances(t, &t->instances[kind], digits);
    t->instances[kind].first = t->n_stages + dl_training_n_instances(t);
    return ++t->n_instance_kinds;
}

void dl_training_open_instances(struct dl_training *t)
{
    const struct dl_step *const s = &t->request.step;
    size_t capacity = 0;
    t->instances_of = dl_alloc(s->n_calls * sizeof *t->instances_of);
    for (size_t i = 0; i < s->n_calls && t->n_played > 1; i++) {
        const dl_digits digits = along(s, &s->calls[i]);
        if (s->calls[i].channel == DL_CHANNEL_REPLICAS && dl_ranks_count(s->ranks, digits) < t->n_played)
            t->instances_of[i] = kind_for(t, digits, &capacity);
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
    return last->first + (size_t)t->n_stages * last->n - t->n_stages;
}

const struct instances *dl_training_instances(const struct dl_training *t, const struct dl_comm *comm)
{
    const uint32_t kind = t->instances_of[comm - t->request.step.calls];
    return kind ? &t->instances[kind - 1] : NULL;
}

uint32_t *dl_training_groups_by_instance(const struct dl_training *t, const struct dl_comm *comm, dl_digits beside)
{
    const struct dl_step *const s = &t->request.step;
    const struct instances *const instances = dl_training_instances(t, comm);
    const uint32_t n = dl_ranks_count(s->ranks, beside), of_each = n / instances->n;
    uint32_t *const groups = dl_alloc(n * sizeof *groups);
    uint32_t *const n_found = dl_alloc(instances->n * sizeof *n_found);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t rank = dl_ranks_offset(s->ranks, beside, i),
                       instance = instances->of_replica[dl_ranks_index(s->ranks, s->replicas, rank)];
        groups[instance * of_each + n_found[instance]++] = i;
    }
    dl_free(n_found);
    return groups;
}
