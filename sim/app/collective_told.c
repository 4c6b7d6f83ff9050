/* collective_told.c - the answer of `dlsim collective`, as text, JSON and pictures. */
#include "sim/app/collective_run.h"
#include "sim/core/output.h"
#include "sim/draw/pictures.h"
#include "sim/report/asked.h"
#include "sim/report/explain_collective.h"
#include "sim/report/progress.h"
#include "sim/session/fidelities.h"

static void add_sizes(const struct dl_sizes_range *sizes, struct dl_fingerprint *f)
{
    dl_fingerprint_number(f, "sizes_from", sizes->from);
    dl_fingerprint_number(f, "sizes_to", sizes->to);
    dl_fingerprint_number(f, "sizes_n", (double)sizes->n);
}

static void find_fingerprint(const struct dl_collective_run *r, char sha256[DL_SHA256_HEX])
{
    const struct dl_collective_request *const q = &r->request;
    const char *const texts[][2] = {{"op", q->op},
                                    {"algorithm", q->algo},
                                    {"protocol", q->protocol},
                                    {"payload", q->payload},
                                    {"placement", q->placement},
                                    {"engine", q->engine},
                                    {"fidelity", q->fidelity}};
    const struct {
        const char *what;
        double x;
    } numbers[] = {{"bytes", r->choice.collective.bytes},
                   {"devices", (double)q->devices},
                   {"chunks", (double)q->chunks},
                   {"seed", (double)q->seed}};
    struct dl_fingerprint f;
    dl_fingerprint_begin(&f);
    dl_machine_fingerprint(&r->machine, &f);
    dl_fingerprint_json(&f, "scenario", r->scenario_doc.value);
    for (size_t i = 0; i < DL_COUNT(texts); i++) dl_fingerprint_text(&f, texts[i][0], texts[i][1]);
    for (size_t i = 0; i < DL_COUNT(numbers); i++) dl_fingerprint_number(&f, numbers[i].what, numbers[i].x);
    if (dl_collective_has_sizes(q)) add_sizes(&q->sizes, &f);
    dl_fingerprint_end(&f, sha256);
}

static struct dl_asked what_was_asked(const struct dl_collective_run *r)
{
    const struct dl_collective_request *const q = &r->request;
    struct dl_asked asked = {.command = "collective",
                             .topology = r->machine.topology->name,
                             .transport = r->machine.transport.name,
                             .scenario = r->scenario_doc.value ? dl_document_name(r->scenario_doc, r->arena) : NULL,
                             .n_devices = (uint32_t)q->devices,
                             .placement = q->placement,
                             .seed = q->seed,
                             .engine = q->engine,
                             .fidelity = dl_fidelity_name(r->report.fluid),
                             .overrides = q->set.items,
                             .n_overrides = q->set.n};
    find_fingerprint(r, asked.sha256);
    return asked;
}

static enum dl_status explain(struct dl_collective_run *r, struct dl_error *err)
{
    dl_explanation_init(&r->explanation, r->arena);
    return dl_explain_collective(&r->explanation,
                                 &(struct dl_explained_collective){.report = &r->report,
                                                                   .estimator = &r->estimator,
                                                                   .system_doc = r->machine.system_doc,
                                                                   .transport_doc = r->machine.transport_doc,
                                                                   .has_scenario = r->scenario_doc.value != NULL},
                                 err);
}

static json_t *report_json(const struct dl_collective_run *r)
{
    json_t *const report = dl_collective_report_json(&r->report);
    if (r->request.explain) json_object_set_new(report, "explain", dl_explanation_json(&r->explanation));
    return report;
}

static enum dl_status draw(const struct dl_collective_run *r, struct dl_error *err)
{
    const struct dl_collective_request *const q = &r->request;
    const struct dl_collective_picture picture = {
        .report = &r->report,
        .load = {.topology = r->machine.topology,
                 .devices = r->device,
                 .n_devices = (uint32_t)q->devices,
                 .links = r->loads,
                 .n_links = r->n_loads,
                 .seconds = r->report.links.simulated_s,
                 .unknown = dl_engine_find(q->engine)->alone
                                ? "Loads are not known: the analytic engine puts nothing on links."
                                : NULL}};
    return q->svg ? dl_draw_collective(&picture, q->picture ? q->picture : dl_collective_pictures[0], q->svg, err)
                  : DL_OK;
}

static void list_inputs(const struct dl_collective_run *r, struct dl_assumptions *assumptions,
                        struct dl_files_read *files)
{
    dl_assumptions_add_of_step(assumptions, r->machine.system_doc, r->arena);
    dl_assumptions_add(assumptions, r->machine.transport_doc, r->arena);
    dl_machine_list_files(&r->machine, r->arena, files);
}

enum dl_status dl_collective_tell(struct dl_collective_run *r, struct dl_error *err)
{
    struct dl_collective_report *const report = &r->report;
    dl_progress_end();
    report->topology = r->machine.topology;
    report->transport = &r->machine.transport;
    report->choice = &r->choice;
    report->engine = r->request.engine;
    list_inputs(r, &report->assumptions, &report->files);
    const struct dl_asked asked = what_was_asked(r);
    const char *const json = r->request.json;
    if (r->request.explain && explain(r, err)) return err->status;
    if (json && dl_write_json(json, dl_answer(&asked, report_json(r)), err)) return err->status;
    if (draw(r, err)) return err->status;
    if (!dl_tells_text(json) || (r->request.svg && dl_is_same_file(r->request.svg, "-"))) return DL_OK;
    dl_collective_report_text(report, r->request.links);
    if (r->request.explain) dl_explanation_print(&r->explanation);
    return DL_OK;
}

enum dl_status dl_collective_tell_sizes(struct dl_collective_run *r, struct dl_sizes *sizes, struct dl_error *err)
{
    const char *const json = r->request.json;
    const struct dl_asked asked = what_was_asked(r);
    sizes->topology = r->machine.topology;
    sizes->transport = &r->machine.transport;
    sizes->op = dl_op_named(r->request.op);
    sizes->group = &r->group;
    sizes->engine = asked.engine;
    sizes->fidelity = asked.fidelity;
    dl_progress_end();
    list_inputs(r, &sizes->assumptions, &sizes->files);
    if (json && dl_write_json(json, dl_answer(&asked, dl_sizes_report_json(sizes)), err)) return err->status;
    if (dl_tells_text(json)) dl_sizes_report_text(sizes);
    return DL_OK;
}
