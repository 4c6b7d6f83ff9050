#include "sim/report/search_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/units.h"

/* ---- order ---- */

static double by_step(const struct dl_candidate *c) { return c->step_s; }
static double by_tokens(const struct dl_candidate *c) { return -c->tokens_per_s; }
static double by_memory(const struct dl_candidate *c) { return c->peak_bytes; }
static double by_energy(const struct dl_candidate *c) { return c->energy_j; }
static double by_cost(const struct dl_candidate *c) { return c->cost_usd; }

const char *const dl_objectives[] = {"time", "tokens_per_s_per_device", "memory", "energy", "cost", NULL};
static const struct {
    double (*cost)(const struct dl_candidate *);
    enum dl_objective_need need;
} objectives[] = {{by_step, DL_NEEDS_NOTHING},
                  {by_tokens, DL_NEEDS_TOKENS},
                  {by_memory, DL_NEEDS_NOTHING},
                  {by_energy, DL_NEEDS_POWER},
                  {by_cost, DL_NEEDS_PRICES}}; /* in the order of their names */

static size_t find(const char *objective)
{
    size_t which = 0;
    while (strcmp(dl_objectives[which], objective)) which++;
    return which;
}

enum dl_objective_need dl_objective_needs(const char *objective) { return objectives[find(objective)].need; }

static int compare(double a, double b) { return (a > b) - (a < b); }

static int in_order(const void *a, const void *b)
{
    const struct dl_candidate *const x = a, *const y = b;
    const int by_cost = compare(x->cost, y->cost), by_time = compare(x->step_s, y->step_s);
    return by_cost ? by_cost : by_time ? by_time : (x->point > y->point) - (x->point < y->point);
}

void dl_candidates_sort(struct dl_candidate *candidates, size_t n, const char *objective)
{
    const size_t which = find(objective);
    for (size_t i = 0; i < n; i++) candidates[i].cost = objectives[which].cost(&candidates[i]);
    if (n) qsort(candidates, n, sizeof *candidates, in_order);
}

/* ---- the front of time and memory ---- */

static int faster_first(const void *a, const void *b)
{
    const struct dl_candidate *const x = *(const struct dl_candidate *const *)a;
    const struct dl_candidate *const y = *(const struct dl_candidate *const *)b;
    const int by_time = compare(x->screened_s, y->screened_s), by_bytes = compare(x->peak_bytes, y->peak_bytes);
    return by_time ? by_time : by_bytes ? by_bytes : (x->point > y->point) - (x->point < y->point);
}

const struct dl_candidate **dl_search_front(const struct dl_search_report *r, size_t *n)
{
    const struct dl_candidate **const front = dl_alloc((r->n_screened + 1) * sizeof *front);
    double least = INFINITY;
    for (size_t i = 0; i < r->n_screened; i++) front[i] = &r->screened[i];
    if (r->n_screened) qsort(front, r->n_screened, sizeof *front, faster_first);
    *n = 0;
    for (size_t i = 0; i < r->n_screened; i++) {
        if (front[i]->peak_bytes >= least) continue;
        least = front[i]->peak_bytes;
        front[(*n)++] = front[i];
    }
    return front;
}

/* ---- text ---- */

static void print_counts(const struct dl_search_report *r)
{
    char a[DL_QUANTITY], b[DL_QUANTITY], c[DL_QUANTITY], d[DL_QUANTITY];
    const double rate = (double)r->n_looked_at / r->screening_s / (double)r->n_workers;
    printf("%s on %llu devices of %s, software %s, global batch %llu\n", r->workload, (unsigned long long)r->n_devices,
           r->topology, r->software, (unsigned long long)r->global_batch);
    printf("  %12s  combinations\n", dl_format_count((double)r->n_space, a));
    for (size_t i = 0; i < r->refused->n; i++)
        printf("  %12s  refused: %s\n", dl_format_count((double)r->refused->items[i].n, a),
               r->refused->items[i].reason);
    printf("  %12s  do not fit into the memory of a device\n", dl_format_count((double)r->n_unfit, a));
    for (size_t i = 0; i < r->lost->n; i++)
        printf("  %12s  without an answer: %s\n", dl_format_count((double)r->lost->items[i].n, a),
               r->lost->items[i].reason);
    printf("  %12s  screened without contention\n", dl_format_count((double)r->n_screened, a));
    printf("  %12zu  simulated with the network\n", r->n_simulated);
    printf("  %s looked at in %s, %s points a second and core; simulated in %s\n",
           dl_format_count((double)r->n_looked_at, a), dl_format_seconds(r->screening_s, b), dl_format_number(rate, c),
           dl_format_seconds(r->simulating_s, d));
    if (r->n_screened_before || r->n_simulated_before)
        printf("  taken out of the database and not run again: %s of those looked at, %zu of those simulated\n",
               dl_format_count((double)r->n_screened_before, a), r->n_simulated_before);
    if (r->n_told)
        printf("  intervals of %zu by %zu runs with a changed constant, without contention, in %s\n", r->n_told,
               r->n_interval_runs, dl_format_seconds(r->intervals_s, a));
}

