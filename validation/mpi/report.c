/* report.c - what all ranks measured: seconds as JSON, and the last step through dlsim's own writer of traces. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/trace.h"
#include "validation/mpi/train.h"

/* ---- JSON ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_step_s(const struct dl_losses *l)
{
    const size_t skip = dl_warm_ups(l->n), n = l->n - skip;
    double *const sorted = dl_alloc(n * sizeof *sorted);
    memcpy(sorted, l->step_s + skip, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, ascending);
    const double median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
    dl_free(sorted);
    return median;
}

static json_t *numbers(const double *list, size_t n)
{
    json_t *const array = json_array();
    for (size_t i = 0; i < n; i++) json_array_append_new(array, json_real(list[i]));
    return array;
}

/* Of a step: the mean over ranks, and the most of any. */
static void add_seconds(const struct dl_train *t, json_t *to, const char *key, double seconds, bool always)
{
    double sum = seconds, most = seconds;
    const double steps = (double)(t->step - dl_warm_ups(t->step));
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, t->workers);
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, t->workers);
    if (sum <= 0 && !always) return;
    json_object_set_new(to, key,
                        json_pack("{s:f, s:f}", "mean_s", sum / steps / t->job.n_devices, "max_s", most / steps));
}

static json_t *phases(const struct dl_train *t)
{
    json_t *const all = json_object();
    add_seconds(t, all, "forward", t->timeline.by_item[DL_ITEM_F], true);
    add_seconds(t, all, "backward", t->timeline.by_item[DL_ITEM_B], true);
    add_seconds(t, all, "weight_gradients", t->timeline.by_item[DL_ITEM_W], t->schedule.splits_backward);
    add_seconds(t, all, "optimizer", t->timeline.optimizer_s, true);
    return all;
}

static json_t *causes(const struct dl_train *t)
{
    json_t *const all = json_object();
    for (int i = 0; i < DL_N_CAUSES; i++)
        add_seconds(t, all, dl_cause_name((enum dl_cause)i), t->timeline.by_cause[i], false);
    return all;
}

/* Seconds of a step that a rank of each stage works, in the mean: the last one has the loss to compute, too. */
static json_t *stages(const struct dl_train *t)
{
    static const enum dl_cause work[] = {DL_CAUSE_COMPUTE, DL_CAUSE_RECOMPUTE, DL_CAUSE_OPTIMIZER};
    const size_t n = t->s->ways[DL_AXIS_PIPELINE];
    const double steps = (double)(t->step - dl_warm_ups(t->step)), ranks = (double)(t->job.n_devices / n);
    double *const seconds = dl_alloc(n * sizeof *seconds);
    for (size_t i = 0; i < DL_COUNT(work); i++)
        seconds[t->at[DL_AXIS_PIPELINE]] += t->timeline.by_cause[work[i]] / steps / ranks;
    MPI_Allreduce(MPI_IN_PLACE, seconds, (int)n, MPI_DOUBLE, MPI_SUM, t->workers);
    json_t *const all = numbers(seconds, n);
    dl_free(seconds);
    return all;
}

/* Tokens that came to the experts of the busiest rank, over the mean of all ranks. */
static double imbalance(const struct dl_train *t)
{
    double sum = t->n_visitors, most = sum;
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, t->workers);
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_DOUBLE, MPI_MAX, t->workers);
    return sum > 0 ? most * t->job.n_devices / sum : 1;
}

enum dl_status dl_report_json(struct dl_train *t, const struct dl_losses *l, struct dl_error *err)
{
    json_t *const all = json_object();
    json_object_set_new(all, "schema", json_string("dlsim/trained/1"));
    json_object_set_new(all, "strategy", json_string(dl_document_name(t->strategy_doc, t->arena)));
    json_object_set_new(all, "workload", json_string(t->model.name));
    json_object_set_new(all, "algorithm", json_string(t->of_gradients ? t->of_gradients->name : t->algorithm->name));
    json_object_set_new(all, "numbers", json_string(DL_REAL_NAME));
    json_object_set_new(all, "ranks", json_integer(t->n_ranks));
    json_object_set_new(all, "losses", numbers(l->list, l->n));
    json_object_set_new(all, "step_s", json_real(median_step_s(l)));
    json_object_set_new(all, "steps_s", numbers(l->step_s, l->n));
    json_object_set_new(all, "phases", phases(t));
    json_object_set_new(all, "causes", causes(t));
    json_object_set_new(all, "stages_s", stages(t));
    json_object_set_new(all, "imbalance", json_real(imbalance(t)));
    if (t->rank == 0) return dl_write_json(t->options->json, all, err);
    json_decref(all);
    return DL_OK;
}

