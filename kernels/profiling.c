/* profiling.c - check every routine, time it at every shape, write the device file. */
#define _POSIX_C_SOURCE 200809L
#include "kernels/profiling.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/journal.h"

struct session {
    const struct dl_profile_options *o;
    struct dl_profile profile;
    struct dl_result *points; /* all that is to be timed, in order */
    struct dl_timing_plan plan;
    struct dl_journal *journal;
    double end_s;
    size_t n_basic; /* of the first points, which are timed whatever the limit and the share */
    size_t n_new;   /* timed in this session */
};

static volatile sig_atomic_t is_stopped;
static void stop(int signal_number)
{
    (void)signal_number;
    is_stopped = 1;
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

bool dl_profile_wants(const struct dl_profile_options *o, const struct dl_routine *r, enum dl_float f)
{
    return !r->lacks && (r->precisions >> f & o->precisions >> f & 1);
}

static bool is_wanted(const struct session *s, const struct dl_routine *r, enum dl_float f)
{
    const bool is_for_files = !r->is_own && !dl_problem_find(r->problem, r->pass)->is_no_workloads;
    return dl_profile_wants(s->o, r, f) && (s->o->only ? strcmp(s->o->only, r->problem) == 0 : is_for_files);
}

bool dl_profile_is_worth(const struct dl_profile_options *o, const struct dl_result *p)
{
    return dl_problem_flop(p->problem, p->dim) <= o->backend->most_flop &&
           dl_problem_bytes(p->problem, p->dim, p->precision) <= o->backend->most_bytes &&
           dl_routine_can(p->routine, p->dim, p->precision);
}

bool dl_profile_has(const struct dl_profile *profile, const struct dl_result *p)
{
    for (const struct dl_result *other = profile->results; other < profile->results + profile->n; other++)
        if (other->routine == p->routine && other->precision == p->precision &&
            memcmp(other->dim, p->dim, sizeof p->dim) == 0)
            return true;
    return false;
}

/* The n-th shape of each routine before the next of any: what a time limit leaves out is spread over all. */
static void plan_round(struct session *s, size_t shape, bool *is_last)
{
    const struct dl_backend *const b = s->profile.backend;
    for (size_t i = 0; i < dl_routine_count(b); i++)
        for (int f = 0; f < DL_N_FLOATS; f++) {
            const struct dl_routine *const r = dl_routine_get(b, i);
            struct dl_result point = {.routine = r, .problem = dl_problem_find(r->problem, r->pass)};
            if (!is_wanted(s, r, (enum dl_float)f) || !point.problem->timed) continue;
            size_t n_shapes = 0;
            while (point.problem->timed[n_shapes][0]) n_shapes++;
            if (shape >= n_shapes) continue;
            *is_last = false;
            point.precision = (enum dl_float)f;
            dl_problem_complete(point.problem, point.problem->timed[shape], point.dim);
            if (dl_profile_is_worth(s->o, &point) && !dl_profile_has(&s->profile, &point))
                s->points[s->profile.n++] = point;
        }
}

static void plan(struct session *s)
{
    enum { most_points = 100000 };
    bool is_last = false;
    s->points = dl_memory(most_points * sizeof *s->points);
    s->profile.results = s->points;
    for (size_t shape = 0; !is_last && s->profile.n < most_points / 2; shape++) {
        is_last = true;
        plan_round(s, shape, &is_last);
    }
}

/* To the front of what is left: the first point of this problem with so many flop and bytes. False: there is none. */
static bool bring_forward(struct session *s, size_t to, const char *name, double least_flop, double least_bytes)
{
    for (size_t i = to; i < s->profile.n; i++) {
        const struct dl_result p = s->points[i];
        if (strcmp(p.problem->name, name) || dl_problem_flop(p.problem, p.dim) < least_flop ||
            dl_problem_bytes(p.problem, p.dim, p.precision) < least_bytes)
            continue;
        memmove(&s->points[to + 1], &s->points[to], (i - to) * sizeof p);
        s->points[to] = p;
        return true;
    }
    return false;
}

/* Without these two there are no rates to put into the file. */
static const char *bring_basics_forward(struct session *s)
{
    const double large_product_flop = 2e9;
    s->n_basic += bring_forward(s, s->n_basic, "copy", 0, s->profile.facts.last_cache_bytes);
    s->n_basic += bring_forward(s, s->n_basic, "gemm", large_product_flop, 0);
    if (s->n_basic == 2 || s->o->into) return NULL;
    return "must have a large copy and a large product, as fp32 has: a file needs their rates, or --into those of "
           "another";
}

/* The last shapes of the lists fill gaps between the others, and are the first to go. */
static void keep_what_fits(struct session *s)
{
    const size_t n = dl_device_file_fits(&s->profile, s->o->into);
    if (n < s->profile.n)
        fprintf(stderr, "dlsim-profile: %zu of %zu shapes are left out, for a file of %g KB; --precisions takes less\n",
                s->profile.n - n, s->profile.n, DL_DEVICE_FILE_BYTES / 1e3);
    s->profile.n = n;
}

/* Others time the rest at the same time, as ranks of one machine compute at the same time. */
static void keep_share(struct session *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->profile.n; i++)
        if (i < s->n_basic || i % s->o->n_shares == s->o->share) s->points[n++] = s->points[i];
    s->profile.n = n;
}

