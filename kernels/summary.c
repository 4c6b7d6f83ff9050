/* summary.c - dlsim-profile --summary: what every routine reaches at large sizes, beside what the machine can do: the
 * fastest copy for what is bound by memory, the fastest product of the precision for the rest.
 *
 * The clock of a device follows the power of what ran before. Each shape therefore runs for a while before it is timed,
 * and all are timed in several rounds, each in an order of its own: the median over the rounds counts, and the spread
 * tells how far it can be trusted. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/profiling.h"

enum { most_points = 4096, n_rounds = 5 };

struct survey {
    const struct dl_profile_options *o;
    struct dl_profile profile;
    struct dl_timing_plan plan; /* of one shape in one round */
    struct dl_result *points;
    double (*seconds)[n_rounds]; /* of each point; in the end sorted */
};

/* Operations, or bytes where there are none. */
static double size_of(const struct dl_result *p)
{
    const double flop = dl_problem_flop(p->problem, p->dim);
    return flop > 0 ? flop : dl_problem_traffic(p->problem, p->dim, p->precision);
}

/* The shapes of a routine that are at least half as large as its largest. */
static void plan_large(struct survey *s, struct dl_result point)
{
    const double half = 0.5;
    double largest = 0;
    for (int is_second = 0; is_second < 2; is_second++)
        for (size_t i = 0; point.problem->timed[i][0]; i++) {
            memset(point.dim, 0, sizeof point.dim);
            dl_problem_complete(point.problem, point.problem->timed[i], point.dim);
            if (!dl_profile_is_worth(s->o, &point) || s->profile.n == most_points) continue;
            largest = fmax(largest, size_of(&point));
            if (is_second && size_of(&point) >= half * largest && !dl_profile_has(&s->profile, &point))
                s->points[s->profile.n++] = point;
        }
}

static bool is_asked(const struct survey *s, const struct dl_routine *r)
{
    return !s->o->only || strcmp(s->o->only, r->problem) == 0;
}

static bool asks_for_products(const struct survey *s)
{
    for (size_t i = 0; i < dl_problem_count(); i++)
        if (strcmp(dl_problem_get(i)->name, s->o->only) == 0 && dl_problem_get(i)->flop) return true;
    return false;
}

/* What others are held against is timed whether it is asked for or not. */
static bool is_yardstick(const struct survey *s, const struct dl_routine *r)
{
    const bool is_product = strcmp(r->problem, "gemm") == 0 && strcmp(r->pass, "forward") == 0;
    return strcmp(r->problem, "copy") == 0 || (is_product && asks_for_products(s));
}

static void plan(struct survey *s)
{
    for (size_t i = 0; i < dl_routine_count(s->o->backend); i++)
        for (int f = 0; f < DL_N_FLOATS; f++) {
            const struct dl_routine *const r = dl_routine_get(s->o->backend, i);
            struct dl_result point = {.routine = r, .problem = dl_problem_find(r->problem, r->pass)};
            point.precision = (enum dl_float)f;
            if ((is_asked(s, r) || is_yardstick(s, r)) && point.problem->timed &&
                dl_profile_wants(s->o, r, point.precision))
                plan_large(s, point);
        }
}

/* The same orders each time the program is called. */
static void shuffle(size_t *order, size_t n, int round)
{
    for (size_t i = 0; i < n; i++) order[i] = i;
    for (size_t left = n; left > 1; left--) {
        const size_t to = dl_bits((uint64_t)round * most_points + left) % left, last = order[left - 1];
        order[left - 1] = order[to];
        order[to] = last;
    }
}

static void time_rounds(struct survey *s)
{
    const size_t n = s->profile.n;
    size_t *const order = dl_memory(n * sizeof *order);
    for (int round = 0; round < n_rounds; round++) {
        shuffle(order, n, round);
        for (size_t i = 0; i < n; i++) {
            const struct dl_result *const p = &s->points[order[i]];
            const struct dl_trial_spec spec = {s->o->backend, p->routine, p->dim, p->precision, 1};
            s->seconds[order[i]][round] = dl_time(&spec, &s->plan).seconds;
        }
    }
    free(order);
    for (size_t i = 0; i < n; i++) s->points[i].timing = dl_timing_of(s->seconds[i], n_rounds);
}