/* ---- trace ---- */

/* All moments on rank 0, of those that are shown: the first of each team of tensor ranks. */
static struct dl_moments collect(const struct dl_train *t)
{
    const struct dl_rank_timeline *const l = &t->timeline;
    struct dl_moments mine = {0}, all = {0};
    for (size_t i = 0; i < l->moments.n && !t->tensor.rank; i++) dl_add_moment(&mine, l->moments.list[i]);
    for (size_t i = 0; i < l->exchanges.n && !t->tensor.rank; i++) dl_add_moment(&mine, l->exchanges.list[i]);
    const int n_ranks = (int)t->job.n_devices;
    int *const bytes = dl_alloc(2 * (size_t)n_ranks * sizeof *bytes), *const at = bytes + n_ranks;
    const int own = (int)(mine.n * sizeof *mine.list);
    MPI_Gather(&own, 1, MPI_INT, bytes, 1, MPI_INT, 0, t->workers);
    for (int i = 0; i < n_ranks; i++) {
        at[i] = i ? at[i - 1] + bytes[i - 1] : 0;
        all.n += (size_t)bytes[i] / sizeof *all.list;
    }
    all.list = dl_alloc((all.n + 1) * sizeof *all.list);
    MPI_Gatherv(mine.list, own, MPI_BYTE, all.list, bytes, at, MPI_BYTE, 0, t->workers);
    dl_free(mine.list);
    dl_free(bytes);
    return all;
}

/* calls: has room for one more. */
static void add_slice(const struct dl_train *t, const struct dl_moment *m, double zero_s, struct dl_comm *calls,
                      size_t *n_calls, const struct dl_recorder *to)
{
    const bool is_end = m->item == DL_END_OF_STEP;
    struct dl_slice slice = {.kind = m->kind,
                             .stage = m->stage,
                             .replica = m->replica,
                             .from_s = m->from_s - zero_s,
                             .to_s = m->to_s - zero_s,
                             .item = is_end ? NULL : &t->schedule.items[m->stage][m->item],
                             .number = is_end ? t->schedule.n_items[m->stage] : m->item,
                             .pace = 1,
                             .cause = m->cause,
                             .to_stage = m->to_stage};
    if (m->kind == DL_SLICE_WORK) {
        static const struct dl_template nothing_known;
        struct dl_part *const done = dl_arena_alloc(t->arena, sizeof *done);
        *done = (struct dl_part){.kind = DL_DO, .segment = {.seconds = m->to_s - m->from_s}};
        memcpy(done->segment.by_cause, m->by_cause, sizeof m->by_cause);
        slice.running = &nothing_known;
        slice.part = done;
    }
    if (m->kind == DL_SLICE_EXCHANGE) {
        slice.call = (uint32_t)*n_calls;
        calls[(*n_calls)++] = (struct dl_comm){.op = m->op, .bytes = m->bytes, .cause = m->cause};
    }
    to->add(to->user, &slice);
}

enum dl_status dl_report_trace(struct dl_train *t, struct dl_error *err)
{
    struct dl_moments all = collect(t);
    struct dl_comm *const calls = dl_alloc((all.n + 1) * sizeof *calls);
    size_t n_calls = 0;
    uint64_t left_out;
    double zero_s = DBL_MAX;
    for (size_t i = 0; i < all.n; i++) zero_s = fmin(zero_s, all.list[i].from_s);
    if (t->rank == 0) {
        struct dl_timeline *const step = dl_timeline_new(&(struct dl_timeline_request){
            .step = {.ranks = &t->s->ranks, .replicas = DL_ALONG_DATA, .stages = DL_ALONG_PIPELINE, .calls = calls}});
        for (size_t i = 0; i < all.n; i++)
            add_slice(t, &all.list[i], zero_s, calls, &n_calls, dl_timeline_recorder(step));
        dl_timeline_end(step, NULL);
        dl_trace_write(step, t->options->trace, &left_out, err);
        dl_timeline_free(step);
    }
    dl_free(calls);
    dl_free(all.list);
    return err->status;
}
