#include "sim/engine/folded.h"

#include <math.h>

#include "sim/collective/fold.h"

struct dl_folded {
    struct dl_exchange_spec spec;
    dl_folded_fn finished;
    void *user;
    uint64_t n_bundles, n_running;
    double reduction_s;
    struct fate {
        double start_s, latency_s, alone_s; /* alone: to move its bytes on an empty network */
    } * fates;
    size_t n_fates, fates_capacity;
    struct dl_causes causes; /* of the bundle that ended last */
};

static double now_s(const struct dl_folded *f) { return f->spec.engine->kind->now_s(f->spec.engine); }

static void reduced(void *user, uint32_t tag)
{
    (void)tag;
    struct dl_folded *const f = user;
    f->finished(f->user, &f->causes);
}

static void ended(void *user, uint32_t tag)
{
    struct dl_folded *const f = user;
    if (--f->n_running) return;
    const struct fate *const fate = &f->fates[tag];
    const double moving_s = now_s(f) - fate->start_s - fate->latency_s;
    f->causes = (struct dl_causes){.start_s = f->spec.pace->start_s,
                                   .latency_s = fate->latency_s,
                                   .bandwidth_s = fmin(moving_s, fate->alone_s),
                                   .sharing_s = fmax(moving_s - fate->alone_s, 0),
                                   .reduction_s = f->reduction_s};
    f->spec.engine->kind->timer(f->spec.engine, now_s(f) + f->reduction_s, reduced, f, 0);
}

static void start_bundle(struct dl_folded *f, const struct dl_fold *fold)
{
    const double cap = f->spec.pace->pump_s > 0 ? fold->bytes / f->spec.pace->pump_s : INFINITY;
    const double alone_bytes_per_s = dl_wire_alone(f->spec.wire, fold->hops, fold->n_hops);
    const double alone_s = fmax(fold->bytes / alone_bytes_per_s, fold->bytes / cap);
    DL_GROW(f->fates, f->n_fates, f->fates_capacity);
    f->fates[f->n_fates] = (struct fate){.start_s = now_s(f), .latency_s = fold->latency_s, .alone_s = alone_s};
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

struct dl_folded *dl_folded_start(const struct dl_exchange_spec *spec, struct dl_error *err, dl_folded_fn finished,
                                  void *user)
{
    const struct dl_collective *const c = spec->collective;
    struct dl_folded *const f = dl_alloc(sizeof *f);
    f->spec = *spec;
    f->finished = finished;
    f->user = user;
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++) {
        double work_s = 0;
        for (uint32_t which = 0; which < dl_fold_count(c) && !err->status; which++) {
            struct dl_fold fold;
            if (!dl_fold_lane(c, lane, which, spec->pace, dl_wire_scratch(spec->wire), &fold, err) &&
                !dl_wire_check(spec->wire, fold.hops, fold.n_hops))
                start_bundle(f, &fold);
            work_s = fmax(work_s, fold.work_s);
            dl_fold_release(&fold);
        }
        f->reduction_s += work_s;
    }
    return f;
}

uint64_t dl_folded_bundles(const struct dl_folded *f) { return f->n_bundles; }

void dl_folded_free(struct dl_folded *f)
{
    if (!f) return;
    dl_free(f->fates);
    dl_free(f);
}
