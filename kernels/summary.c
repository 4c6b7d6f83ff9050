/* summary.c - dlsim-profile --summary: what every routine reaches at large sizes, beside what the machine can do: the
 * fastest copy for what is bound by memory, the fastest product of the precision for the rest. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device_file.h"
#include "kernels/profiling.h"

enum { most_points = 4096 };

struct survey {
    const struct dl_profile_options *o;
    struct dl_profile profile;
    struct dl_timing_plan plan;
    struct dl_result *points;
};

/* Operations, or bytes where there are none. */
static double size_of(const struct dl_result *p)
{
    const double flop = dl_problem_flop(p->problem, p->dim);
    return flop > 0 ? flop : dl_problem_traffic(p->problem, p->dim, p->precision);
}

/* The shapes of a routine that are at least half as large as its largest. */
static void time_large(struct survey *s, struct dl_result point)
{
    const double half = 0.5;
    double largest = 0;
    for (int is_second = 0; is_second < 2; is_second++)
        for (size_t i = 0; point.problem->timed[i][0]; i++) {
            memset(point.dim, 0, sizeof point.dim);
            dl_problem_complete(point.problem, point.problem->timed[i], point.dim);
            if (!dl_profile_is_worth(s->o, &point) || s->profile.n == most_points) continue;
            largest = fmax(largest, size_of(&point));
            if (!is_second || size_of(&point) < half * largest) continue;
            const struct dl_trial_spec spec = {s->o->backend, point.routine, point.dim, point.precision, 1};
            point.timing = dl_time(&spec, &s->plan);
            s->points[s->profile.n++] = point;
        }
}

static void time_all(struct survey *s)
{
    for (size_t i = 0; i < dl_routine_count(s->o->backend); i++)
        for (int f = 0; f < DL_N_FLOATS; f++) {
            const struct dl_routine *const r = dl_routine_get(s->o->backend, i);
            struct dl_result point = {.routine = r, .problem = dl_problem_find(r->problem, r->pass)};
            point.precision = (enum dl_float)f;
            const bool is_asked = !s->o->only || strcmp(s->o->only, r->problem) == 0 || strcmp(r->problem, "copy") == 0;
            if (is_asked && point.problem->timed && dl_profile_wants(s->o, r, point.precision)) time_large(s, point);
        }
}

/* Of the machine: what the size of this point is to be held against, per second. */
static double best_of(const struct survey *s, const struct dl_result *p)
{
    return dl_problem_flop(p->problem, p->dim) > 0 ? dl_best_flop_per_s(&s->profile, p->precision)
                                                   : dl_best_bytes_per_s(&s->profile);
}

/* The points of one routine and precision, which follow each other; returns where the next begin. */
static size_t print_routine(const struct survey *s, size_t from)
{
    const struct dl_result *const first = &s->points[from], *best = first;
    double least = INFINITY;
    size_t to = from;
    for (; to < s->profile.n && s->points[to].routine == first->routine && s->points[to].precision == first->precision;
         to++) {
        const double rate = size_of(&s->points[to]) / s->points[to].timing.seconds;
        least = fmin(least, rate);
        if (rate > size_of(best) / best->timing.seconds) best = &s->points[to];
    }
    const double rate = size_of(best) / best->timing.seconds;
    const bool is_product = dl_problem_flop(best->problem, best->dim) > 0;
    printf("%-16s %-16s %-15s %-5s %9.1f %-8s %5.1f %% %5.1f %% ", best->problem->name, best->problem->pass,
           best->routine->way, dl_float_name(best->precision), rate / (is_product ? 1e12 : 1e9),
           is_product ? "Tflop/s" : "GB/s", 100 * rate / best_of(s, best), 100 * least / best_of(s, best));
    for (size_t i = 0; i < best->problem->n_given; i++) printf(" %lld", (long long)best->dim[i]);
    putchar('\n');
    return to;
}

static void print_head(const struct survey *s)
{
    const struct dl_device_facts *const facts = &s->profile.facts;
    printf("%s at %.2f GHz; %s\nlaunch %.2f us, copy %.1f GB/s", facts->name, facts->clock_hz / 1e9, facts->versions,
           s->profile.launch.seconds * 1e6, dl_best_bytes_per_s(&s->profile) / 1e9);
    for (int f = 0; f < DL_N_FLOATS; f++)
        if (dl_best_flop_per_s(&s->profile, (enum dl_float)f) > 0)
            printf(", %s %.1f Tflop/s", dl_float_name((enum dl_float)f),
                   dl_best_flop_per_s(&s->profile, (enum dl_float)f) / 1e12);
    printf("\n\n%-16s %-16s %-15s %-5s %18s %7s %7s  %s\n", "kernel", "pass", "way", "", "best rate", "of most",
           "worst", "shape of the best");
}

int dl_profile_summary(const struct dl_profile_options *o)
{
    const double most_s_of_shape = 0.3;
    struct survey s = {.o = o, .profile = {.backend = o->backend}};
    o->backend->describe(&s.profile.facts);
    s.plan = (struct dl_timing_plan){o->spread, most_s_of_shape, 2 * s.profile.facts.last_cache_bytes};
    s.points = dl_memory(most_points * sizeof *s.points);
    s.profile.results = s.points;
    s.profile.launch = dl_time_launch(o->backend);
    time_all(&s);
    print_head(&s);
    for (size_t i = 0; i < s.profile.n;) i = print_routine(&s, i);
    free(s.points);
    return 0;
}
