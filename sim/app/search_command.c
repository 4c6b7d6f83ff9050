/* search_command.c - dlsim search: the best way to train a model on so many devices. */
#include <stdio.h>

#include "sim/app/commands.h"
#include "sim/session/own_memory.h"
#include "sim/session/pool.h"
#include "sim/study/search_intervals.h"
#include "sim/study/search_run.h"

struct request {
    struct dl_search_wanted wanted;
    const char *objective, *json, *output, *db;
    uint64_t top, intervals, jobs;
};

#define AT(member) offsetof(struct request, member)
static const struct dl_option options[] = {
    {"topo", DL_OPT_TEXT, AT(wanted.session.topo.name), true, 0, 0, NULL, "the machine, a name or a file"},
    {"workload", DL_OPT_TEXT, AT(wanted.session.workload.name), true, 0, 0, NULL, "the model, a name or a file"},
    {"devices", DL_OPT_COUNT, AT(wanted.session.devices), true, 1, 1e6, NULL,
     "devices of the machine that all are to be used"},
    {"global-batch", DL_OPT_COUNT, AT(wanted.global_batch), false, 1, 1e9, NULL,
     "samples of a step; as many as devices if absent"},
    {"software", DL_OPT_TEXT, AT(wanted.session.software.name), false, 0, 0, NULL, "the framework; ideal if absent"},
    {"objective", DL_OPT_CHOICE, AT(objective), false, 0, 0, dl_objectives, "what the best has most or least of"},
    {"headroom", DL_OPT_NUMBER, AT(wanted.headroom), false, 0, 0.99, NULL,
     "the part of a device's memory that must stay free, such as 0.15; 0 if absent"},
    {"pue", DL_OPT_NUMBER, AT(wanted.site.pue), false, 1, 10, NULL,
     "energy of the site over that of the machine; as the system file says if absent"},
    {"usd-per-kwh", DL_OPT_NUMBER, AT(wanted.site.usd_per_kwh), false, 1e-6, 1000, NULL,
     "price of energy; as the system file says if absent"},
    {"usd-per-device-hour", DL_OPT_NUMBER, AT(wanted.site.usd_per_device_hour), false, 1e-6, 1e6, NULL,
     "price of a device; as the system file says if absent"},
    {"fix", DL_OPT_TEXTS, AT(wanted.fixes), false, 0, 0, NULL,
     "a value of the strategy that all points have: stack.tensor.ways=8, precision='\"fp16\"'; may be repeated"},
    {"also", DL_OPT_TEXTS, AT(wanted.also), false, 0, 0, NULL,
     "search this axis too: order, placement, offload; may be repeated"},
    {"top", DL_OPT_COUNT, AT(top), false, 1, 10000, NULL,
     "so many of the best by the analytic engine are simulated; 10 if absent"},
    {"intervals", DL_OPT_COUNT, AT(intervals), false, 0, 10000, NULL,
     "so many of the best get an interval, and whether they can be told apart from the first; 5 if absent, 0: none"},
    {"db", DL_OPT_TEXT, AT(db), false, 0, 0, NULL,
     "a database of `dlsim sweep`: points that it has are taken from there, not run again"},
    {"jobs", DL_OPT_COUNT, AT(jobs), false, 1, 4096, NULL, "points at once; as many as processors if absent"},
    {"json", DL_OPT_OUTPUT, AT(json), false, 0, 0, NULL,
     "the answer for programs too; - is standard output, in place of the text"},
    {"output", DL_OPT_OUTPUT, AT(output), false, 0, 0, NULL, "the winner as a strategy file; also -o"},
};
#undef AT

enum { usual_top = 10, usual_intervals = 5 };

/* ---- the answer ---- */

