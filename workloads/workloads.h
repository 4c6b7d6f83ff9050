/* workloads.h - the kinds of workloads, one file each, and what their builders share. */
#ifndef DL_WORKLOADS_WORKLOADS_H
#define DL_WORKLOADS_WORKLOADS_H

#include "workloads/workload.h"

extern const struct dl_workload_kind dl_workload_transformer;
extern const struct dl_workload_kind dl_workload_convnet;
extern const struct dl_workload_kind dl_workload_mlp;

/* What saved.*_bytes are counted in. */
#define DL_ACTIVATION_BYTES 2.0
#define DL_MASK_BYTES 1.0

/* Forward flop of a layer, without the padding of experts, which is a factor on their work. */
double dl_layer_model_flop(const struct dl_layer *layer, double expert_padding, enum dl_flop_count count);

/* Flop of gradients that nobody needs: of frozen weights, and of what is given to kernels below all adapters. */
double dl_layer_unneeded_flop(const struct dl_layer *layer, enum dl_flop_count count);

/* Set model_flop_per_sample of a model without attention: all work forward and backward, as it is listed. */
void dl_model_set_flop(struct dl_model *model);

/* Refuse a value of the document, naming its key. */
enum dl_status dl_refuse(const struct dl_build *build, const char *key, struct dl_error *err, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
