/* splitting.c - dlsim-profile split: time a convolution for micro-batches, and show the best division. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/profiling.h"
#include "kernels/split.h"
#include "kernels/timing.h"

enum { most_micros = 200 };

struct study {
    const struct dl_profile_options *o;
    struct dl_timing_plan plan;
    double memory_bytes; /* of the device; 0: not known */
    struct dl_micro micros[most_micros];
    size_t n;
};

/* What goes in, the filters, what comes out; in doubles, as sizes may be absurd. */
static double tensor_bytes(const int64_t *conv, int64_t samples)
{
    enum { channels = 1, height, width, filters, window, stride, pad, groups };
    const double out_height = (double)((conv[height] + 2 * conv[pad] - conv[window]) / conv[stride] + 1);
    const double out_width = (double)((conv[width] + 2 * conv[pad] - conv[window]) / conv[stride] + 1);
    const double in = (double)conv[channels] * (double)conv[height] * (double)conv[width];
    const double out = (double)conv[filters] * out_height * out_width;
    const double weights =
        (double)(conv[filters] * (conv[channels] / conv[groups])) * (double)(conv[window] * conv[window]);
    return (double)sizeof(float) * ((double)samples * (in + out) + weights);
}

static bool fits_memory(const struct study *s, double bytes) { return s->memory_bytes < 1 || bytes <= s->memory_bytes; }

static void time_micro(struct study *s, const struct dl_routine *r, int64_t samples)
{
    int64_t given[DL_MAX_DIMS], dim[DL_MAX_DIMS];
    memcpy(given, s->o->conv, sizeof given);
    given[0] = samples;
    dl_problem_complete(dl_problem_find("conv", "forward"), given, dim);
    if (!dl_routine_can(r, dim, DL_FLOAT_FP32) || s->n == most_micros) return;
    const struct dl_trial_spec spec = {s->o->backend, r, given, DL_FLOAT_FP32, 1};
    const double workspace = r->workspace_bytes ? (double)r->workspace_bytes(dim, DL_FLOAT_FP32) : 0;
    if (!fits_memory(s, tensor_bytes(given, samples) + workspace)) return;
    s->micros[s->n++] = (struct dl_micro){r->way, samples, dl_time(&spec, &s->plan).seconds, workspace};
}

/* Powers of two and the whole, as Oyama et al. do by default; of what was found right. */
static bool time_all(struct study *s)
{
    const int64_t whole = s->o->conv[0];
    double worst;
    for (size_t i = 0; i < dl_routine_count(s->o->backend); i++) {
        const struct dl_routine *const r = dl_routine_get(s->o->backend, i);
        if (strcmp(r->problem, "conv") || strcmp(r->pass, "forward")) continue;
        if (!dl_profile_wants(s->o, r, DL_FLOAT_FP32)) continue;
        if (!dl_profile_is_right(s->o->backend, r, DL_FLOAT_FP32, &worst)) return false;
        for (int64_t samples = 1; samples < whole; samples *= 2) time_micro(s, r, samples);
        time_micro(s, r, whole);
    }
    return true;
}

static void print_micros(const struct study *s)
{
    printf("%10s  %-10s %14s %14s\n", "samples", "way", "workspace_MB", "ms");
    for (size_t i = 0; i < s->n; i++)
        printf("%10lld  %-10s %14.3f %14.4f%s\n", (long long)s->micros[i].samples, s->micros[i].way,
               s->micros[i].workspace_bytes / 1e6, s->micros[i].seconds * 1e3,
               s->micros[i].workspace_bytes <= s->o->workspace_bytes ? "" : "  over the limit");
}

static int print_answer(const struct study *s)
{
    int64_t calls[most_micros];
    const int64_t whole = s->o->conv[0];
    const double seconds = dl_split(s->micros, s->n, whole, s->o->workspace_bytes, calls);
    const struct dl_micro *const undivided = dl_undivided(s->micros, s->n, whole, s->o->workspace_bytes);
    if (!(seconds < INFINITY)) {
        puts("no way fits into the workspace");
        return 1;
    }
    if (undivided)
        printf("undivided: %.4f ms (%s)\n", undivided->seconds * 1e3, undivided->way);
    else
        puts("undivided: does not fit into the workspace");
    printf("best:      %.4f ms =", seconds * 1e3);
    const char *before = " ";
    for (size_t i = 0; i < s->n; i++) {
        if (!calls[i]) continue;
        printf("%s%lld x %lld samples (%s)", before, (long long)calls[i], (long long)s->micros[i].samples,
               s->micros[i].way);
        before = " + ";
    }
    putchar('\n');
    return 0;
}

int dl_profile_split(const struct dl_profile_options *o)
{
    const double most_s_of_shape = 1.5;
    struct dl_device_facts facts = {0};
    struct study s = {.o = o, .plan = dl_profile_plan(o, &facts, most_s_of_shape)};
    s.memory_bytes = facts.memory_bytes;
    if (!fits_memory(&s, tensor_bytes(o->conv, o->conv[0]))) {
        fputs("dlsim-profile: --conv: has more than fits into the memory of this device\n", stderr);
        return 2;
    }
    if (!time_all(&s)) return 3;
    print_micros(&s);
    return print_answer(&s);
}
