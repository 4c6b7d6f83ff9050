/* run_command.c - a whole training step, told as text, JSON, a trace, a page, pictures, or the programs behind it. */
#include <stdio.h>

#include "sim/app/commands.h"
#include "sim/app/deprecated.h"
#include "sim/core/output.h"
#include "sim/draw/page.h"
#include "sim/draw/pictures.h"
#include "sim/report/progress.h"
#include "sim/report/trace.h"
#include "sim/session/session_pictures.h"
#include "sim/study/sensitivity_runs.h"

struct request {
    struct dl_session_request session;
    const char *json, *trace, *html, *svg, *picture;
    struct dl_amount amount;
    struct dl_checkpoints checkpoints;
    struct dl_facility site; /* 0: as the system says */
    bool print_program, sensitivity, links, explain, fits_exit_0, gantt;
};

static bool is_stdout(const char *path) { return path && dl_is_same_file(path, "-"); }

/* Then there is no room for text. */
static bool uses_stdout(const struct request *q)
{
    return !dl_tells_text(q->json) || is_stdout(q->trace) || !dl_tells_text(q->html) || is_stdout(q->svg);
}

#define OF_SESSION(member) offsetof(struct request, session.member)
static const struct dl_option options[] = {
    {"topo", DL_OPT_TEXT, OF_SESSION(topo.name), true, 0, 0, NULL,
     "the machine: a name of `dlsim list topologies`, or a file"},
    {"strategy", DL_OPT_TEXT, OF_SESSION(strategy.name), true, 0, 0, NULL,
     "what runs on how many devices: a name of `dlsim list strategies`, or a file"},
    {"workload", DL_OPT_TEXT, OF_SESSION(workload.name), false, 0, 0, NULL, "the model, in place of the strategy's"},
    {"devices", DL_OPT_COUNT, OF_SESSION(devices), false, 1, 2147483647.0, NULL,
     "number of devices; that of the strategy, or the product of its ways, if absent"},
    {"placement", DL_OPT_TEXT, OF_SESSION(placement), false, 0, 0, NULL,
     "packed, even, spread, random or list:DEVICE,...; even if absent: as many ranks on each node"},
    {"software", DL_OPT_TEXT, OF_SESSION(software.name), false, 0, 0, NULL,
     "the framework, in place of the strategy's"},
    {"transport", DL_OPT_TEXT, OF_SESSION(transport), false, 0, 0, NULL,
     "the communication library, in place of the machine's"},
    {"engine", DL_OPT_CHOICE, OF_SESSION(engine), false, 0, 0, dl_engine_names,
     "how time is simulated; simgrid if absent"},
    {"fidelity", DL_OPT_CHOICE, OF_SESSION(fidelity), false, 0, 0, dl_fidelities,
     "collectives message by message, or as flows; fluid if absent, unless messages hold ports"},
    {"scenario", DL_OPT_TEXT, OF_SESSION(scenario), false, 0, 0, NULL,
     "a file of faults: slow or failed links, stragglers, jitter"},
    {"iterations", DL_OPT_COUNT, OF_SESSION(iterations), false, 1, 10000, NULL,
     "steps to simulate; until two are alike if absent"},
    {"seed", DL_OPT_COUNT, OF_SESSION(seed), false, 0, 9007199254740992.0, NULL,
     "seed of --placement random, of jitter and of failures; 0 if absent"},
    {"json", DL_OPT_OUTPUT, offsetof(struct request, json), false, 0, 0, NULL,
     "the answer for programs too; - is standard output, in place of the text"},
    {"trace", DL_OPT_OUTPUT, offsetof(struct request, trace), false, 0, 0, NULL,
     "a timeline of every stage and replica for Perfetto or chrome://tracing; - is standard output"},
    {"html", DL_OPT_OUTPUT, offsetof(struct request, html), false, 0, 0, NULL,
     "the answer as a page with its timeline and figures, one file for any browser; - is standard output"},
    {"gantt", DL_OPT_FLAG, offsetof(struct request, gantt), false, 0, 0, NULL,
     "draw the schedule of the stages in the terminal, below the text"},
    {"svg", DL_OPT_OUTPUT, offsetof(struct request, svg), false, 0, 0, NULL,
     "draw the step: schedule, memory, causes, and links by load; - is standard output, in place of the text"},
    {"picture", DL_OPT_CHOICE, offsetof(struct request, picture), false, 0, 0, dl_run_pictures,
     "which picture --svg draws; all on one sheet if absent"},
    {"print-program", DL_OPT_FLAG, offsetof(struct request, print_program), false, 0, 0, NULL,
     "print what the ranks of each stage execute, simulate nothing"},
    {"program", DL_OPT_TEXT, OF_SESSION(program), false, 0, 0, NULL,
     "play this program, as --print-program prints it, in place of the strategy's"},
    {"sensitivity", DL_OPT_FLAG, offsetof(struct request, sensitivity), false, 0, 0, NULL,
     "how much the step changes per 1 % of each constant, and an interval of the step"},
    {"links", DL_OPT_FLAG, offsetof(struct request, links), false, 0, 0, NULL,
     "the ten links with the highest load, in the text too; nothing if their loads are not known"},
    {"explain", DL_OPT_FLAG, offsetof(struct request, explain), false, 0, 0, NULL,
     "cause by cause, the formulas with their numbers put in, their sources, and why the simulation differs"},
    {"tokens", DL_OPT_NUMBER, offsetof(struct request, amount.tokens), false, 1, 1e18, NULL,
     "tokens that the whole run trains on: its steps, days, device hours, energy, carbon and money"},
    {"samples", DL_OPT_NUMBER, offsetof(struct request, amount.samples), false, 1, 1e18, NULL, "the same in samples"},
    {"epochs", DL_OPT_NUMBER, offsetof(struct request, amount.epochs), false, 1e-6, 1e9, NULL,
     "the same in epochs: how often each sample of --dataset is seen"},
    {"dataset", DL_OPT_NUMBER, offsetof(struct request, amount.dataset), false, 1, 1e18, NULL, "samples of an epoch"},
    {"checkpoint-steps", DL_OPT_COUNT, offsetof(struct request, checkpoints.steps), false, 1, 1e12, NULL,
     "steps of a whole run from checkpoint to checkpoint; as many as are best for its failures if absent"},
    {"checkpoint-async", DL_OPT_FLAG, offsetof(struct request, checkpoints.asynchronous), false, 0, 0, NULL,
     "checkpoints stop training only while devices copy them to their hosts"},
    {"pue", DL_OPT_NUMBER, offsetof(struct request, site.pue), false, 1, 10, NULL,
     "power of the site over that of its machines, in place of the system's"},
    {"carbon-g-per-kwh", DL_OPT_NUMBER, offsetof(struct request, site.carbon_g_per_kwh), false, 0.001, 5000, NULL,
     "grams of CO2e for a kWh, in place of the system's"},
    {"usd-per-kwh", DL_OPT_NUMBER, offsetof(struct request, site.usd_per_kwh), false, 1e-6, 1000, NULL,
     "price of energy, in place of the system's"},
    {"usd-per-device-hour", DL_OPT_NUMBER, offsetof(struct request, site.usd_per_device_hour), false, 1e-6, 1e6, NULL,
     "price of a device for an hour, in place of the system's"},
    {"fits-exit-0", DL_OPT_FLAG, offsetof(struct request, fits_exit_0), false, 0, 0, NULL,
     "exit status 0 also when the step does not fit into memory, which is 1 if absent"},
    {"set", DL_OPT_TEXTS, OF_SESSION(set), false, 0, 0, NULL,
     "override a value of a file: topo.nodes=4, microbatch=2; +stack.zero.stage=1 adds an entry, -stack.zero removes "
     "it; may be repeated"},
};

