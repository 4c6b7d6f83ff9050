#include "sim/session/session.h"

#include <math.h>
#include <string.h>

#include "sim/cost/device_models.h"
#include "sim/cost/operations.h"
#include "sim/engine/engines.h"
#include "sim/memory/held.h"
#include "sim/plan/plan.h"
#include "sim/session/ideal.h"
#include "sim/session/own_memory.h"
#include "sim/session/session_parts.h"
#include "strategies/kept_schedules.h"

const struct dl_engine_kind *dl_session_engine(const struct dl_session *s) { return dl_engine_find(s->request.engine); }

/* In fluid fidelity no more than take some seconds. A bundle takes 0.5 to 3.5 microseconds where few share its links; a
 * collective of many ranks crosses those of many others. */
static struct dl_played most_played(const struct dl_session *s)
{
    const struct dl_played *const asked = &s->request.most.in_step;
    const double most_collectives = 1e6, most_bundles = 4e6;
    if (is_analytic(s)) return (struct dl_played){0};
    if (!is_fluid(s)) return (struct dl_played){INFINITY, INFINITY};
    return (struct dl_played){asked_or(asked->collectives, most_collectives), asked_or(asked->bundles, most_bundles)};
}

/* Of what is too much as a whole, a part that takes about half a second. A run with many messages between stages takes
 * longer already, and nothing is added. */
static double most_in_part(const struct dl_session *s)
{
    const double most_bundles = 2.5e5;
    return asked_or(s->request.most.in_part, most_bundles);
}

static const uint32_t *changing_links(const struct dl_session *s)
{
    const struct dl_scenario *const scenario = &s->scenario;
    uint32_t *const links = dl_arena_alloc(s->arena, (scenario->n_changes + 1) * sizeof *links);
    for (size_t i = 0; i < scenario->n_changes; i++) links[i] = scenario->changes[i].link;
    return links;
}

static enum dl_status lower(struct dl_session *s)
{
    dl_estimator_init(&s->estimator, s->machine.topology, &s->machine.transport, s->machine.bytes_per_s);
    if (s->request.like) {
        s->estimator.kept = dl_machines_choices(s->machine.keeper, s->machine.topology, s->request.like);
        s->estimator.shares_kept = true;
    } else if (s->request.network) {
        s->estimator.kept = s->request.network->estimator.kept;
        s->estimator.shares_kept = s->estimator.kept;
    }
    s->estimator.fluid = is_fluid(s);
    s->estimator.by_message = !is_fluid(s);
    const struct dl_lower_request what = {.job = &s->job,
                                          .model = &s->model,
                                          .device = &s->device,
                                          .estimator = &s->estimator,
                                          .device_of_rank = s->device_of_rank,
                                          .schedules = s->request.like ? s->request.like->schedules : s->schedules};
    const struct dl_plan_request how = {.job = &s->job,
                                        .topology = s->machine.topology,
                                        .device_of_rank = s->device_of_rank,
                                        .most_played = most_played(s),
                                        .most_in_part = most_in_part(s),
                                        .changing = changing_links(s),
                                        .n_changing = s->scenario.n_changes};
    return dl_lower(&what, s->arena, &s->lowered, &s->err) ? s->err.status
                                                           : dl_plan_lowered(&how, s->arena, &s->lowered, &s->err);
}

static void count_memory(struct dl_session *s)
{
    const uint32_t n_stages = dl_n_stages(&s->job.setting);
    const struct dl_step step = dl_session_step(s);
    s->memory = dl_alloc(n_stages * sizeof *s->memory);
    dl_memory_with_held(&(struct dl_held_request){step.programs, step.calls, &s->job.setting, s->device.memory_bytes},
                        s->memory);
}

enum dl_status dl_session_open(struct dl_session *s, const struct dl_session_request *request)
{
    if (dl_session_read(s, request) ||
        dl_own_memory_check(
            &(struct dl_own_run){s->machine.topology, &s->job, dl_session_engine(s), s->request.timeline},
            s->request.memory_bytes, &s->err))
        return s->err.status;
    dl_session_idealize(s);
    dl_session_kept_links(s); /* so that children that run it find them */
    if (lower(s) || dl_session_read_program(s)) return s->err.status;
    count_memory(s);
    return DL_OK;
}

bool dl_session_has_experts(const struct dl_session *s)
{
    double parameters = 0;
    for (size_t i = 0; i < s->model.n_layers; i++) parameters += s->model.layers[i].expert_parameters;
    return parameters > 0;
}

enum dl_domain dl_session_domain(const struct dl_session *s)
{
    if (s->model.data.stored_bytes > 0) return DL_DOMAIN_FILES;
    return s->model.tokens_per_sample > 0 ? DL_DOMAIN_TOKENS : DL_DOMAIN_IMAGES;
}

