#include "sim/report/timeline.h"

#include <stdio.h>
#include <stdlib.h>

#include "sim/program/segments.h"

static void add(void *user, const struct dl_slice *slice)
{
    struct dl_timeline *const t = user;
    if (slice->replica >= t->n_replicas) return;
    if (t->n_slices == t->request.most_slices) {
        t->left_out.slices++;
        return;
    }
    DL_GROW(t->slices, t->n_slices, t->slices_capacity);
    t->slices[t->n_slices++] = *slice;
}

uint32_t dl_timeline_stages(const struct dl_timeline *t)
{
    return dl_ranks_count(t->request.step.ranks, t->request.step.stages);
}

uint32_t dl_timeline_replicas(const struct dl_timeline *t)
{
    return dl_ranks_count(t->request.step.ranks, t->request.step.replicas);
}

struct dl_timeline *dl_timeline_new(const struct dl_timeline_request *request)
{
    struct dl_timeline *const t = dl_alloc(sizeof *t);
    t->request = *request;
    if (!t->request.most_slices) t->request.most_slices = DL_TIMELINE_SLICES;
    t->recorder = (struct dl_recorder){.user = t, .add = add};
    const uint32_t replicas = dl_timeline_replicas(t);
    t->n_replicas = (uint64_t)dl_timeline_stages(t) * replicas <= DL_TIMELINE_GROUPS ? replicas : 1;
    t->left_out.replicas = replicas - t->n_replicas;
    return t;
}

void dl_timeline_free(struct dl_timeline *t)
{
    if (!t) return;
    dl_free(t->slices);
    dl_free(t->track);
    dl_free(t->counters);
    dl_free(t);
}

const struct dl_recorder *dl_timeline_recorder(const struct dl_timeline *t) { return &t->recorder; }

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

static size_t weigh_links(const struct dl_timeline *t, const struct dl_engine *tap, struct load *loads)
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

static void count_links(struct dl_timeline *t, const struct dl_engine *tap)
{
    struct load *const loads = dl_alloc(t->request.topology->n_links * sizeof *loads);
    const size_t n = weigh_links(t, tap, loads);
    qsort(loads, n, sizeof *loads, busiest_first);
    t->n_counters = n < DL_TIMELINE_LINKS ? n : DL_TIMELINE_LINKS;
    t->counters = dl_alloc(DL_TIMELINE_LINKS * sizeof *t->counters);
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

enum dl_track_group dl_slice_group(const struct dl_slice *s)
{
    if (s->kind == DL_SLICE_WORK || s->kind == DL_SLICE_WAIT) return DL_TRACK_WORK;
    return s->kind == DL_SLICE_SEND ? DL_TRACK_SENDS : DL_TRACK_EXCHANGES;
}

double dl_slice_whole_s(const struct dl_slice *s)
{
    const struct dl_segment *const segment = &s->part->segment;
    return dl_slowed_s(segment->seconds, segment->network_s, s->pace) + s->host_s + s->interference_s;
}

static int by_group_and_time(const void *a, const void *b)
{
    const struct dl_slice *const x = a, *const y = b;
    if (x->stage != y->stage) return x->stage < y->stage ? -1 : 1;
    if (x->replica != y->replica) return x->replica < y->replica ? -1 : 1;
    if (dl_slice_group(x) != dl_slice_group(y)) return dl_slice_group(x) < dl_slice_group(y) ? -1 : 1;
    if (x->from_s != y->from_s) return x->from_s < y->from_s ? -1 : 1;
    if (x->to_s != y->to_s) return x->to_s > y->to_s ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item; /* of one stage, so of one array */
}

static bool same_group(const struct dl_slice *a, const struct dl_slice *b)
{
    return a->stage == b->stage && a->replica == b->replica && dl_slice_group(a) == dl_slice_group(b);
}

/* Slices of a track must not overlap: each goes to the first that is free. */
static void lay_out(struct dl_timeline *t)
{
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
        t->track[i] = (uint32_t)dl_slice_group(s) * DL_TIMELINE_TRACKS + (uint32_t)track + 1;
    }
    dl_free(free_s);
}

void dl_timeline_end(struct dl_timeline *t, const struct dl_engine *tap)
{
    if (t->n_slices) qsort(t->slices, t->n_slices, sizeof *t->slices, by_group_and_time);
    lay_out(t);
    if (tap) count_links(t, tap);
}

/* ---- names ---- */

const char *dl_item_name(const struct dl_item *item, char name[DL_SLICE_NAME])
{
    static const char letters[] = {[DL_ITEM_F] = 'F', [DL_ITEM_B] = 'B', [DL_ITEM_W] = 'W'};
    if (item)
        snprintf(name, DL_SLICE_NAME, "%c m%u c%u", letters[item->kind], item->micro, item->chunk);
    else
        snprintf(name, DL_SLICE_NAME, "end of step");
    return name;
}

const char *dl_slice_name(const struct dl_timeline *t, const struct dl_slice *s, char name[DL_SLICE_NAME])
{
    char item[DL_SLICE_NAME];
    switch (s->kind) {
    case DL_SLICE_WORK: return dl_item_name(s->item, name);
    case DL_SLICE_WAIT: snprintf(name, DL_SLICE_NAME, "wait: %s", dl_cause_name(s->cause)); break;
    case DL_SLICE_SEND:
        snprintf(name, DL_SLICE_NAME, "%.40s to stage %u", dl_item_name(s->item, item), s->to_stage);
        break;
    case DL_SLICE_EXCHANGE: snprintf(name, DL_SLICE_NAME, "%s", dl_op_name(t->request.step.calls[s->call].op)); break;
    }
    return name;
}