static enum dl_status write_trace(const struct request *q, struct dl_session *s)
{
    const struct dl_timeline *const t = s->timeline;
    uint64_t instructions;
    if (!q->trace || dl_trace_write(t, q->trace, &instructions, &s->err)) return s->err.status;
    if (t->left_out.replicas)
        fprintf(stderr, "dlsim: --trace: only the first replica is shown, %u more are left out\n",
                t->left_out.replicas);
    if (instructions)
        fprintf(stderr, "dlsim: --trace: single instructions are left out: %ju more slices\n", (uintmax_t)instructions);
    if (t->left_out.slices)
        fprintf(stderr, "dlsim: --trace: the last %ju slices are left out\n", (uintmax_t)t->left_out.slices);
    return DL_OK;
}

static void print_programs(const struct dl_session *s)
{
    const struct dl_step step = dl_session_step(s);
    dl_step_print(&step, stdout);
}

static enum dl_status find_sensitivity(struct dl_session *s, struct dl_sensitivity *out)
{
    struct dl_json doc = {0};
    struct dl_discrepancy model;
    const struct dl_sensitivity_request request = {
        .session = s, .what = "runs with a changed constant", .model = &model};
    if (!dl_discrepancy_load(s->arena, &doc, &s->err) && !dl_discrepancy_of(doc, s, NULL, &model, &s->err))
        dl_sensitivity_find(&request, out, &s->err);
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

static void say_that_it_is_long(void)
{
    dl_progress_end();
    fputs("dlsim: --scenario: links change during the run, so every collective that may cross them is simulated, which "
          "may take minutes\n",
          stderr);
}

static void add_whole_run(struct dl_fingerprint *f, const struct request *q)
{
    dl_fingerprint_number(f, "tokens", q->amount.tokens);
    dl_fingerprint_number(f, "samples", q->amount.samples);
    dl_fingerprint_number(f, "epochs", q->amount.epochs);
    dl_fingerprint_number(f, "dataset", q->amount.dataset);
    dl_fingerprint_number(f, "checkpoint steps", (double)q->checkpoints.steps);
    dl_fingerprint_number(f, "asynchronous checkpoints", q->checkpoints.asynchronous);
    dl_fingerprint_number(f, "pue", q->site.pue);
    dl_fingerprint_number(f, "carbon", q->site.carbon_g_per_kwh);
    dl_fingerprint_number(f, "price of energy", q->site.usd_per_kwh);
    dl_fingerprint_number(f, "price of devices", q->site.usd_per_device_hour);
}

static struct dl_asked what_was_asked(const struct request *q, struct dl_session *s)
{
    struct dl_asked asked = dl_session_asked(s);
    struct dl_fingerprint f;
    struct dl_json doc = {0};
    asked.command = "run";
    if (!q->json && !q->html) return asked; /* nobody sees the fingerprint, which takes as long as to read the files */
    dl_fingerprint_begin(&f);
    dl_session_fingerprint(s, &f);
    if (q->sensitivity && !dl_discrepancy_load(s->arena, &doc, &s->err))
        dl_fingerprint_json(&f, "discrepancy", doc.value);
    if (dl_amount_is_given(&q->amount)) add_whole_run(&f, q);
    dl_fingerprint_end(&f, asked.sha256);
    json_decref(doc.value);
    return asked;
}

static enum dl_status tell(const struct request *q, struct dl_session *s)
{
    const struct dl_asked asked = what_was_asked(q, s);
    dl_session_campaign(s, &q->amount, &q->site);
    if (dl_session_failures(s, &q->checkpoints)) return s->err.status;
    dl_session_list_assumptions(s);
    dl_session_list_files(s);
    dl_session_find_remedies(s);
    s->report.asked = &asked;
    if (q->explain && dl_session_explain(s)) return s->err.status;
    if (q->json && dl_write_json(q->json, dl_answer(&asked, dl_run_report_json(&s->report)), &s->err))
        return s->err.status;
    if (q->html && dl_session_write_page(s, &asked, q->html)) return s->err.status;
    if (q->svg && dl_session_draw(s, q->picture, q->svg)) return s->err.status;
    if (!uses_stdout(q)) dl_run_report_text(&s->report, q->links);
    if (q->gantt) dl_session_draw_in_terminal(s);
    return DL_OK;
}

static int answer(struct request *q, struct dl_error *err)
{
    struct dl_session s;
    struct dl_sensitivity sensitivity;
    int code = 0;
    q->session.timeline = q->trace || q->html || q->svg || q->gantt;
    q->session.explain = q->explain;
    q->session.progress = dl_progress();
    q->session.is_long = say_that_it_is_long;
    dl_progress_begin();
    if (!dl_session_open(&s, &q->session) && !dl_amount_check(&q->amount, s.model.tokens_per_sample, &s.err))
        dl_session_check_checkpoints(&s, &q->checkpoints);
    if (q->print_program || s.scenario.old_key) dl_progress_end();
    dl_tell_old_key(&s.scenario);
    if (!s.err.status && q->print_program)
        print_programs(&s);
    else if (!s.err.status && !play(q, &s, &sensitivity) && !write_trace(q, &s) && !tell(q, &s))
        code = dl_run_fits(&s.report) || q->fits_exit_0 ? 0 : 1;
    *err = s.err;
    dl_session_close(&s);
    return code;
}

/* Formulas are those of the strategy, and a program stays as it is where constants of files change. */
static enum dl_status check_program(const struct request *q, struct dl_error *err)
{
    const char *const needs_strategy = q->sensitivity ? "--sensitivity" : q->explain ? "--explain" : NULL;
    if (!q->session.program || !needs_strategy) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, needs_strategy, "tells what the strategy does; leave it or --program out");
}

