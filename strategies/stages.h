/* stages.h - which layers of the model are at which position of the pipeline, and what stages hold in common.
 *
 * A model is what comes before its blocks (the embedding), the blocks, and what comes after them (the head). Every
 * position gets a stretch of layers that is not empty. */
#ifndef DL_STRATEGIES_STAGES_H
#define DL_STRATEGIES_STAGES_H

#include "strategies/lower.h"

struct dl_deal {
    const struct dl_model *model;
    const struct dl_setting *setting;
    uint32_t n_positions;
    const double *layer_s;  /* by layer; read where the split is by cost */
    struct dl_arena *arena; /* for the places of errors */
};

/* first_layer and end_layer of all positions. */
enum dl_status dl_deal_layers(const struct dl_deal *deal, struct dl_position *positions, struct dl_error *err);

/* The cuts of n costs into parts of least maximum, and among those the most even: ends[i] is where part i ends. Every
 * part has one cost at least. */
void dl_split_by_cost(const double *cost, size_t n, uint32_t n_parts, size_t *ends);

/* The layers as the stages hold them: a tied head on another stage than the embedding has a table of its own. */
const struct dl_layer *dl_dealt_layers(const struct dl_model *model, const struct dl_schedule *schedule,
                                       struct dl_arena *arena);

/* Which of all the stage's parameters another stage holds too: all where the model is held twice, else the table of a
 * tied embedding. False: none. */
bool dl_stage_shares(const struct dl_model *model, const struct dl_schedule *schedule, uint32_t stage,
                     const struct dl_event *all, struct dl_shared *out);

#endif
