#include "sim/engine/folded.h"

#include <math.h>

#include "sim/collective/fold.h"

/* The rounds of a lane, chunk behind chunk: a round of a chunk begins when the round before it has ended, and the same
 * round of the chunk before. */
struct line {
    uint32_t n_rounds;
    uint32_t *n_done; /* by chunk */
};

struct dl_folded {
    struct dl_exchange_spec spec;
    struct dl_error *err;
    dl_folded_fn finished;
    void *user;
    uint64_t n_bundles, n_running;
    double reduction_s;
    struct fate {
        double start_s, latency_s, alone_s; /* alone: to move its bytes on an empty network */
        struct dl_causes before;            /* of the round before; start included */
        uint32_t lane, chunk;
    } * fates;
    size_t n_fates, fates_capacity;
    struct line *lines;      /* by lane; NULL: all bundles begin at once */
    struct dl_causes causes; /* of the bundle that ended last */
};

static double now_s(const struct dl_folded *f) { return f->spec.engine->kind->now_s(f->spec.engine); }

static void reduced(void *user, uint32_t tag)
{
    (void)tag;
    struct dl_folded *const f = user;
    f->causes.reduction_s += f->reduction_s;
    f->finished(f->user, &f->causes);
}

static void begin_next(struct dl_folded *f, const struct fate *ended);

static void ended(void *user, uint32_t tag)
{
    struct dl_folded *const f = user;
    const struct fate fate = f->fates[tag]; /* a copy: more may begin */
    const double moving_s = now_s(f) - fate.start_s - fate.latency_s;
    f->causes = fate.before;
    f->causes.latency_s += fate.latency_s;
    f->causes.bandwidth_s += fmin(moving_s, fate.alone_s);
    f->causes.sharing_s += fmax(moving_s - fate.alone_s, 0);
    if (f->lines) begin_next(f, &fate);
    if (--f->n_running) return;
    f->spec.engine->kind->timer(f->spec.engine, now_s(f) + f->reduction_s, reduced, f, 0);
}

/* What the devices' kernels can do: of a round, in the time that its part takes them. */
static double cap_of(const struct dl_folded *f, const struct dl_fold *fold)
{
    const struct dl_pace *const pace = f->spec.pace;
    if (pace->pump_s <= 0) return INFINITY;
    if (!f->lines) return fold->bytes / pace->pump_s;
    const double sent = fold->sent_bytes / pace->bandwidth_fraction;
    return sent > 0 ? fold->bytes * pace->rate_cap_bytes_per_s / sent : INFINITY;
}

static void start_bundle(struct dl_folded *f, const struct dl_fold *fold, const struct fate *begun)
{
    const double cap = cap_of(f, fold);
    const double alone_bytes_per_s = dl_wire_alone(f->spec.wire, fold->hops, fold->n_hops);
    DL_GROW(f->fates, f->n_fates, f->fates_capacity);
    struct fate *const fate = &f->fates[f->n_fates];
    *fate = *begun;
    fate->start_s = now_s(f);
    fate->latency_s = fold->latency_s;
    fate->alone_s = fmax(fold->bytes / alone_bytes_per_s, fold->bytes / cap);
    for (size_t i = 0; i < fold->n_hops; i++)
        dl_wire_book(f->spec.wire, fold->hops[i].link, fold->bytes * fold->hops[i].weight);
    f->n_bundles++;
    f->n_running++;
    f->spec.engine->kind->start(f->spec.engine, &(struct dl_bundle){.hops = fold->hops,
                                                                    .n_hops = fold->n_hops,
                                                                    .latency_s = fold->latency_s,
                                                                    .bytes = fold->bytes,
                                                                    .rate_cap_bytes_per_s = cap,
                                                                    .alone_bytes_per_s = alone_bytes_per_s,
                                                                    .done = ended,
                                                                    .user = f,
                                                                    .tag = (uint32_t)f->n_fates++});
}

/* Fold, start, and return what a rank has to do with what it brings. */
static double begin_bundle(struct dl_folded *f, uint32_t which, const struct fate *begun)
{
    struct dl_fold fold;
    if (!dl_fold_lane(f->spec.collective, begun->lane, which, f->spec.pace, dl_wire_scratch(f->spec.wire), &fold,
                      f->err) &&
        !dl_wire_check(f->spec.wire, fold.hops, fold.n_hops))
        start_bundle(f, &fold, begun);
    const double work_s = fold.work_s;
    dl_fold_release(&fold);
    return work_s;
}

static void begin_round(struct dl_folded *f, uint32_t lane, uint32_t chunk, const struct dl_causes *before)
{
    const uint32_t round = f->lines[lane].n_done[chunk];
    f->reduction_s += begin_bundle(f, round, &(struct fate){.before = *before, .lane = lane, .chunk = chunk});
}

static void begin_next(struct dl_folded *f, const struct fate *fate)
{
    const struct line *const line = &f->lines[fate->lane];
    const struct dl_causes before = f->causes;
    const uint32_t chunk = fate->chunk, done = ++line->n_done[chunk];
    if (f->err->status) return;
    if (done < line->n_rounds && (chunk == 0 || line->n_done[chunk - 1] > done))
        begin_round(f, fate->lane, chunk, &before);
    if (chunk + 1 < f->spec.collective->chunks && line->n_done[chunk + 1] == done - 1)
        begin_round(f, fate->lane, chunk + 1, &before);
}

static void begin_rounds(struct dl_folded *f, const struct dl_causes *before)
{
    const struct dl_collective *const c = f->spec.collective;
    const uint32_t n_lanes = dl_collective_lanes(c);
    f->lines = dl_alloc(n_lanes * sizeof *f->lines);
    for (uint32_t lane = 0; lane < n_lanes; lane++) {
        f->lines[lane].n_rounds = dl_fold_count(c, lane);
        f->lines[lane].n_done = dl_alloc(c->chunks * sizeof *f->lines[lane].n_done);
        begin_round(f, lane, 0, before);
    }
}

static void begin_all(struct dl_folded *f, const struct dl_causes *before)
{
    const struct dl_collective *const c = f->spec.collective;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) {
        double work_s = 0;
        for (uint32_t which = 0; which < dl_fold_count(c, lane) && !f->err->status; which++)
            work_s = fmax(work_s, begin_bundle(f, which, &(struct fate){.before = *before, .lane = lane}));
        f->reduction_s += work_s;
    }
}

struct dl_folded *dl_folded_start(const struct dl_exchange_spec *spec, struct dl_error *err, dl_folded_fn finished,
                                  void *user)
{
    struct dl_folded *const f = dl_alloc(sizeof *f);
    const struct dl_causes before = {.start_s = spec->pace->start_s};
    f->spec = *spec;
    f->err = err;
    f->finished = finished;
    f->user = user;
    (dl_fold_kind(spec->collective) == DL_FOLD_ROUNDS ? begin_rounds : begin_all)(f, &before);
    return f;
}

uint64_t dl_folded_bundles(const struct dl_folded *f) { return f->n_bundles; }

void dl_folded_free(struct dl_folded *f)
{
    if (!f) return;
    for (uint32_t lane = 0; f->lines && lane < dl_collective_lanes(f->spec.collective); lane++)
        dl_free(f->lines[lane].n_done);
    dl_free(f->lines);
    dl_free(f->fates);
    dl_free(f);
}
