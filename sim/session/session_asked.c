/* session_asked.c - what a session was asked, by name and by content. */
#include "sim/session/session.h"

static void add(const struct dl_session *s, bool with_strategy, struct dl_fingerprint *f)
{
    static const char *const names[] = {"workload", "software", NULL};
    const struct dl_session_request *const q = &s->request;
    dl_machine_fingerprint(&s->machine, f);
    dl_fingerprint_json(f, "device", s->device_doc.value);
    dl_fingerprint_json(f, "timed device", s->timed_doc.value);
    dl_fingerprint_json(f, "device of convolutions", s->convolutions_doc.value);
    dl_fingerprint_json(f, "device of the same chip", s->chip_doc.value);
    dl_fingerprint_json(f, "device of instructions", s->instructions_doc.value);
    if (with_strategy) dl_fingerprint_document(f, "strategy", s->strategy_doc.value, names);
    dl_fingerprint_json(f, "workload", s->workload_doc.value);
    dl_fingerprint_text(f, "software", s->software.name); /* errors of the model are known by its name */
    dl_fingerprint_json(f, "software", s->software_doc.value);
    dl_fingerprint_json(f, "scenario", s->scenario_doc.value);
    dl_fingerprint_text(f, "program", s->program_text);
    dl_fingerprint_text(f, "placement", q->placement);
    dl_fingerprint_text(f, "engine", q->engine);
    dl_fingerprint_text(f, "fidelity", q->fidelity);
    dl_fingerprint_number(f, "devices", s->job.n_devices);
    dl_fingerprint_number(f, "seed", (double)q->seed);
    dl_fingerprint_number(f, "iterations", (double)q->iterations);
    dl_fingerprint_number(f, "ideal", q->ideal);
}

void dl_session_fingerprint(const struct dl_session *s, struct dl_fingerprint *f) { add(s, true, f); }

void dl_session_fingerprint_setup(const struct dl_session *s, struct dl_fingerprint *f) { add(s, false, f); }

void dl_session_sha256(const struct dl_session *s, char sha256[DL_SHA256_HEX])
{
    struct dl_fingerprint f;
    dl_fingerprint_begin(&f);
    dl_session_fingerprint(s, &f);
    dl_fingerprint_end(&f, sha256);
}

struct dl_asked dl_session_asked(const struct dl_session *s)
{
    const struct dl_session_request *const q = &s->request;
    return (struct dl_asked){
        .topology = s->machine.topology->name,
        .device = s->device.name,
        .transport = s->machine.transport.name,
        .workload = s->model.name,
        .strategy = dl_document_name(s->strategy_doc, s->arena),
        .software = s->software.name,
        .scenario = s->scenario_doc.value ? dl_document_name(s->scenario_doc, s->arena) : NULL,
        .program = q->program ? dl_base_name(q->program) : NULL,
        .device_memory_bytes = s->device.memory_bytes,
        .n_devices = s->job.n_devices,
        .setting = &s->job.setting,
        .tokens_per_sample = s->model.tokens_per_sample,
        .placement = q->placement,
        .seed = q->seed,
        .engine = q->engine,
        .fidelity = q->fidelity,
        .overrides = q->set.items,
        .n_overrides = q->set.n,
    };
}

json_t *dl_session_answer(struct dl_session *s)
{
    struct dl_asked asked = dl_session_asked(s);
    asked.command = "run";
    dl_session_sha256(s, asked.sha256);
    return dl_answer(&asked, dl_run_report_json(&s->report));
}