static bool is_named(const struct dl_session *s, struct dl_json doc, const char *name)
{
    return doc.value && strcmp(dl_document_name(doc, s->arena), name) == 0;
}

/* Constants of the program have no facts. */
static void list_scans(struct dl_session *s)
{
    static const char of_gpus[] = "scans of state spaces: a unit takes as many clocks for their products as one of an "
                                  "H200, where alone they were timed",
                      of_others[] = "scans of state spaces: their products go at the peak of GEMMs; nothing was timed";
    const bool is_timed =
        is_named(s, s->device_doc, dl_products_timed_on) || is_named(s, s->chip_doc, dl_products_timed_on);
    if (is_timed || !dl_model_find(&s->model, dl_kernel_is_timed_by_products)) return;
    dl_assumptions_add_one(&s->report.assumptions, dl_json_member(s->device_doc, "figures", s->arena).where,
                           s->device.model == &dl_device_gpu ? of_gpus : of_others);
}

void dl_session_list_assumptions(struct dl_session *s)
{
    const struct dl_json docs[] = {s->machine.system_doc, s->device_doc, s->software_doc, s->machine.transport_doc};
    const struct dl_json wishes[] = {s->workload_doc, s->strategy_doc};
    const size_t n_docs = DL_COUNT(docs) - (s->job.n_devices == 1); /* that one sends nothing */
    if (!s->report.campaign) s->report.assumptions.device = &s->device;
    for (size_t i = 0; i < n_docs; i++)
        (s->report.campaign ? dl_assumptions_add : dl_assumptions_add_of_step)(&s->report.assumptions, docs[i],
                                                                               s->arena);
    for (size_t i = 0; i < DL_COUNT(wishes); i++)
        dl_assumptions_add_stated(&s->report.assumptions, wishes[i], s->arena);
    list_scans(s);
}

void dl_session_list_files(struct dl_session *s)
{
    struct dl_files_read *const files = &s->report.files;
    dl_machine_list_files(&s->machine, s->arena, files);
    dl_files_read_add(files, "device", DL_DEVICES, s->device_doc, s->arena);
    dl_files_read_add(files, "strategy", DL_STRATEGIES, s->strategy_doc, s->arena);
    dl_files_read_add(files, "workload", DL_WORKLOADS, s->workload_doc, s->arena);
    dl_files_read_add(files, "software", DL_SOFTWARE, s->software_doc, s->arena);
}

/* A longer pipeline or smaller micro-batches may have a schedule that is larger than this computer's memory. */
static bool has_room(const void *user, const struct dl_job *changed)
{
    const struct dl_session *const s = user;
    const struct dl_own_run run = {s->machine.topology, &s->job, dl_session_engine(s), s->request.timeline};
    return dl_own_memory_holds(&run, s->request.memory_bytes, changed);
}

void dl_session_find_remedies(struct dl_session *s)
{
    if (dl_run_fits(&s->report)) return;
    dl_remedies_find(&(struct dl_remedy_request){.strategy = s->strategy_doc,
                                                 .workload = s->workload_doc,
                                                 .n_devices = s->job.n_devices,
                                                 .software = &s->software,
                                                 .device = &s->device,
                                                 .estimator = &s->estimator,
                                                 .placement = s->request.placement,
                                                 .seed = s->request.seed,
                                                 .has_room = has_room,
                                                 .user = s},
                     s->arena, &s->remedies);
    s->report.remedies = &s->remedies;
}

void dl_session_close(struct dl_session *s)
{
    const struct dl_json docs[] = {s->strategy_doc, s->workload_doc,     s->device_doc,
                                   s->timed_doc,    s->convolutions_doc, s->chip_doc,
                                   s->software_doc, s->scenario_doc,     s->instructions_doc};
    dl_timeline_free(s->timeline);
    dl_free(s->loads);
    dl_lowered_release(&s->lowered, dl_n_stages(&s->job.setting));
    dl_kept_schedules_free(s->schedules);
    dl_read_step_release(&s->program);
    if (s->estimator.topology) dl_estimator_release(&s->estimator);
    dl_assumptions_release(&s->report.assumptions);
    dl_sources_release(&s->report.failing_sources);
    dl_sources_release(&s->report.power_sources);
    dl_remedies_release(&s->remedies);
    dl_explanation_release(&s->explanation);
    dl_machine_close(&s->machine);
    dl_free(s->device_of_rank);
    dl_free(s->memory);
    for (size_t i = 0; i < DL_COUNT(docs); i++) json_decref(docs[i].value);
    dl_arena_free(s->arena);
}