/* Of the step, and of its ratio to that of another one, with a mark if 1 is in it. */
static void print_interval(const struct dl_candidate *c, bool is_first)
{
    const struct dl_candidate_interval *const i = &c->interval;
    char of_step[DL_QUANTITY] = "", of_first[DL_QUANTITY] = "";
    if (i->is_known) {
        snprintf(of_step, sizeof of_step, "%+.0f %+.0f %%", 100 * (i->step_s_low / c->step_s - 1),
                 100 * (i->step_s_high / c->step_s - 1));
    }
    if (i->is_known && !is_first) {
        snprintf(of_first, sizeof of_first, "%.3f to %.3f %c", i->of_first_low, i->of_first_high,
                 i->told_apart ? ' ' : '=');
    }
    printf("  %-9s  %-16s", of_step, of_first);
}

static const double joules_per_kwh = 3.6e6;

/* Reserved bytes of 648 measured steps are 5 % off in the mean (validation/README.md, The Ultra-Scale benchmark). */
static const double near_fraction = 0.05;

static bool is_nearly_full(const struct dl_candidate *c) { return c->left_fraction < near_fraction; }

static void print_candidate(const struct dl_search_report *r, size_t i)
{
    const struct dl_candidate *const c = &r->simulated[i];
    const bool has_energy = r->simulated[0].energy_j > 0, has_cost = r->simulated[0].cost_usd > 0;
    char a[DL_QUANTITY], b[DL_QUANTITY], d[DL_QUANTITY];
    printf("  %9s", dl_format_seconds(c->step_s, a));
    print_interval(c, i == 0);
    printf("  %6.1f %%  %9s%c %9s", 100 * c->mfu, dl_format_bytes(c->peak_bytes, b), is_nearly_full(c) ? '!' : ' ',
           dl_format_seconds(c->screened_s, d));
    if (has_energy) printf("  %8.3g", c->energy_j / joules_per_kwh);
    if (has_cost) printf("  %9.4g", c->cost_usd);
    printf("  %s\n", c->words);
}

static void print_winners(const struct dl_search_report *r)
{
    size_t n_alike = 0, n_full = 0;
    printf("\n  best by %s\n  %9s  %-9s  %-16s  %8s  %9s  %9s%s%s  configuration\n", r->objective, "step", "95 %",
           "over the first", "MFU", "memory", "screened",
           r->n_simulated && r->simulated[0].energy_j > 0 ? "  kWh/step" : "",
           r->n_simulated && r->simulated[0].cost_usd > 0 ? "     $/step" : "");
    for (size_t i = 0; i < r->n_simulated; i++) print_candidate(r, i);
    for (size_t i = 1; i < r->n_told; i++) n_alike += !r->simulated[i].interval.told_apart;
    if (r->n_told > 1)
        printf("  = the step cannot be told apart from that of the first: %zu of %zu\n", n_alike, r->n_told - 1);
    for (size_t i = 0; i < r->n_simulated; i++) n_full += is_nearly_full(&r->simulated[i]);
    if (n_full)
        printf(
            "  ! leaves less than %.0f %% of the memory, as much as its prediction errs: may not fit (--headroom %g)\n",
            100 * near_fraction, near_fraction);
}

static const char *less_or_more(double difference) { return difference > 0 ? "more" : "less"; }

/* On every rank each instant has one cause, so the differences sum to that of the steps. */
static void print_why(const struct dl_search_report *r)
{
    const struct dl_candidate *const first = &r->simulated[0], *const second = &r->simulated[1];
    const double tiny_s = 1e-6 * first->step_s, time_s = first->step_s - second->step_s,
                 bytes = first->peak_bytes - second->peak_bytes;
    char a[DL_QUANTITY], b[DL_QUANTITY];
    printf("\n  why the first is before the second: %s %s time (%.2f %%), %s %s memory; by cause\n",
           dl_format_seconds(fabs(time_s), a), less_or_more(time_s), 100 * fabs(time_s) / second->step_s,
           dl_format_bytes(fabs(bytes), b), less_or_more(bytes));
    for (int cause = 0; cause < DL_N_CAUSES; cause++) {
        const double more_s = first->exposed_s[cause] - second->exposed_s[cause];
        if (fabs(more_s) > tiny_s)
            printf("    %-12s %9s %s\n", dl_cause_name((enum dl_cause)cause), dl_format_seconds(fabs(more_s), a),
                   less_or_more(more_s));
    }
}

/* So many of a long list, evenly spread, the first and the last among them. */
static bool is_shown(size_t i, size_t n, size_t most)
{
    return n <= most || i == 0 || i * (most - 1) / (n - 1) != (i - 1) * (most - 1) / (n - 1);
}

