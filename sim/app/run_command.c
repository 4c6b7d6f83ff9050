/* run_command.c - a whole training step, told as text, JSON, a trace, or the programs behind it. */
#include <stdio.h>

#include "sim/app/commands.h"
#include "sim/app/sensitivity_runs.h"
#include "sim/report/progress.h"

struct request {
    struct dl_session_request session;
    const char *json, *trace;
    bool print_program, sensitivity;
};

#define OF_SESSION(member) offsetof(struct request, session.member)
static const struct dl_option options[] = {
    {"topo", DL_OPT_TEXT, OF_SESSION(topo.name), true, 0, 0, NULL},
    {"strategy", DL_OPT_TEXT, OF_SESSION(strategy.name), true, 0, 0, NULL},
    {"workload", DL_OPT_TEXT, OF_SESSION(workload.name), false, 0, 0, NULL},
    {"devices", DL_OPT_COUNT, OF_SESSION(devices), false, 1, 2147483647.0, NULL},
    {"placement", DL_OPT_TEXT, OF_SESSION(placement), false, 0, 0, NULL},
    {"software", DL_OPT_TEXT, OF_SESSION(software.name), false, 0, 0, NULL},
    {"transport", DL_OPT_TEXT, OF_SESSION(transport), false, 0, 0, NULL},
    {"engine", DL_OPT_CHOICE, OF_SESSION(engine), false, 0, 0, dl_session_engines},
    {"fidelity", DL_OPT_CHOICE, OF_SESSION(fidelity), false, 0, 0, dl_session_fidelities},
    {"scenario", DL_OPT_TEXT, OF_SESSION(scenario), false, 0, 0, NULL},
    {"iterations", DL_OPT_COUNT, OF_SESSION(iterations), false, 1, 10000, NULL},
    {"seed", DL_OPT_COUNT, OF_SESSION(seed), false, 0, 9007199254740992.0, NULL},
    {"json", DL_OPT_TEXT, offsetof(struct request, json), false, 0, 0, NULL},
    {"trace", DL_OPT_TEXT, offsetof(struct request, trace), false, 0, 0, NULL},
    {"print-program", DL_OPT_FLAG, offsetof(struct request, print_program), false, 0, 0, NULL},
    {"sensitivity", DL_OPT_FLAG, offsetof(struct request, sensitivity), false, 0, 0, NULL},
    {"set", DL_OPT_TEXTS, OF_SESSION(set), false, 0, 0, NULL},
};

static enum dl_status write_trace(const struct request *q, struct dl_session *s)
{
    struct dl_trace_left_out left_out;
    if (!s->trace || dl_trace_write(s->trace, q->trace, &left_out, &s->err)) return s->err.status;
    if (left_out.instructions)
        fprintf(stderr, "dlsim: --trace: single instructions are left out: %ju more slices\n",
                (uintmax_t)left_out.instructions);
    if (left_out.slices)
        fprintf(stderr, "dlsim: --trace: the last %ju slices are left out\n", (uintmax_t)left_out.slices);
    return DL_OK;
}

static void print_programs(const struct dl_session *s)
{
    for (uint32_t i = 0; i < s->job.setting.ways[DL_AXIS_PIPELINE]; i++)
        dl_program_print(&s->lowered.programs[i], s->lowered.calls, stdout);
}

static enum dl_status find_sensitivity(struct dl_session *s, struct dl_sensitivity *out)
{
    struct dl_json doc = {0};
    struct dl_discrepancy model;
    if (!dl_discrepancy_load(s->arena, &doc, &s->err) && !dl_discrepancy_of(doc, s, &model, &s->err))
        *out = dl_sensitivity_find(
            &(struct dl_sensitivity_request){.session = s, .what = "runs with a changed constant", .model = &model});
    json_decref(doc.value);
    return s->err.status;
}

/* Runs with changed constants are in children, which must not have begun a simulation. */
static enum dl_status play(const struct request *q, struct dl_session *s, struct dl_sensitivity *sensitivity)
{
    if (q->sensitivity && find_sensitivity(s, sensitivity)) return s->err.status;
    dl_session_run(s);
    dl_progress_end();
    if (q->sensitivity) s->report.sensitivity = sensitivity;
    return s->err.status;
}

static enum dl_status tell(const struct request *q, struct dl_session *s)
{
    dl_session_list_assumptions(s);
    dl_session_find_remedies(s);
    if (q->json) return dl_write_json(q->json, dl_run_report_json(&s->report), &s->err);
    dl_run_report_text(&s->report);
    return DL_OK;
}

static int answer(struct request *q, struct dl_error *err)
{
    struct dl_session s;
    struct dl_sensitivity sensitivity;
    int code = 0;
    q->session.trace = q->trace != NULL;
    q->session.progress = dl_progress();
    dl_session_open(&s, &q->session);
    if (!s.err.status && q->print_program)
        print_programs(&s);
    else if (!s.err.status && !play(q, &s, &sensitivity) && !write_trace(q, &s) && !tell(q, &s))
        code = dl_run_fits(&s.report) ? 0 : 1;
    *err = s.err;
    dl_session_close(&s);
    return code;
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {0};
    if (dl_read_options(argc, argv, options, DL_COUNT(options), &q, NULL, err)) return 0;
    if (q.sensitivity && q.print_program)
        return (int)dl_fail(err, DL_IMPOSSIBLE, "--sensitivity", "needs a run, which --print-program does not do");
    return answer(&q, err);
}

const struct dl_command dl_command_run = {
    .name = "run",
    .doc = "simulate a training step (the word `run` may be left out)",
    .usage = "[run] --topo T --strategy S [--workload W] [--devices N] [--fidelity step|fluid] [--scenario FILE] "
             "[--iterations N] [--seed N] "
             "[--json FILE|-] [--trace FILE] [--print-program] [--sensitivity] [--set PATH=JSON]...",
    .run = run,
};
