/* session_run.c - one run of a session: its engine, its training step, and what the report says of it. */
#include <math.h>

#include "sim/engine/engines.h"
#include "sim/engine/tap.h"
#include "sim/session/session_parts.h"

/* Exchanges over replicas are not simulated where they take longer than about a minute. */
static double most_effort(const struct dl_session *s)
{
    const double most_fluid = 2e11;
    return is_analytic(s) || !is_fluid(s) ? 0 : asked_or(s->request.most.effort, most_fluid);
}

const struct dl_engine_link *dl_session_kept_links(const struct dl_session *s)
{
    if (!s->machine.keeper || is_analytic(s)) return NULL;
    return dl_machines_links(s->machine.keeper, s->machine.topology);
}

static struct dl_engine *make_engine(struct dl_session *s, const struct dl_engine_link *links)
{
    const struct dl_topology *const t = s->machine.topology;
    struct dl_engine *const engine = dl_session_engine(s)->create(links, links ? t->n_links : 0);
    engine->progress = s->request.progress;
    if (!s->request.timeline) return engine;
    s->timeline = dl_timeline_new(
        &(struct dl_timeline_request){.step = dl_session_step(s), .software = &s->software, .topology = t});
    return dl_tap_new(engine, t->n_links);
}

static struct dl_training *start(struct dl_session *s, struct dl_engine *engine, struct dl_wire *wire)
{
    return dl_training_start(
        &(struct dl_training_request){.engine = engine,
                                      .wire = wire,
                                      .estimator = &s->estimator,
                                      .step = dl_session_step(s),
                                      .device_of_rank = s->device_of_rank,
                                      .arena = s->arena,
                                      .iterations = (uint32_t)s->request.iterations,
                                      .scenario = &s->scenario,
                                      .seed = s->request.seed,
                                      .slowdown_of_rank = dl_session_slowdown_of_rank(s),
                                      .recorder = s->timeline ? dl_timeline_recorder(s->timeline) : NULL,
                                      .device = &s->device,
                                      .by_message = !is_fluid(s),
                                      .most_effort = most_effort(s),
                                      .extrapolates = true,
                                      .one_replica = is_analytic(s)},
        &s->err);
}

static const struct dl_stage_causes *causes_by_stage(const struct dl_session *s, const struct dl_training *training)
{
    const uint32_t n = dl_n_stages(&s->job.setting);
    struct dl_stage_causes *const stages = dl_arena_alloc(s->arena, n * sizeof *stages);
    for (uint32_t i = 0; i < n; i++) stages[i] = dl_training_stage_causes(training, i);
    return stages;
}

/* Stages whose programs have the same call choose alike. */
static void keep_choices(struct dl_session *s, const struct dl_training *training)
{
    const struct dl_lowered *const l = &s->lowered;
    s->choices = dl_arena_alloc(s->arena, (l->n_calls + 1) * sizeof *s->choices);
    for (size_t i = 0; i < l->n_calls; i++) s->choices[i] = (struct dl_choice){0};
    for (uint32_t stage = 0; stage < dl_n_stages(&s->job.setting); stage++)
        for (size_t i = 0; i < l->n_calls; i++)
            if (!s->choices[i].collective.algorithm) dl_training_choice(training, stage, &l->calls[i], &s->choices[i]);
}

static bool names_software(const struct dl_session *s)
{
    return s->request.software.name || json_object_get(s->strategy_doc.value, "software");
}

/* As far as ranks have waited at all. */
static double schedule_bubble_s(const struct dl_session *s, const struct dl_training_result *result)
{
    const bool one_by_one = s->request.iterations <= 1 || s->job.setting.software->step_barrier;
    return fmin(dl_schedule_bubble_s(&s->lowered.schedule, result->item_s, one_by_one),
                result->exposed_s[DL_CAUSE_BUBBLE]);
}

static void fill_report(struct dl_session *s, struct dl_engine *engine, struct dl_training *training)
{
    s->report = (struct dl_run_report){.topology = s->machine.topology,
                                       .transport = &s->machine.transport,
                                       .job = &s->job,
                                       .model = &s->model,
                                       .device = &s->device,
                                       .lowered = &s->lowered,
                                       .device_of_rank = s->device_of_rank,
                                       .memory = s->memory,
                                       .engine = s->request.engine,
                                       .fidelity = s->request.fidelity,
                                       .is_alone = engine->kind->alone,
                                       .names_software = names_software(s),
                                       .result = dl_training_result(training, &s->err),
                                       .stages = causes_by_stage(s, training),
                                       .n_events = engine->kind->n_events(engine),
                                       .tuner_note = s->estimator.note};
    s->report.schedule_bubble_s = schedule_bubble_s(s, &s->report.result);
}

/* Known only where all that may meet on links was simulated there. */
static void note_links(struct dl_session *s, const struct dl_wire *wire)
{
    struct dl_links *const links = &s->report.links;
    links->topology = s->machine.topology;
    links->n = dl_wire_busiest(wire, links->items, DL_MOST_LINKS);
    if (s->timeline) {
        s->loads = dl_alloc(links->topology->n_links * sizeof *s->loads);
        s->n_loads = dl_wire_loads(wire, s->loads);
    }
    if (is_analytic(s) || s->lowered.n_timed_alone + s->report.result.n_timed_alone > 0) return;
    links->simulated_s = s->report.result.end_s;
    links->told_s = s->report.result.step_s;
}

static void announce_long_run(const struct dl_session *s)
{
    if (s->request.is_long) s->request.is_long();
}

/* Figures that are each in their range may be out of reach together. */
static enum dl_status check_step(struct dl_session *s)
{
    const double step_s = s->report.result.step_s;
    if (s->err.status || (isfinite(step_s) && step_s > 0)) return s->err.status;
    return dl_fail(&s->err, DL_RANGE, s->device_doc.where,
                   "with these figures a step takes %g s, which is no time; change those that are very small or large",
                   step_s);
}

enum dl_status dl_session_run(struct dl_session *s)
{
    if (s->err.status) return s->err.status;
    if (s->lowered.plays_beyond) announce_long_run(s);
    const struct dl_engine_link *const kept = dl_session_kept_links(s);
    struct dl_engine_link *const own = kept || is_analytic(s) ? NULL : dl_machine_links(&s->machine);
    struct dl_engine *const engine = make_engine(s, kept ? kept : own);
    struct dl_wire *const wire = dl_wire_new(engine, s->machine.topology, s->machine.bytes_per_s, &s->err);
    dl_scenario_start(&s->scenario, wire);
    struct dl_training *const training = start(s, engine, wire);
    if (!s->lowered.plays_beyond && dl_training_plays_beyond(training)) announce_long_run(s);
    if (!s->err.status) engine->kind->run(engine);
    fill_report(s, engine, training);
    if (s->request.explain) keep_choices(s, training);
    if (s->timeline) dl_timeline_end(s->timeline, engine);
    dl_training_free(training); /* exchanges book their bytes when they are freed */
    note_links(s, wire);
    dl_wire_free(wire);
    engine->kind->destroy(engine);
    dl_free(own);
    return check_step(s);
}
