/* zero_parts.h - what the files of ZeRO share: its options as the software runs them, and how parameters that it cuts
 * come to those who need them. */
#ifndef DL_STRATEGIES_ZERO_PARTS_H
#define DL_STRATEGIES_ZERO_PARTS_H

#include "strategies/zero_modules.h"

struct dl_zero_options {
    int64_t stage, prefetch, shard_ways, secondary_ways, gather_bits, scatter_bits; /* prefetch -1, others 0: absent */
    double live_parameters, reuse_parameters, bucket_parameters;                    /* 0: absent */
    bool reshard, overlap;
};

/* Which parameters: of experts or others; and among whom they are cut: those who share the second copy, or all. */
struct dl_zero_set {
    bool of_experts, is_near;
};
static inline uint32_t dl_zero_shards(const struct dl_setting *s, struct dl_zero_set set)
{
    return set.is_near ? dl_secondary_shards(s, set.of_experts) : dl_shards(s, set.of_experts);
}

/* Matrices are gathered one by one; or layers, so many before the one at work is done. */
bool dl_zero_gathers_modules(const struct dl_zero_options *o, const struct dl_setting *s);
uint32_t dl_zero_gathers_ahead(const struct dl_zero_options *o, const struct dl_setting *s);
struct dl_module_rules dl_zero_rules(const struct dl_zero_options *o, const struct dl_event *ev,
                                     const struct dl_setting *s);

/* Parameters of a set that are cut; 0 where there are none, or one rank holds them. */
double dl_zero_cut_parameters(const struct dl_event *of, const struct dl_setting *s, struct dl_zero_set set);
/* The event as a collective of those who cut among themselves. */
enum dl_status dl_zero_exchange(struct dl_event ev, struct dl_zero_set set, double bytes, struct dl_stack *below,
                                struct dl_error *err);

/* Those who give out parameters one after the other: no more than there are tensors; 0: all of them at once. */
uint32_t dl_zero_n_owners(const struct dl_zero_options *o, const struct dl_event *of, const struct dl_setting *s,
                          bool of_experts);
/* Parameters of a set come to all, as the event says; and one pass from the form in which they travel to the other. */
enum dl_status dl_zero_gather_set(const struct dl_zero_options *o, struct dl_event ev, const struct dl_event *of,
                                  struct dl_zero_set set, struct dl_stack *below, struct dl_error *err);
enum dl_status dl_zero_convert(const struct dl_zero_options *o, const char *name, double parameters,
                               struct dl_stack *below, struct dl_error *err);
/* Parameters before their use, in stage 3; matrix by matrix, the walk knows how far. */
enum dl_status dl_zero_prepare(const struct dl_zero_options *o, const struct dl_event *ev, struct dl_module_walk *walk,
                               struct dl_stack *below, struct dl_error *err);
/* What was updated, in stages 1 and 2: with overlap beside the first forwards of the next step (a LAYER), and after the
 * update what cannot be gathered there. */
enum dl_status dl_zero_gather_updated(const struct dl_zero_options *o, const struct dl_event *ev,
                                      struct dl_stack *below, struct dl_error *err);
enum dl_status dl_zero_gather_after_update(const struct dl_zero_options *o, const struct dl_event *update,
                                           struct dl_stack *below, struct dl_error *err);
/* What of a layer ranks update. */
struct dl_event dl_zero_trained_in(const struct dl_layer *layer, double part, const struct dl_setting *s);
/* Gradients of a layer to those who hold them, in stage 3. */
enum dl_status dl_zero_scatter(const struct dl_zero_options *o, const struct dl_event *ev, struct dl_stack *below,
                               struct dl_error *err);

#endif