static struct dl_asked what_was_asked(const struct dl_search_run *r, const struct request *q)
{
    struct dl_asked asked = dl_session_asked(&r->search.base);
    struct dl_fingerprint f;
    asked.command = "search";
    asked.strategy = NULL;
    asked.setting = NULL;
    asked.engine = dl_engine_names[0];
    asked.overrides = q->wanted.fixes.items;
    asked.n_overrides = q->wanted.fixes.n;
    dl_fingerprint_begin(&f);
    dl_session_fingerprint(&r->search.base, &f);
    dl_fingerprint_json(&f, "strategies", r->search.document);
    dl_fingerprint_text(&f, "objective", r->report.objective);
    dl_fingerprint_number(&f, "top", (double)q->top);
    dl_fingerprint_number(&f, "headroom", q->wanted.headroom);
    dl_fingerprint_number(&f, "pue", r->search.site.pue);
    dl_fingerprint_number(&f, "usd per kWh", r->search.site.usd_per_kwh);
    dl_fingerprint_number(&f, "usd per device hour", r->search.site.usd_per_device_hour);
    dl_fingerprint_number(&f, "intervals", (double)q->intervals);
    for (size_t i = 0; i < q->wanted.fixes.n; i++) dl_fingerprint_text(&f, "fixed", q->wanted.fixes.items[i]);
    for (size_t i = 0; i < q->wanted.also.n; i++) dl_fingerprint_text(&f, "also", q->wanted.also.items[i]);
    dl_fingerprint_end(&f, asked.sha256);
    return asked;
}

/* How a strategy file names a file that the command line has named. */
static enum dl_status name_in_file(const struct request *q, json_t *strategy, const char *key, const char *folder,
                                   const char *name, struct dl_arena *arena, struct dl_error *err)
{
    const char *path;
    if (!name) return DL_OK;
    if (dl_find_file(folder, key, name, arena, &path, err)) return err->status;
    const bool keeps = dl_is_shipped(path, folder, arena) || !dl_tells_text(q->output);
    json_object_set_new(strategy, key, json_string(keeps ? name : dl_name_from(q->output, path, arena)));
    return DL_OK;
}

static enum dl_status write_winner(struct dl_search_run *r, const struct request *q, struct dl_error *err)
{
    const struct dl_session_request *const s = &q->wanted.session;
    struct dl_arena *const arena = r->search.arena;
    if (!q->output || !r->report.n_simulated) return DL_OK;
    json_t *const strategy = dl_search_document(&r->search, r->report.simulated[0].point, arena, err);
    json_object_set_new(strategy, "source",
                        json_sprintf("dlsim search: the best by %s for %s on %llu devices of %s, of %zu that fit",
                                     r->report.objective, r->report.workload, (unsigned long long)s->devices,
                                     r->report.topology, r->report.n_screened));
    if (name_in_file(q, strategy, "workload", DL_WORKLOADS, s->workload.name, arena, err) ||
        name_in_file(q, strategy, "software", DL_SOFTWARE, s->software.name, arena, err)) {
        json_decref(strategy);
        return err->status;
    }
    r->report.output = q->output;
    return dl_write_json(q->output, strategy, err);
}

static void add_refused(struct dl_search_run *r)
{
    const struct dl_refusals *const by_rules = &r->search.space.refused;
    for (size_t i = 0; i < by_rules->n; i++)
        dl_refusals_add(&r->refused, by_rules->items[i].reason, by_rules->items[i].n);
    dl_refusals_sort(&r->refused);
    dl_refusals_sort(&r->lost);
    r->report.refused = &r->refused;
    r->report.lost = &r->lost;
}

static enum dl_status tell(struct dl_search_run *r, const struct request *q, struct dl_error *err)
{
    const bool is_nothing_left = !r->report.n_screened && !r->report.n_unfit && !r->lost.n;
    dl_refusals_sort(&r->refused);
    if (is_nothing_left && r->refused.n) /* by what reads strategies, so --fix is wrong */
        return dl_fail(err, DL_IMPOSSIBLE, "search", "all points are refused, most since %s",
                       r->refused.items[0].reason);
    add_refused(r);
    if (write_winner(r, q, err)) return err->status;
    if (q->json) {
        const struct dl_asked asked = what_was_asked(r, q);
        if (dl_write_json(q->json, dl_answer(&asked, dl_search_report_json(&r->report)), err)) return err->status;
    }
    if (dl_tells_text(q->json) && dl_tells_text(q->output)) dl_search_report_text(&r->report);
    return DL_OK;
}

