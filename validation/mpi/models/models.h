/* models.h - the kinds of models that are trained, and what their files share. */
#ifndef DL_MPI_MODELS_H
#define DL_MPI_MODELS_H

#include "validation/mpi/layers/units.h"

/* Whether this rank's stage holds the layer. */
bool dl_is_here(const struct dl_train *t, size_t layer);

/* A sample of one of n_classes, each of which has a prototype to which noise is added. */
void dl_sample_class(const struct dl_train *t, uint64_t sample, dl_real *input, uint32_t *target);
/* Tokens each of which follows from the one before, most of the time. */
void dl_sample_tokens(const struct dl_train *t, uint64_t sample, dl_real *input, uint32_t *target);

#endif