static void key_of(const struct dl_result *p, char *key, size_t size)
{
    int at = snprintf(key, size, "%s %s %s %s", p->problem->name, p->problem->pass, p->routine->way,
                      dl_float_name(p->precision));
    for (size_t i = 0; i < p->problem->n_given; i++)
        at += snprintf(key + at, size - (size_t)at, " %lld", (long long)p->dim[i]);
}

static void show_progress(const struct session *s, size_t i, const char *key)
{
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r\33[K%zu of %zu: %s", i + 1, s->profile.n, key);
}

/* What the journal has is not timed again, and is there whatever the limit. */
static void time_points(struct session *s)
{
    for (size_t i = 0; i < s->profile.n; i++) {
        struct dl_result *const p = &s->points[i];
        char key[200];
        key_of(p, key, sizeof key);
        if (s->journal) p->timing = dl_journal_find(s->journal, key);
        if (p->timing.n_samples || (i >= s->n_basic && (is_stopped || now_s() > s->end_s))) continue;
        show_progress(s, i, key);
        const struct dl_trial_spec spec = {s->profile.backend, p->routine, p->dim, p->precision, 1};
        p->timing = dl_time(&spec, &s->plan);
        if (s->journal) dl_journal_add(s->journal, key, &p->timing);
        s->n_new++;
    }
    if (isatty(STDERR_FILENO)) fputs("\r\33[K", stderr);
}

/* As the times of kernels: a call that goes on takes what was found before. */
static void time_launch(struct session *s)
{
    static const char key[] = "launch";
    if (s->journal) s->profile.launch = dl_journal_find(s->journal, key);
    if (s->profile.launch.n_samples) return;
    s->profile.launch = dl_time_launch(s->profile.backend);
    if (s->journal) dl_journal_add(s->journal, key, &s->profile.launch);
}

static bool all_are_right(const struct session *s)
{
    const struct dl_backend *const b = s->profile.backend;
    bool are_right = true;
    double worst;
    for (size_t i = 0; i < dl_routine_count(b); i++)
        for (int f = 0; f < DL_N_FLOATS; f++)
            if (is_wanted(s, dl_routine_get(b, i), (enum dl_float)f))
                are_right &= dl_profile_is_right(b, dl_routine_get(b, i), (enum dl_float)f, &worst);
    return are_right;
}

static size_t n_timed(const struct session *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->profile.n; i++) n += s->points[i].timing.n_samples > 0;
    return n;
}

static void print_points(const struct session *s)
{
    for (size_t i = 0; i < s->profile.n; i++) {
        const struct dl_result *const p = &s->points[i];
        char key[200];
        if (!p->timing.n_samples) continue;
        key_of(p, key, sizeof key);
        printf("%-60s %10.4g s, spread %-6.2g %8.4g Gflop/s %8.4g GB/s\n", key, p->timing.seconds, p->timing.spread,
               dl_problem_flop(p->problem, p->dim) / p->timing.seconds / 1e9,
               dl_problem_bytes(p->problem, p->dim, p->precision) / p->timing.seconds / 1e9);
    }
    if (n_timed(s) < s->profile.n)
        fprintf(stderr, "dlsim-profile: stopped after %zu of %zu shapes\n", n_timed(s), s->profile.n);
}