/* Whether there is what the objective goes by. */
static enum dl_status check_objective(const struct dl_search_run *r, const struct request *q, struct dl_error *err)
{
    const struct dl_session *const base = &r->search.base;
    const struct dl_facility *const site = &r->search.site;
    switch (dl_objective_needs(q->objective)) {
    case DL_NEEDS_NOTHING: return DL_OK;
    case DL_NEEDS_TOKENS:
        if (base->model.tokens_per_sample > 0) return DL_OK;
        return dl_fail(err, DL_IMPOSSIBLE, "--objective", "%s has no tokens; time would do", base->model.name);
    case DL_NEEDS_POWER:
        if (base->device.power) return DL_OK;
        return dl_fail(err, DL_IMPOSSIBLE, "--objective", "what %s draws is not known; time would do",
                       base->device.name);
    case DL_NEEDS_PRICES: break;
    }
    if (site->usd_per_device_hour > 0 || (site->usd_per_kwh > 0 && base->device.power)) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, "--objective", "needs a price: --usd-per-device-hour or --usd-per-kwh");
}

static enum dl_status begin(struct dl_search_run *r, struct request *q, struct dl_error *err)
{
    const struct dl_session *const base = &r->search.base;
    const uint64_t n_workers = q->jobs ? q->jobs : dl_pool_processors();
    if (dl_search_open(&r->search, &q->wanted, err)) return err->status;
    if (check_objective(r, q, err)) return err->status;
    r->search.counts_energy = dl_objective_needs(q->objective) >= DL_NEEDS_POWER;
    r->search.memory_bytes = dl_own_memory_share_bytes(n_workers);
    r->report = (struct dl_search_report){.workload = base->model.name,
                                          .topology = base->machine.topology->name,
                                          .software = base->software.name,
                                          .objective = q->objective,
                                          .n_devices = q->wanted.session.devices,
                                          .global_batch = q->wanted.global_batch,
                                          .n_workers = n_workers};
    return q->db ? dl_known_read(q->db, &r->search, &r->known, err) : DL_OK;
}

static int search(struct request *q, struct dl_error *err)
{
    struct dl_search_run r = {0};
    int signal = 0;
    if (!begin(&r, q, err)) {
        signal = dl_search_screen(&r, err);
        if (!signal && !err->status) signal = dl_search_simulate(&r, q->top, err);
        if (!signal && !err->status) dl_search_intervals(&r.search, q->intervals, &r.report, err);
        if (!signal && !err->status) tell(&r, q, err);
    }
    if (signal) fputs("dlsim: interrupted, so there is no answer\n", stderr);
    const bool is_answered = r.report.n_simulated > 0;
    dl_free(r.report.screened);
    dl_free(r.report.simulated);
    dl_refusals_release(&r.refused);
    dl_refusals_release(&r.lost);
    dl_known_free(r.known);
    dl_search_close(&r.search);
    return signal ? 128 + signal : !is_answered;
}

static enum dl_status check_together(const struct request *q, struct dl_error *err)
{
    if (!q->db) return DL_OK;
    if (dl_objective_needs(q->objective) >= DL_NEEDS_POWER)
        return dl_fail(err, DL_IMPOSSIBLE, "--objective", "%s is not known of the results of --db", q->objective);
    if (q->wanted.headroom == 0) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, "--headroom", "is not known of the results of --db; leave one of them out");
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {.objective = dl_objectives[0], .top = usual_top, .intervals = usual_intervals};
    dl_lengthen_output(argc, argv);
    if (dl_read_options(argc, argv, options, DL_COUNT(options), &q, NULL, err) || check_together(&q, err)) return 0;
    if (!q.wanted.global_batch) q.wanted.global_batch = q.wanted.session.devices;
    return search(&q, err);
}

const struct dl_command dl_command_search = {
    .name = "search",
    .doc = "the best way to train a model on so many devices",
    .usage = "search --topo T --workload W --devices N [--global-batch B] [--fix KEY=JSON]... [--top K] [-o FILE]",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
