/* footprint.h - what a block of a program does to memory, from where it begins.
 *
 * A block is reduced once: to its fullest moment and to what it leaves. It is reduced anew only if other tensors that
 * outlive micro-batches are there than the last time, as when the first backward makes the gradients. */
#ifndef DL_MEMORY_FOOTPRINT_H
#define DL_MEMORY_FOOTPRINT_H

#include "sim/program/program.h"

struct dl_moment {
    double bytes[DL_N_MEMORY_CATEGORIES];
};
/* On the device. */
double dl_moment_total(const struct dl_moment *m);

struct dl_memory_footprint {
    struct dl_moment fullest, left; /* more than at its begin */
    double most_on_host;
};

/* What is there of a stage, by layer and tensor. */
struct dl_live {
    uint32_t first_layer, n_layers;
    double *bytes;    /* of tensors of micro-batches: as large as each is, once it was made */
    uint32_t version; /* another one when other tensors than before are there from block to block */
};
void dl_live_init(struct dl_live *live, const struct dl_program *program);
void dl_live_release(struct dl_live *live);

struct dl_memory_footprint dl_memory_footprint(const struct dl_memory_ops *ops, struct dl_live *live);

#endif
