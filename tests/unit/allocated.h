/* allocated.h - what the programs of a session allocate for a tensor of a layer. */
#ifndef DL_TESTS_ALLOCATED_H
#define DL_TESTS_ALLOCATED_H

#include <math.h>

#include "sim/session/session.h"

static inline double allocated_in(const struct dl_memory_ops *ops, enum dl_tensor_kind tensor, size_t layer)
{
    double bytes = 0;
    for (size_t i = 0; i < ops->n; i++)
        if (!ops->items[i].frees && ops->items[i].tensor == tensor && dl_memory_layer(ops, i) == layer)
            bytes = fmax(bytes, ops->items[i].bytes);
    return bytes;
}

/* The most of it, in whichever block of whichever stage. */
static inline double allocated(const struct dl_session *t, enum dl_tensor_kind tensor, size_t layer)
{
    double bytes = 0;
    for (uint32_t stage = 0; stage < t->lowered.schedule.stages; stage++) {
        const struct dl_program *const p = &t->lowered.programs[stage];
        bytes = fmax(bytes, allocated_in(&p->begin, tensor, layer));
        for (uint32_t i = 0; i < p->n_chunks * DL_N_TEMPLATES; i++)
            bytes = fmax(bytes, allocated_in(&p->items[i]->memory, tensor, layer));
    }
    return bytes;
}

/* On the device and on its host. */
static inline double saved_bytes(const struct dl_session *t, size_t layer)
{
    return allocated(t, DL_TENSOR_SAVED, layer) + allocated(t, DL_TENSOR_SCORES, layer) +
           allocated(t, DL_TENSOR_HOST_SAVED, layer);
}

/* Gradients of activations while the backward goes on: beside the largest product. */
static inline double at_work_bytes_of(const struct dl_session *t, size_t layer)
{
    return allocated(t, DL_TENSOR_PASSING, layer) + allocated(t, DL_TENSOR_WORKING, layer);
}

#endif
