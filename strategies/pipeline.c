/* pipeline.c - stages hold parts of the model one after the other; the schedule is data (schedule.h).
 *
 * What two stages hold (the table of tied embeddings, all where the schedule has the model twice) has one gradient on
 * each; after those of replicas are summed, these are, pair by pair (Megatron's embedding group). */
#include "strategies/schedule.h"
#include "strategies/strategies.h"

static const char *const splits[] = {"even", "count_ends", "by_cost", "by_weights",
                                     NULL}; /* in the order of enum dl_split */
static const char *const places[] = {"with_blocks", "alone", NULL};

struct options {
    int64_t ways, chunks, group, split, embedding, head;
    const char *schedule;
    struct dl_int_list layers_per_stage;
};
static const struct options defaults = {.ways = 1, .chunks = 1};
static const struct dl_field fields[] = {
    {"ways", DL_INT, offsetof(struct options, ways), 1, 65536, false, NULL, "pipeline stages"},
    {"schedule", DL_TEXT, offsetof(struct options, schedule), 0, 0, true, NULL,
     "order of forwards and backwards, see `dlsim list schedules`; 1f1b if absent"},
    {"chunks", DL_INT, offsetof(struct options, chunks), 1, 64, true, NULL,
     "parts of the model on each stage; 1 if absent"},
    {"group", DL_INT, offsetof(struct options, group), 1, 1e6, true, NULL,
     "of interleaved: micro-batches that pass one chunk before the next; as many as stages if absent"},
    {"split", DL_CHOICE, offsetof(struct options, split), 0, 0, true, splits,
     "how blocks are divided: evenly, with embedding and head counted as blocks, or so that the slowest part is "
     "fastest, or until a part has its share of the weights of GEMMs (nanotron); even if absent"},
    {"embedding", DL_CHOICE, offsetof(struct options, embedding), 0, 0, true, places,
     "whether the embedding shares a part with the first blocks or has its own; with_blocks if absent"},
    {"head", DL_CHOICE, offsetof(struct options, head), 0, 0, true, places,
     "whether the head shares a part with the last blocks or has its own; with_blocks if absent"},
    {"layers_per_stage", DL_INT_LIST, offsetof(struct options, layers_per_stage), 0, 1e6, true, NULL,
     "blocks of each part in the order of the model, in place of split; as split says if absent"},
};

/* The list says all of it. */
static enum dl_status check_list(const struct options *o, struct dl_json entry, struct dl_error *err)
{
    static const char *const others[] = {"split", "embedding", "head"};
    if (json_object_get(entry.value, "layers_per_stage") && !o->layers_per_stage.n)
        return dl_fail(err, DL_RANGE, entry.where, "'layers_per_stage' must have a number for each part of the model");
    for (size_t i = 0; o->layers_per_stage.n && i < DL_COUNT(others); i++)
        if (json_object_get(entry.value, others[i]))
            return dl_fail(err, DL_KEY, entry.where, "'%s' means nothing beside 'layers_per_stage'", others[i]);
    return DL_OK;
}

static const struct dl_brought axes[] = {{.axis = DL_AXIS_PIPELINE, .ways = offsetof(struct options, ways)}};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    const struct options *const o = options;
    setting->chunks = (uint32_t)o->chunks;
    setting->group = (uint32_t)o->group;
    if (o->schedule) setting->schedule = o->schedule;
    setting->split = (enum dl_split)o->split;
    setting->embedding_alone = o->embedding;
    setting->head_alone = o->head;
    setting->blocks_at = o->layers_per_stage;
    setting->pipeline_where = entry.where;
    return check_list(o, entry, err);
}

/* Every stage of a decoder would need what the encoder made, and its first one the table of words. */
static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct options *const o = options;
    if (!what->model->has_encoder || o->ways * o->chunks == 1) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, what->where,
                   "%s has an encoder and a decoder, which dlsim does not divide into stages; tensor parallelism and "
                   "ZeRO share its memory",
                   what->model->name);
}

/* On one rank, of gradients that it keeps: ZeRO 2 may leave it a shard. */
static double kept_bytes(const struct dl_setting *s, const struct dl_shared *shared)
{
    const struct dl_on_rank all =
        dl_on_rank(s, shared->parameters_inside, shared->parameters_outside, shared->parameters_expert);
    return dl_held(s, all, dl_keeps_shards(s)) * dl_gradient_bytes(s);
}

static struct dl_members between(const struct dl_shared *shared)
{
    return (struct dl_members){
        .digits = DL_ALONG_PIPELINE, .is_pair = true, .pair = {shared->stages[0], shared->stages[1]}};
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    (void)options;
    const bool is_outside = dl_stack_setting(below)->streams_weights; /* and summed there */
    if (dl_emit(below, ev, err) || ev->kind != DL_EV_GRADIENT || !ev->shared || is_outside) return err->status;
    return dl_emit(below,
                   &(struct dl_event){.kind = DL_EV_COLLECTIVE,
                                      .pass = DL_COPIES,
                                      .cause = DL_CAUSE_PIPELINE,
                                      .op = DL_ALLREDUCE,
                                      .members = between(ev->shared),
                                      .bytes = kept_bytes(dl_stack_setting(below), ev->shared),
                                      .handle = DL_EVERY_CALL},
                   err);
}

static const struct dl_relief relief = {.rank = 5, .n_steps = 3, .axis = DL_AXIS_PIPELINE};

const struct dl_strategy dl_strategy_pipeline = {
    .name = "pipeline",
    .doc = "the model divided into stages that work one after the other",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .axes = axes,
    .n_axes = DL_COUNT(axes),
    .claim = claim,
    .check = check,
    .rewrite = rewrite,
    .place = dl_any_place,
    .relief = &relief,
};