/* Nothing that is asked for in vain. */
static enum dl_status check_together(const struct request *q, struct dl_error *err)
{
    const char *const needs_run = q->sensitivity                   ? "--sensitivity"
                                  : q->links                       ? "--links"
                                  : q->explain                     ? "--explain"
                                  : q->json                        ? "--json"
                                  : q->trace                       ? "--trace"
                                  : q->html                        ? "--html"
                                  : q->svg                         ? "--svg"
                                  : q->gantt                       ? "--gantt"
                                  : q->session.scenario            ? "--scenario"
                                  : q->session.iterations          ? "--iterations"
                                  : dl_amount_is_given(&q->amount) ? "--tokens"
                                                                   : NULL;
    if (q->print_program && needs_run)
        return dl_fail(err, DL_IMPOSSIBLE, needs_run, "needs a run, which --print-program does not do");
    if (check_program(q, err)) return err->status;
    if (q->picture && !q->svg) return dl_fail(err, DL_IMPOSSIBLE, "--picture", "needs --svg FILE to draw to");
    if ((q->checkpoints.steps || q->checkpoints.asynchronous) && !dl_amount_is_given(&q->amount))
        return dl_fail(err, DL_IMPOSSIBLE, q->checkpoints.steps ? "--checkpoint-steps" : "--checkpoint-async",
                       "is of a whole run; say how long it is by --tokens, --samples, or --epochs with --dataset");
    if (q->gantt && uses_stdout(q))
        return dl_fail(err, DL_IMPOSSIBLE, "--gantt",
                       "draws on standard output, where another answer goes; write that to a file");
    return DL_OK;
}

/* They are of no use without its length. */
static enum dl_status check_site(const struct request *q, struct dl_error *err)
{
    const struct dl_facility *const site = &q->site;
    const char *const given = site->pue > 0                   ? "--pue"
                              : site->carbon_g_per_kwh > 0    ? "--carbon-g-per-kwh"
                              : site->usd_per_kwh > 0         ? "--usd-per-kwh"
                              : site->usd_per_device_hour > 0 ? "--usd-per-device-hour"
                                                              : NULL;
    if (!given || dl_amount_is_given(&q->amount)) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, given,
                   "is of a whole run; say its length with --tokens, --samples, or --epochs and --dataset");
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {0};
    if (dl_read_options(argc, argv, options, DL_COUNT(options), &q, NULL, err) || check_together(&q, err) ||
        check_site(&q, err) || (q.html && dl_page_check(err)))
        return 0;
    return answer(&q, err);
}

const struct dl_command dl_command_run = {
    .name = "run",
    .doc = "simulate a training step (the word `run` may be left out)",
    .usage = "[run] --topo T --strategy S [--workload W] [--devices N] [--json FILE|-] [--set PATH=JSON]...",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
