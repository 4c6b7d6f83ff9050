/* training_instances.h - which replicas come together to a collective, where these are not all of a stage: the
 * instances of a group need not wait for each other. */
#ifndef DL_ENGINE_TRAINING_INSTANCES_H
#define DL_ENGINE_TRAINING_INSTANCES_H

#include "sim/engine/training_parts.h"

/* One for each value of the digits of replicas that the members agree in; or for each pair, where pairs are drawn for
 * every iteration. */
struct instances {
    dl_digits along; /* the digits that they differ in */
    bool are_drawn;
    uint32_t n, size;     /* in an iteration */
    uint32_t n_times;     /* iterations that differ */
    uint32_t *of_replica; /* the one that it is in, time by time */
    uint32_t *replicas;   /* instance by instance, time by time */
    size_t first;         /* of their communicators, time by time, stage by stage */
};

void dl_training_open_instances(struct dl_training *t);
void dl_training_close_instances(struct dl_training *t);
/* Of the communicators of all kinds, times and stages. */
size_t dl_training_n_instances(const struct dl_training *t);
/* NULL: all replicas come to it. */
const struct instances *dl_training_instances(const struct dl_training *t, const struct dl_comm *comm);
/* The pairs that meet in the iteration, n / 2 of all that differ in the digits; free with dl_free. */
uint32_t (*dl_training_pairs(const struct dl_training *t, dl_digits digits, uint32_t iteration))[2];
/* How many these are; 1: none are drawn. */
uint32_t dl_training_n_pairs(const struct dl_training *t, const struct dl_comm *comm);
/* The groups of a collective instance by instance; they are listed pair by pair, and beside are the digits that those
 * of a pair differ in. */
uint32_t *dl_training_groups_by_instance(const struct dl_training *t, const struct dl_comm *comm, dl_digits beside);

#endif