/* How many spread little tells whether the machine was quiet. */
static void print_summary(const struct session *s)
{
    const double little = 0.05;
    size_t n_quiet = 0;
    double flop_per_s = 0;
    for (size_t i = 0; i < s->profile.n; i++)
        n_quiet += s->points[i].timing.n_samples && s->points[i].timing.spread <= little;
    for (int f = 0; f < DL_N_FLOATS; f++)
        flop_per_s = fmax(flop_per_s, dl_best_flop_per_s(&s->profile, (enum dl_float)f));
    printf("%s: %zu of %zu shapes timed, %zu of them now, %zu with a spread of at most %g; %.4g Gflop/s, %.4g GB/s\n",
           s->o->output, n_timed(s), s->profile.n, s->n_new, n_quiet, little, flop_per_s / 1e9,
           dl_best_bytes_per_s(&s->profile) / 1e9);
}

static int complain(const char *path, const char *wrong)
{
    if (wrong) fprintf(stderr, "dlsim-profile: %s: %s\n", path, wrong);
    return wrong ? 2 : 0;
}

static int write_result(struct session *s)
{
    const char *const wrong = dl_device_file_write(s->o->output, s->o->into, &s->profile);
    const int code = complain(s->o->output, wrong);
    if (!wrong) print_summary(s);
    const bool is_finished = !wrong && n_timed(s) == s->profile.n;
    const bool has_all = dl_journal_count(s->journal) == s->profile.n + 1; /* the launch; none of other precisions */
    if (!wrong && !is_finished) fputs("dlsim-profile: stopped; the same call again goes on\n", stderr);
    dl_journal_close(s->journal, is_finished && has_all && s->o->n_shares == 1);
    return code;
}

static char *journal_path(const struct dl_profile_options *o)
{
    char *const path = dl_memory(strlen(o->output) + sizeof ".journal");
    sprintf(path, "%s.journal", o->output);
    return path;
}

static int open_journal(struct session *s)
{
    char head[600];
    const char *wrong;
    char *const path = journal_path(s->o);
    snprintf(head, sizeof head, "%s; %s", s->profile.facts.name, s->profile.facts.versions);
    s->journal = dl_journal_open(path, head, &wrong);
    const int code = complain(path, wrong);
    free(path);
    return code;
}

/* A file that is there may be of another device, or have more times than this call will make. The journal beside it
 * says that a call like this one wrote it and was stopped. */
static const char *why_no_output(const struct dl_profile_options *o)
{
    const char *const wrong = dl_why_no_output(o->output);
    const bool is_renewed = o->into && strcmp(o->into, o->output) == 0;
    if (wrong || is_renewed || access(o->output, F_OK)) return wrong;
    char *const journal = journal_path(o);
    const bool is_begun = access(journal, F_OK) == 0;
    free(journal);
    return is_begun ? NULL : "is there, and no journal to go on with; name another file, or delete this one";
}

static int check_files(const struct dl_profile_options *o)
{
    const int code = o->into ? complain(o->into, dl_why_no_device_file(o->into)) : 0;
    return code || !o->output ? code : complain(o->output, why_no_output(o));
}

struct dl_timing_plan dl_profile_plan(const struct dl_profile_options *o, struct dl_device_facts *facts, double most_s)
{
    const double caches = 2, cache_bytes = 32e6; /* where the system does not tell */
    o->backend->describe(facts);
    if (facts->last_cache_bytes < 1) facts->last_cache_bytes = cache_bytes;
    const double all_rotate_bytes = caches * facts->last_cache_bytes; /* of those that share it */
    return (struct dl_timing_plan){
        .spread = o->spread, .most_s = most_s, .rotate_bytes = all_rotate_bytes / (double)o->n_shares};
}

static int prepare(struct session *s)
{
    const double most_s_of_shape = 1.5;
    s->plan = dl_profile_plan(s->o, &s->profile.facts, most_s_of_shape);
    plan(s);
    const int code = s->o->only ? 0 : complain("--precisions", bring_basics_forward(s));
    if (!s->o->only && !code) keep_what_fits(s);
    keep_share(s);
    return code;
}

int dl_profile_run(const struct dl_profile_options *o)
{
    struct session s = {.o = o, .profile = {.backend = o->backend}, .end_s = now_s() + o->time_limit_s};
    int code = check_files(o);
    if (code) return code;
    code = prepare(&s);
    if (!code && !all_are_right(&s)) code = 3;
    if (!code && !o->only) code = open_journal(&s);
    if (!code) {
        signal(SIGINT, stop);
        signal(SIGTERM, stop);
        time_launch(&s);
        time_points(&s);
        if (o->only)
            print_points(&s);
        else
            code = write_result(&s);
    }
    free(s.points);
    return code;
}
