/* schedule.h - the order in which a pipeline stage works: data, made by a generator.
 *
 * A stage holds `chunks` parts of the model. An item is the forward (F) or backward (B) of one micro-batch through one
 * chunk; zero-bubble schedules split the backward into the gradient of the input (B) and of the weights (W).
 * A micro-batch passes the `n_positions` positions of the model in order. The rule to remember: micro-batch k takes
 * path k % n_paths; there is one path, and stages x chunks positions, unless the model is held twice (dualpipe). To add
 * a schedule: one file in strategies/schedules with a const struct dl_schedule_kind, one line in schedules.c; the
 * battery of the tests then runs over it. */
#ifndef DL_STRATEGIES_SCHEDULE_H
#define DL_STRATEGIES_SCHEDULE_H

#include "sim/core/error.h"
#include "sim/program/program.h"

struct dl_schedule_request {
    uint32_t stages, micros, chunks;
    uint32_t group; /* micro-batches that pass a chunk before the next, where kinds have groups; 0: as many as stages */
    double forward_s, backward_s, weight_s, transfer_s; /* of one chunk; backward is of the input alone where split */
    double pair_s;     /* a forward interleaved with a whole backward; 0: the sum of its parts */
    uint32_t max_live; /* micro-batches x chunks whose activations a stage may hold; 0: no limit */
    const char *pipeline_where, *batch_where; /* places for refusals; NULL: "pipeline" and "global_batch" */
};

struct dl_schedule {
    uint32_t stages, micros, chunks;
    uint32_t n_positions, n_paths;
    bool splits_backward;
    bool ends_skewed;       /* as its kind */
    bool uses_times;        /* as its kind */
    struct dl_item **items; /* by stage */
    uint32_t *n_items;
    uint32_t *stage_of;    /* [path * n_positions + position]: which stage holds it */
    uint32_t *chunk_of;    /* and as which of its chunks */
    uint32_t *position_of; /* [stage * chunks + chunk]: the other way round */
};

struct dl_schedule_kind {
    const char *name, *doc;
    bool splits_backward;
    /* Stages end one after the other: its bubble is that of steps without a barrier between them, and with one all wait
     * for the last. */
    bool ends_skewed;
    bool uses_times;                 /* the order of its items follows from what they take */
    bool has_groups;                 /* heeds `group` of a request; others refuse it */
    uint32_t min_chunks, max_chunks; /* UINT32_MAX: as many as the model has layers for */
    /* OPTIONAL. Refuse counts that cannot be, by dl_schedule_refuse; NULL: all can. */
    enum dl_status (*check)(const struct dl_schedule_request *request, struct dl_error *err);
    /* REQUIRED. Gets only what passed the check, so it cannot fail. Memory is the arena's. */
    void (*make)(const struct dl_schedule_request *request, struct dl_arena *arena, struct dl_schedule *out);
    /* REQUIRED. Bubble over ideal time for equal stages and no communication, or a negative number where no formula is
     * known. */
    double (*bubble)(const struct dl_schedule_request *request);
    /* REQUIRED. The most activations that a stage holds (as dl_schedule_live counts), whatever the times are. */
    uint32_t (*live)(const struct dl_schedule_request *request, uint32_t stage);
};
size_t dl_schedule_count(void);
const struct dl_schedule_kind *dl_schedule_get(size_t index);
/* NULL: there is none of that name. */
const struct dl_schedule_kind *dl_schedule_named(const char *name);
/* Of strategies that name none. */
const struct dl_schedule_kind *dl_schedule_usual(void);

/* Whether there is such a schedule for these counts; nothing is made. */
enum dl_status dl_schedule_check(const char *name, const struct dl_schedule_request *request, struct dl_error *err);
enum dl_status dl_schedule_make(const char *name, const struct dl_schedule_request *request, struct dl_arena *arena,
                                struct dl_schedule *out, struct dl_error *err);

/* Micro-batches that interleaved can deal in such groups: this many, or the number nearest to it. */
uint32_t dl_schedule_nearest_in_groups(uint32_t group, uint32_t stages, uint32_t micros);

/* A request like that of the schedule, whose items take these seconds by kind. */
struct dl_schedule_request dl_schedule_with_items(const struct dl_schedule *s, const double item_s[DL_ITEM_W + 1]);

/* Time of the schedule by longest path over (stage, item): a second way to what the engine gives. Returns the end of
 * the last item; end_s, if not NULL, gets [stage][item]. A negative number: items wait for each other in a circle. */
double dl_schedule_length_s(const struct dl_schedule *s, const struct dl_schedule_request *request, double **end_s);

/* The longest stay of a stage, from the start of its first item to the end of its last: the time of a step if stages do
 * not wait for each other between steps. This is the time that `bubble` speaks of. */
double dl_schedule_span_s(const struct dl_schedule *s, const struct dl_schedule_request *request);

/* Share of all passes that have one of another micro-batch in the other direction beside them: of a stage all but the
 * forwards before its first backward and, as many, the backwards after its last forward. */
double dl_schedule_share_beside(const struct dl_schedule *s);

/* Waiting of a stage by the schedule alone, if all items took these seconds by kind. Stages that wait for each other
 * after every step wait for all of it, others as long as the longest of them is busy. */
double dl_schedule_bubble_s(const struct dl_schedule *s, const double item_s[DL_ITEM_W + 1], bool one_by_one);

/* completing[item]: whether it completes the gradients of its chunk, as its last backward or weight gradient. by_runs:
 * as the last before that of another chunk, as often as there is one. */
void dl_schedule_completing(const struct dl_schedule *s, uint32_t stage, bool by_runs, bool *completing);

/* Whether the item is the first forward of its chunk on the stage. */
bool dl_schedule_is_first_forward(const struct dl_schedule *s, uint32_t stage, uint32_t item);

/* The most (micro-batch, chunk) pairs whose activations the stage holds at once: from F to B, to W where it is split.
 */
uint32_t dl_schedule_live(const struct dl_schedule *s, uint32_t stage);

#endif
