/* nccl.c - prints every published all-reduce run beside what dlsim predicts, with the algorithm and protocol it chose,
 * and the mean errors by group and by family. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/measured.h"

enum { max_sums = 32 };

struct sum {
    const char *name;
    size_t n;
    double error, absolute, worst;
};

struct sums {
    struct sum items[max_sums];
    size_t n;
};

static void sums_add(struct sums *sums, const char *name, double error)
{
    size_t i = 0;
    while (i < sums->n && strcmp(sums->items[i].name, name)) i++;
    if (i == max_sums) return;
    if (i == sums->n) sums->items[sums->n++].name = name;
    struct sum *const sum = &sums->items[i];
    sum->n++;
    sum->error += error;
    sum->absolute += fabs(error);
    sum->worst = fmax(sum->worst, fabs(error));
}

static void sums_print(const struct sums *sums, const char *what)
{
    printf("\n%-16s %5s %10s %8s %8s\n", what, "rows", "mean |err|", "bias", "worst");
    for (size_t i = 0; i < sums->n; i++) {
        const struct sum *const s = &sums->items[i];
        const double percent = 100 / (double)s->n;
        printf("%-16s %5zu %8.1f %% %+6.1f %% %6.1f %%\n", s->name, s->n, s->absolute * percent, s->error * percent,
               100 * s->worst);
    }
}

static double print_row(struct subject *s, const struct measured_row *row)
{
    const double us = 1e6;
    const struct dl_choice choice = subject_choose(s, row->algorithm, row->bytes);
    const double simulated_s = subject_simulate(s, &choice);
    const double error = (simulated_s - row->time_s) / row->time_s;
    printf("%-16s %-14s %4u %12.0f %10.1f %10.1f %+7.1f %% %+7.2f %%  %s %s\n", row->group, row->system, s->group.n,
           row->bytes, us * row->time_s, us * simulated_s, 100 * error,
           100 * (choice.estimate.time_s - simulated_s) / simulated_s, choice.collective.algorithm->name,
           choice.estimate.pace.protocol);
    return error;
}

int main(void)
{
    struct dl_arena *const arena = dl_arena_new();
    struct measured m = measured_load(arena);
    struct sums groups = {0}, families = {0};
    struct subject s = {0};
    printf("%-16s %-14s %4s %12s %10s %10s %9s %9s  %s\n", "group", "system", "gpus", "bytes", "measured us",
           "simulated", "error", "estimate", "chosen");
    for (size_t i = 0; i < m.n_rows; i++) {
        const struct measured_row *const row = &m.rows[i];
        if (!i || strcmp(row->system, row[-1].system) || row->devices != row[-1].devices) {
            if (i) subject_close(&s);
            subject_open(&s, row->system, (uint32_t)row->devices);
        }
        const double error = print_row(&s, row);
        sums_add(&groups, row->group, error);
        sums_add(&families, row->family, error);
    }
    subject_close(&s);
    sums_print(&groups, "group");
    sums_print(&families, "family");
    measured_release(&m);
    dl_arena_free(arena);
    return EXIT_SUCCESS;
}
