#include "sim/report/trace.h"

#include <stdlib.h>

#include "sim/core/files.h"
#include "sim/report/trace_parts.h"

static void add(void *user, const struct dl_slice *slice)
{
    struct dl_trace *const t = user;
    if (slice->replica >= t->n_replicas) return;
    if (t->n_slices == t->request.most_slices) {
        t->left_out.slices++;
        return;
    }
    DL_GROW(t->slices, t->n_slices, t->slices_capacity);
    t->slices[t->n_slices++] = *slice;
}

struct dl_trace *dl_trace_new(const struct dl_trace_request *request)
{
    const uint32_t *const ways = request->setting->ways;
    struct dl_trace *const t = dl_alloc(sizeof *t);
    t->request = *request;
    if (!t->request.most_slices) t->request.most_slices = DL_TRACE_SLICES;
    t->recorder = (struct dl_recorder){.user = t, .add = add};
    t->n_replicas = (uint64_t)ways[DL_AXIS_PIPELINE] * ways[DL_AXIS_DATA] <= DL_TRACE_CREWS ? ways[DL_AXIS_DATA] : 1;
    t->left_out.replicas = ways[DL_AXIS_DATA] - t->n_replicas;
    return t;
}

void dl_trace_free(struct dl_trace *t)
{
    if (!t) return;
    dl_free(t->slices);
    dl_free(t->track);
    dl_free(t->counters);
    dl_free(t);
}

const struct dl_recorder *dl_trace_recorder(const struct dl_trace *t) { return &t->recorder; }

/* ---- links ---- */

struct load {
    uint32_t link;
    double seconds; /* it would be busy for so long */
};

static int busiest_first(const void *a, const void *b)
{
    const struct load *const x = a, *const y = b;
    if (x->seconds != y->seconds) return x->seconds > y->seconds ? -1 : 1;
    return x->link < y->link ? -1 : x->link > y->link;
}

static size_t weigh_links(const struct dl_trace *t, const struct dl_engine *tap, struct load *loads)
{
    const struct dl_topology *const topology = t->request.topology;
    size_t n = 0;
    for (uint32_t link = 0; link < topology->n_links; link++) {
        const double *const bins = dl_tap_bins(tap, link);
        double bytes = 0;
        for (size_t i = 0; bins && i < DL_TAP_BINS; i++) bytes += bins[i];
        if (bytes > 0)
            loads[n++] = (struct load){.link = link, .seconds = bytes / topology->links[link].bandwidth_bytes_per_s};
    }
    return n;
}

void dl_trace_count_links(struct dl_trace *t, const struct dl_engine *tap)
{
    struct load *const loads = dl_alloc(t->request.topology->n_links * sizeof *loads);
    const size_t n = weigh_links(t, tap, loads);
    qsort(loads, n, sizeof *loads, busiest_first);
    t->n_counters = n < DL_TRACE_LINKS ? n : DL_TRACE_LINKS;
    t->counters = dl_alloc(DL_TRACE_LINKS * sizeof *t->counters);
    t->bin_s = dl_tap_width_s(tap);
    for (size_t i = 0; i < t->n_counters; i++) {
        struct dl_counter *const c = &t->counters[i];
        const double *const bins = dl_tap_bins(tap, loads[i].link);
        dl_topology_link_name(t->request.topology, loads[i].link, c->name, sizeof c->name);
        for (size_t bin = 0; bin < DL_TAP_BINS; bin++) c->bytes[bin] = bins[bin];
    }
    dl_free(loads);
}

/* ---- tracks ---- */

static bool is_work(const struct dl_slice *s) { return s->kind == DL_SLICE_WORK || s->kind == DL_SLICE_WAIT; }

static int group_of(const struct dl_slice *s) { return is_work(s) ? 0 : s->kind == DL_SLICE_SEND ? 1 : 2; }

static int by_crew_and_time(const void *a, const void *b)
{
    const struct dl_slice *const x = a, *const y = b;
    if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
    if (x->replica != y->replica) return x->replica < y->replica ? -1 : 1;
    if (group_of(x) != group_of(y)) return group_of(x) - group_of(y);
    if (x->from_s != y->from_s) return x->from_s < y->from_s ? -1 : 1;
    if (x->to_s != y->to_s) return x->to_s > y->to_s ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item; /* of one stage, so of one array */
}

static bool same_group(const struct dl_slice *a, const struct dl_slice *b)
{
    return a->stage == b->stage && a->replica == b->replica && group_of(a) == group_of(b);
}

/* Slices of a track must not overlap: each goes to the first that is free. */
static void lay_out(struct dl_trace *t)
{
    const uint32_t most_tracks = 1 << 16; /* of a group */
    double *free_s = NULL;
    size_t n_tracks = 0, capacity = 0;
    t->track = dl_alloc(t->n_slices * sizeof *t->track);
    for (size_t i = 0; i < t->n_slices; i++) {
        const struct dl_slice *const s = &t->slices[i];
        size_t track = 0;
        if (i && !same_group(s - 1, s)) n_tracks = 0;
        while (track < n_tracks && free_s[track] > s->from_s) track++;
        if (track == n_tracks) {
            DL_GROW(free_s, n_tracks, capacity);
            n_tracks++;
        }
        free_s[track] = s->to_s;
        t->track[i] = (uint32_t)group_of(s) * most_tracks + (uint32_t)track + 1;
    }
    dl_free(free_s);
}

enum dl_status dl_trace_write(struct dl_trace *t, const char *path, struct dl_trace_left_out *left_out,
                              struct dl_error *err)
{
    const uint64_t n_instructions = dl_trace_count_instructions(t);
    const bool all_fit = t->n_slices + n_instructions <= t->request.most_slices;
    struct dl_text text = {0};
    if (t->n_slices) qsort(t->slices, t->n_slices, sizeof *t->slices, by_crew_and_time);
    lay_out(t);
    dl_trace_tell(t, all_fit, &text);
    if (!all_fit) t->left_out.instructions = n_instructions;
    *left_out = t->left_out;
    dl_write_json_text(path, text.bytes, text.n, err);
    dl_free(text.bytes);
    return err->status;
}
