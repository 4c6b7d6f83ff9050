/* collective_run.h - one collective on one machine, as `dlsim collective` asks for it: opened, simulated, told. */
#ifndef DL_APP_COLLECTIVE_RUN_H
#define DL_APP_COLLECTIVE_RUN_H

#include "sim/app/options.h"
#include "sim/collective/choose.h"
#include "sim/engine/engines.h"
#include "sim/engine/scenario.h"
#include "sim/report/collective_report.h"
#include "sim/report/explain.h"
#include "sim/report/sizes_report.h"
#include "sim/session/inputs.h"

struct dl_collective_request {
    const char *topo, *op, *algo, *protocol, *transport, *payload, *placement, *engine, *fidelity, *json, *scenario,
        *svg, *picture;
    double bytes;
    struct dl_sizes_range sizes;
    uint64_t devices, chunks, seed;
    bool links, explain;
    struct dl_texts set;
};

struct dl_collective_run {
    struct dl_collective_request request;
    struct dl_arena *arena;
    struct dl_machine machine;
    uint32_t *device, n_extra;
    struct dl_group group;
    struct dl_estimator estimator;
    struct dl_choice choice;
    struct dl_json scenario_doc;
    struct dl_scenario scenario;
    struct dl_collective_report report;
    struct dl_explanation explanation;
    struct dl_link_load *loads; /* of all links that carried something, if they are drawn */
    size_t n_loads;
};

/* Over several sizes, in place of one. */
static inline bool dl_collective_has_sizes(const struct dl_collective_request *q) { return q->sizes.to > 0; }

static inline const struct dl_engine_kind *dl_collective_engine(const struct dl_collective_run *r)
{
    return dl_engine_find(r->request.engine);
}

enum dl_status dl_collective_open(struct dl_collective_run *r, struct dl_error *err);
enum dl_status dl_collective_read_scenario(struct dl_collective_run *r, struct dl_error *err);
/* What is wished for, with the estimator ready. */
enum dl_status dl_collective_wish(struct dl_collective_run *r, struct dl_wish *out, struct dl_error *err);
enum dl_status dl_collective_choose(struct dl_collective_run *r, struct dl_error *err);
/* Of what was chosen, by the engine. */
void dl_collective_find_time(struct dl_collective_run *r, const struct dl_engine_kind *kind, struct dl_error *err);

/* As text, JSON and pictures. */
enum dl_status dl_collective_tell(struct dl_collective_run *r, struct dl_error *err);
enum dl_status dl_collective_tell_sizes(struct dl_collective_run *r, struct dl_sizes *sizes, struct dl_error *err);

#endif
