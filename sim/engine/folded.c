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
        uint32_t lane, chunk, which;
    } * fates;
    size_t n_fates, fates_capacity;
    struct line *lines;      /* by lane; NULL: all bundles begin at once */
    struct dl_causes causes; /* of the bundle that ended last */
    struct dl_fold *plan;    /* by bundle, since links have changed; of rounds: the one routed anew last */
    size_t n_plan;
    uint64_t plan_version; /* of the condition of the links */
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

static bool make_fold(struct dl_folded *f, struct dl_fold_of of, struct dl_fold *fold)
{
    struct dl_wire *const wire = f->spec.wire;
    return !dl_fold_lane(f->spec.collective, of, f->spec.pace, dl_wire_scratch(wire, DL_SCRATCH_BUNDLE), fold,
                         f->err) &&
           !dl_wire_check(wire, fold->hops, fold->n_hops);
}

/* ---- links that change ---- */

static void forget_plan(struct dl_folded *f)
{
    for (size_t i = 0; i < f->n_plan; i++) dl_fold_release(&f->plan[i]);
    dl_free(f->plan);
    f->plan = NULL;
    f->n_plan = 0;
}

/* These bundles as they would be made now. */
static void plan_anew(struct dl_folded *f, size_t first, size_t n)
{
    struct dl_tally *const booked = dl_wire_scratch(f->spec.wire, DL_SCRATCH_COLLECTIVE);
    forget_plan(f);
    f->plan_version = f->spec.collective->group->topology->condition->version;
    f->plan = dl_alloc(n * sizeof *f->plan);
    f->n_plan = n;
    dl_tally_clear(booked);
    for (size_t i = 0; i < n; i++) {
        const struct fate *const fate = &f->fates[first + i];
        make_fold(f, (struct dl_fold_of){fate->lane, fate->which, booked}, &f->plan[i]);
        dl_fold_book(&f->plan[i], booked);
    }
}

/* All that begin at once see each other's load; those of a round are in one bundle. */
static void reroute(void *user, uint32_t tag, struct dl_turn *turn)
{
    struct dl_folded *const f = user;
    const bool known = f->plan && f->plan_version == f->spec.collective->group->topology->condition->version;
    if (f->lines)
        plan_anew(f, tag, 1);
    else if (!known)
        plan_anew(f, 0, f->n_fates);
    const struct dl_fold *const fold = &f->plan[f->lines ? 0 : tag];
    if (!f->err->status) dl_wire_turn(f->spec.wire, turn, fold->hops, fold->n_hops);
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
    dl_wire_book_hops(f->spec.wire, fold->hops, fold->n_hops, fold->bytes);
    f->n_bundles++;
    f->n_running++;
    f->spec.engine->kind->start(f->spec.engine, &(struct dl_bundle){.hops = fold->hops,
                                                                    .n_hops = fold->n_hops,
                                                                    .latency_s = fold->latency_s,
                                                                    .bytes = fold->bytes,
                                                                    .rate_cap_bytes_per_s = cap,
                                                                    .alone_bytes_per_s = alone_bytes_per_s,
                                                                    .done = ended,
                                                                    .reroute = reroute,
                                                                    .user = f,
                                                                    .tag = (uint32_t)f->n_fates++});
}

/* Fold, start, and return what a rank has to do with what it brings. `booked`: what begins at once, so far. */
static double begin_bundle(struct dl_folded *f, const struct fate *begun, struct dl_tally *booked)
{
    struct dl_fold fold;
    if (make_fold(f, (struct dl_fold_of){begun->lane, begun->which, booked}, &fold)) start_bundle(f, &fold, begun);
    if (booked) dl_fold_book(&fold, booked);
    const double work_s = fold.work_s;
    dl_fold_release(&fold);
    return work_s;
}

static void begin_round(struct dl_folded *f, uint32_t lane, uint32_t chunk, const struct dl_causes *before)
{
    const uint32_t round = f->lines[lane].n_done[chunk];
    const struct fate begun = {.before = *before, .lane = lane, .chunk = chunk, .which = round};
    f->reduction_s += begin_bundle(f, &begun, NULL);
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
    struct dl_tally *const booked = dl_wire_scratch(f->spec.wire, DL_SCRATCH_COLLECTIVE);
    dl_tally_clear(booked);
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) {
        double work_s = 0;
        for (uint32_t which = 0; which < dl_fold_count(c, lane) && !f->err->status; which++) {
            const struct fate begun = {.before = *before, .lane = lane, .which = which};
            work_s = fmax(work_s, begin_bundle(f, &begun, booked));
        }
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
    forget_plan(f);
    dl_free(f->fates);
    dl_free(f);
}