static void print_front(const struct dl_search_report *r)
{
    const size_t most = 12;
    size_t n;
    const struct dl_candidate **const front = dl_search_front(r, &n);
    char a[DL_QUANTITY], b[DL_QUANTITY];
    printf("\n  time against memory: none that was screened is both faster and smaller%s\n  %9s  %9s  configuration\n",
           n > most ? " (some of them; all with --json)" : "", "screened", "memory");
    for (size_t i = 0; i < n; i++)
        if (is_shown(i, n, most))
            printf("  %9s  %9s  %s\n", dl_format_seconds(front[i]->screened_s, a),
                   dl_format_bytes(front[i]->peak_bytes, b), front[i]->words);
    dl_free(front);
}

static void print_output(const struct dl_search_report *r)
{
    const char *const placement = r->n_simulated ? r->simulated[0].placement : NULL;
    printf("\n  written to %s: dlsim --topo %s --strategy %s%s%s\n", r->output, r->topology, r->output,
           placement ? " --placement " : "", placement ? placement : "");
}

void dl_search_report_text(const struct dl_search_report *r)
{
    print_counts(r);
    if (!r->n_screened) {
        puts(r->n_unfit ? "\n  nothing fits: use more devices, or other software" : "\n  no point is left");
        return;
    }
    print_winners(r);
    if (r->n_simulated > 1) print_why(r);
    print_front(r);
    if (r->output) print_output(r);
}

/* ---- JSON ---- */

static json_t *reasons_json(const struct dl_refusals *refused)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < refused->n; i++)
        json_array_append_new(list, json_pack("{s:s, s:I}", "reason", refused->items[i].reason, "points",
                                              (json_int_t)refused->items[i].n));
    return list;
}

static json_t *causes_json(const struct dl_candidate *c)
{
    json_t *const causes = json_object();
    for (int cause = 0; cause < DL_N_CAUSES; cause++)
        json_object_set_new(causes, dl_cause_name((enum dl_cause)cause), dl_json_real(c->exposed_s[cause]));
    return causes;
}

static json_t *interval_json(const struct dl_candidate_interval *i)
{
    if (!i->is_known) return json_null();
    return dl_json_pack("{s:f, s:f, s:f, s:f, s:f, s:b}", "step_s_low", i->step_s_low, "step_s_high", i->step_s_high,
                        "of_first", i->of_first, "of_first_low", i->of_first_low, "of_first_high", i->of_first_high,
                        "told_apart", i->told_apart);
}

static json_t *known_json(double x) { return x > 0 ? dl_json_real(x) : json_null(); }

static json_t *candidate_json(const struct dl_candidate *c, uint64_t n_devices)
{
    json_t *const tokens = c->tokens_per_s > 0 ? dl_json_real(c->tokens_per_s / (double)n_devices) : json_null();
    return dl_json_pack("{s:I, s:s, s:s?, s:f, s:o, s:f, s:f, s:o, s:f, s:f, s:o, s:o, s:o}", "point",
                        (json_int_t)c->point, "configuration", c->words, "placement", c->placement, "step_s", c->step_s,
                        "interval", interval_json(&c->interval), "screened_s", c->screened_s, "mfu", c->mfu,
                        "tokens_per_device_s", tokens, "peak_bytes", c->peak_bytes, "left_fraction", c->left_fraction,
                        "energy_j", known_json(c->energy_j), "cost_usd", known_json(c->cost_usd), "exposed_s",
                        causes_json(c));
}

static json_t *front_json(const struct dl_search_report *r)
{
    json_t *const list = json_array();
    size_t n;
    const struct dl_candidate **const front = dl_search_front(r, &n);
    for (size_t i = 0; i < n; i++) {
        const struct dl_candidate *const c = front[i];
        json_array_append_new(list, dl_json_pack("{s:I, s:s, s:f, s:f}", "point", (json_int_t)c->point, "configuration",
                                                 c->words, "screened_s", c->screened_s, "peak_bytes", c->peak_bytes));
    }
    dl_free(front);
    return list;
}

json_t *dl_search_report_json(const struct dl_search_report *r)
{
    json_t *const best = json_array();
    for (size_t i = 0; i < r->n_simulated; i++)
        json_array_append_new(best, candidate_json(&r->simulated[i], r->n_devices));
    return dl_json_pack("{s:s, s:I, s:I, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "objective", r->objective,
                        "global_batch", (json_int_t)r->global_batch, "combinations", (json_int_t)r->n_space, "refused",
                        reasons_json(r->refused), "lost", reasons_json(r->lost), "does_not_fit", (json_int_t)r->n_unfit,
                        "screened", (json_int_t)r->n_screened, "simulated", (json_int_t)r->n_simulated,
                        "screened_before", (json_int_t)r->n_screened_before, "simulated_before",
                        (json_int_t)r->n_simulated_before, "interval_runs", (json_int_t)r->n_interval_runs, "best",
                        best, "pareto", front_json(r));
}