/* Between the fastest and the slowest round, over the median. */
static double spread_of(const struct survey *s, const struct dl_result *p)
{
    const double *const sorted = s->seconds[p - s->points];
    return (sorted[n_rounds - 1] - sorted[0]) / p->timing.seconds;
}

static double rate_of(const struct dl_result *p) { return size_of(p) / p->timing.seconds; }

/* Of a matrix product: some convolutions need fewer operations than are counted. */
static double best_flop_per_s(const struct survey *s, enum dl_float precision)
{
    double best = 0;
    for (const struct dl_result *p = s->points; p < s->points + s->profile.n; p++)
        if (p->precision == precision && strcmp(p->problem->name, "gemm") == 0) best = fmax(best, rate_of(p));
    return best;
}

/* Of what the machine can do. */
static double share_of(const struct survey *s, const struct dl_result *p)
{
    const bool is_product = dl_problem_flop(p->problem, p->dim) > 0;
    return rate_of(p) / (is_product ? best_flop_per_s(s, p->precision) : dl_best_bytes_per_s(&s->profile));
}

static void print_share(const struct survey *s, const struct dl_result *p)
{
    printf(" %6.1f %% %5.1f %%", 100 * share_of(s, p), 100 * spread_of(s, p));
}

/* One shape, or the best and the worst of a routine. */
static void print_line(const struct survey *s, const struct dl_result *p, const struct dl_result *worst)
{
    const bool is_product = dl_problem_flop(p->problem, p->dim) > 0;
    printf("%-16s %-16s %-15s %-5s %9.4g %-8s", p->problem->name, p->problem->pass, p->routine->way,
           dl_float_name(p->precision), rate_of(p) / (is_product ? 1e12 : 1e9), is_product ? "Tflop/s" : "GB/s");
    print_share(s, p);
    if (worst) print_share(s, worst);
    putchar(' ');
    for (size_t i = 0; i < p->problem->n_given; i++) printf(" %lld", (long long)p->dim[i]);
    putchar('\n');
}

/* The points of one routine and precision, which follow each other; returns where the next begin. */
static size_t print_routine(const struct survey *s, size_t from)
{
    const struct dl_result *const first = &s->points[from], *best = first, *worst = first, *p = first;
    for (; p < s->points + s->profile.n && p->routine == first->routine && p->precision == first->precision; p++) {
        if (rate_of(p) > rate_of(best)) best = p;
        if (rate_of(p) < rate_of(worst)) worst = p;
        if (s->o->only && is_asked(s, p->routine)) print_line(s, p, NULL);
    }
    if (!s->o->only) print_line(s, best, worst);
    return (size_t)(p - s->points);
}

static void print_head(const struct survey *s)
{
    const struct dl_device_facts *const facts = &s->profile.facts;
    printf("%s at %.2f GHz; %s\nlaunch %.2f us, copy %.1f GB/s", facts->name, facts->clock_hz / 1e9, facts->versions,
           s->profile.launch.seconds * 1e6, dl_best_bytes_per_s(&s->profile) / 1e9);
    for (int f = 0; f < DL_N_FLOATS; f++)
        if (best_flop_per_s(s, (enum dl_float)f) > 0)
            printf(", %s %.4g Tflop/s", dl_float_name((enum dl_float)f), best_flop_per_s(s, (enum dl_float)f) / 1e12);
    printf("\nmedians of %d rounds over all shapes; spread: the slowest round less the fastest\n\n", n_rounds);
    printf("%-16s %-16s %-15s %-5s %18s %8s %7s%s\n", "kernel", "pass", "way", "", "rate", "of most", "spread",
           s->o->only ? "  shape" : "    worst  spread  shape of the best");
}

int dl_profile_summary(const struct dl_profile_options *o)
{
    const double most_s_of_shape = 0.3, warm_s = 0.01;
    struct survey s = {.o = o, .profile = {.backend = o->backend}};
    s.plan = dl_profile_plan(o, &s.profile.facts, most_s_of_shape / n_rounds);
    s.plan.warm_s = warm_s;
    s.points = dl_memory(most_points * sizeof *s.points);
    s.seconds = dl_memory(most_points * sizeof *s.seconds);
    s.profile.results = s.points;
    s.profile.launch = dl_time_launch(o->backend);
    plan(&s);
    time_rounds(&s);
    print_head(&s);
    for (size_t i = 0; i < s.profile.n;) i = print_routine(&s, i);
    free(s.seconds);
    free(s.points);
    return 0;
}
