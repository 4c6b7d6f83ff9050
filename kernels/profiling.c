/* profiling.c - check every routine, time it at every shape, write the device file. */
#define _POSIX_C_SOURCE 200809L
#include "kernels/profiling.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/journal.h"
#include "kernels/timing.h"
#include "sim/core/output.h"

struct session {
    const struct dl_profile_options *o;
    struct dl_profile profile;
    struct dl_agenda agenda;
    struct dl_timing_plan plan;
    struct dl_journal *journal;
    double end_s;
    size_t n_new;          /* timed in this session */
    const char *unwritten; /* why the journal cannot be written; NULL: it can */
};

static volatile sig_atomic_t stopped_by; /* a signal; 0: none */
static void stop(int signal_number) { stopped_by = signal_number; }

/* As shells tell it: what was asked for is not all there. */
static int code_of_signal(void) { return stopped_by ? 128 + stopped_by : 0; }

static void key_of(const struct dl_result *p, char *key, size_t size)
{
    int at = snprintf(key, size, "%s %s %s %s", p->problem->name, p->problem->pass, p->routine->way,
                      dl_float_name(p->precision));
    for (size_t i = 0; i < p->problem->n_given; i++)
        at += snprintf(key + at, size - (size_t)at, " %lld", (long long)p->dim[i]);
}

/* To the descriptor: stderr shows what terminals obey as text. */
static void show_progress(const struct session *s, size_t i, const char *key)
{
    if (isatty(STDERR_FILENO)) dprintf(STDERR_FILENO, "\r\33[K%zu of %zu: %s", i + 1, s->profile.n, key);
}

/* What the journal has is not timed again, and is there whatever the limit. Where it cannot be written, hours would be
 * lost with the next one that is stopped: it ends here. */
static void time_points(struct session *s)
{
    for (size_t i = 0; i < s->profile.n && !s->unwritten; i++) {
        struct dl_result *const p = &s->agenda.points[i];
        char key[200];
        key_of(p, key, sizeof key);
        if (s->journal) p->timing = dl_journal_find(s->journal, key);
        if (p->timing.n_samples || (i >= s->agenda.n_basic && (stopped_by || dl_now_s() > s->end_s))) continue;
        show_progress(s, i, key);
        const struct dl_trial_spec spec = {s->profile.backend, p->routine, p->dim, p->precision, 1};
        p->timing = dl_time(&spec, &s->plan);
        if (s->journal) s->unwritten = dl_journal_add(s->journal, key, &p->timing);
        s->n_new++;
    }
    if (isatty(STDERR_FILENO)) dprintf(STDERR_FILENO, "\r\33[K");
}

/* As the times of kernels: a call that goes on takes what was found before. */
static void time_launch(struct session *s)
{
    static const char key[] = "launch";
    if (s->journal) s->profile.launch = dl_journal_find(s->journal, key);
    if (s->profile.launch.n_samples) return;
    s->profile.launch = dl_time_launch(s->profile.backend);
    if (s->journal) s->unwritten = dl_journal_add(s->journal, key, &s->profile.launch);
}

static bool all_are_right(const struct session *s)
{
    const struct dl_backend *const b = s->profile.backend;
    bool are_right = true;
    double worst;
    for (size_t i = 0; i < dl_routine_count(b); i++)
        for (int f = 0; f < DL_N_FLOATS; f++)
            if (dl_profile_lists(s->o, dl_routine_get(b, i), (enum dl_float)f))
                are_right &= dl_profile_is_right(b, dl_routine_get(b, i), (enum dl_float)f, &worst);
    return are_right;
}

static size_t n_timed(const struct session *s)
{
    size_t n = 0;
    for (size_t i = 0; i < s->profile.n; i++) n += s->agenda.points[i].timing.n_samples > 0;
    return n;
}

static void print_points(const struct session *s)
{
    for (size_t i = 0; i < s->profile.n; i++) {
        const struct dl_result *const p = &s->agenda.points[i];
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
        n_quiet += s->agenda.points[i].timing.n_samples && s->agenda.points[i].timing.spread <= little;
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
    if (!wrong && !is_finished) fputs("dlsim-profile: stopped; the same call again resumes\n", stderr);
    dl_journal_close(s->journal, is_finished && has_all && s->o->n_shares == 1);
    return code;
}

static char *journal_path(const struct dl_profile_options *o)
{
    char *const path = dl_memory(strlen(o->output) + sizeof ".journal");
    sprintf(path, "%s.journal", o->output);
    return path;
}

static int abandon_journal(struct session *s)
{
    char *const path = journal_path(s->o);
    const int code = complain(path, s->unwritten);
    dl_journal_close(s->journal, false);
    free(path);
    return code;
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
    const bool is_renewed = o->into && dl_is_same_file(o->into, o->output);
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
    s->agenda = (struct dl_agenda){.o = s->o, .profile = &s->profile};
    return complain("--precisions", dl_agenda_fill(&s->agenda));
}

int dl_profile_run(const struct dl_profile_options *o)
{
    struct session s = {.o = o, .profile = {.backend = o->backend}, .end_s = dl_now_s() + o->time_limit_s};
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
            code = s.unwritten ? abandon_journal(&s) : write_result(&s);
        if (!code) code = code_of_signal();
    }
    free(s.agenda.points);
    return code;
}
