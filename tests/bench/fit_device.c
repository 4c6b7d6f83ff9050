/* fit_device.c - bench_fit_device FILE [KERNELS [FIGURE...]]: fit figures of a device's model to its measured times.
 *
 * KERNELS are the beginning of what the program prints for them, such as "gemm bf16" or "attention"; "" for all. The
 * times are split in halves by a hash of their shapes. The figures named (all that are not published, if none is) are
 * fitted to the first half by Nelder and Mead's simplex; the program prints what they become and, for each kernel,
 * the mean and the 95th percentile of the relative error in both halves: of the model as it is in the file, of the
 * fitted one, and of the fitted one corrected by the times of the first half. */
#include <gsl/gsl_multimin.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/core/facts.h"
#include "sim/core/files.h"
#include "tests/timed_rows.h"

enum { max_figures = 32, max_groups = 64, max_iterations = 4000 };

struct sample {
    struct dl_kernel kernel;
    enum dl_precision precision;
    double seconds;
    size_t group;
    bool is_kept_out;
};

struct fit {
    struct dl_arena *arena;
    struct dl_json doc;
    struct dl_device device; /* without its times */
    void *options;           /* of the device, changed by the fit */
    const struct dl_field *figures[max_figures];
    double start[max_figures];
    size_t n_figures;
    const char *groups[max_groups];
    size_t n_groups;
    const char *kernels; /* beginning of the names of the groups that count */
    struct sample *samples;
    size_t n_samples, capacity;
};

static void stop_on_error(const struct dl_error *err)
{
    if (!err->status) return;
    fprintf(stderr, "%s\n", err->text);
    exit(EXIT_FAILURE);
}

/* ---- reading ---- */

static size_t group_of(struct fit *f, const json_t *table)
{
    const char *const name = dl_arena_format(f->arena, "%s %s %s", timed_text(table, "kernel"),
                                             timed_text(table, "precision"), timed_text(table, "pass"));
    for (size_t i = 0; i < f->n_groups; i++)
        if (strcmp(f->groups[i], name) == 0) return i;
    if (f->n_groups == max_groups) return max_groups - 1;
    f->groups[f->n_groups] = name;
    return f->n_groups++;
}

static void add_samples(struct fit *f)
{
    size_t i, j;
    json_t *table, *row;
    json_array_foreach(json_object_get(f->doc.value, "measured"), i, table)
    {
        json_array_foreach(json_object_get(table, "rows"), j, row)
        {
            const struct dl_kernel k = timed_kernel(table, row);
            DL_GROW(f->samples, f->n_samples, f->capacity);
            f->samples[f->n_samples++] = (struct sample){.kernel = k,
                                                         .precision = timed_precision(table),
                                                         .seconds = timed_cell(table, row, "seconds", 0),
                                                         .group = group_of(f, table),
                                                         .is_kept_out = is_kept_out(&k)};
        }
    }
}

static bool is_named(const char *key, int n_names, char *const *names)
{
    for (int i = 0; i < n_names; i++)
        if (strcmp(names[i], key) == 0) return true;
    return false;
}

static bool is_published(const struct fit *f, const char *key)
{
    return dl_json_grade(json_object_get(f->doc.value, "figures"), key) == DL_PUBLISHED;
}

static double *figure_of(const struct fit *f, size_t i)
{
    return (double *)((char *)f->options + f->figures[i]->offset);
}

static void choose_figures(struct fit *f, int n_names, char *const *names)
{
    const struct dl_device_model *const model = f->device.model;
    for (size_t i = 0; i < model->n_fields && f->n_figures < max_figures; i++) {
        const struct dl_field *const field = &model->fields[i];
        const bool is_wanted = n_names ? is_named(field->key, n_names, names) : !is_published(f, field->key);
        if (field->type != DL_NUMBER || !is_wanted) continue;
        f->figures[f->n_figures] = field;
        f->start[f->n_figures] = fmax(*figure_of(f, f->n_figures), 1e-12);
        f->n_figures++;
    }
}

static void open_fit(struct fit *f, const char *name, int n_names, char *const *names)
{
    struct dl_error err = {0};
    const char *path;
    f->arena = dl_arena_new();
    (void)(dl_find_file("topologies/devices", "device", name, f->arena, &path, &err) ||
           dl_json_load(path, f->arena, &f->doc, &err) || dl_device_read(f->doc, f->arena, &f->device, &err));
    stop_on_error(&err);
    f->options = dl_arena_alloc(f->arena, f->device.model->options_size);
    memcpy(f->options, f->device.options, f->device.model->options_size);
    f->device.options = f->options;
    f->device.measured = NULL;
    add_samples(f);
    choose_figures(f, n_names, names);
}

/* ---- errors ---- */

static double relative_error(const struct dl_device *d, const struct sample *s)
{
    return dl_price(d, &s->kernel, s->precision).seconds / s->seconds - 1;
}

/* Errors of the first half; kernels weigh as the root of the number of their points, so that none is forgotten. */
static double mean_error(const struct fit *f)
{
    double sum[max_groups] = {0}, all = 0;
    size_t n[max_groups] = {0}, n_groups = 0;
    for (size_t i = 0; i < f->n_samples; i++) {
        const struct sample *const s = &f->samples[i];
        if (s->is_kept_out || strncmp(f->groups[s->group], f->kernels, strlen(f->kernels))) continue;
        sum[s->group] += fabs(log1p(relative_error(&f->device, s)));
        n[s->group]++;
    }
    for (size_t g = 0; g < f->n_groups; g++) {
        all += n[g] ? sum[g] / (double)n[g] * sqrt((double)n[g]) : 0;
        n_groups += n[g] > 0;
    }
    return n_groups ? all / (double)n_groups : 0;
}

enum { all_groups = max_groups };

static void print_half(const struct fit *f, const struct dl_device *d, size_t group, bool kept_out)
{
    double *const errors = dl_alloc((f->n_samples + 1) * sizeof *errors);
    size_t n = 0;
    for (size_t i = 0; i < f->n_samples; i++)
        if ((group == all_groups || f->samples[i].group == group) && f->samples[i].is_kept_out == kept_out)
            errors[n++] = fabs(relative_error(d, &f->samples[i]));
    gsl_sort(errors, 1, n);
    if (n)
        printf("  %6.1f %% %6.1f %% %4zu", 100 * gsl_stats_mean(errors, 1, n),
               100 * gsl_stats_quantile_from_sorted_data(errors, 1, n, 0.95), n);
    else
        printf("  %8s %8s %4d", "-", "-", 0);
    dl_free(errors);
}

static void print_errors(const struct fit *f, const struct dl_device *d, const char *title)
{
    printf("%-40s  fitted: mean      p95    n  kept out: mean  p95    n\n", title);
    for (size_t g = 0; g <= f->n_groups; g++) {
        printf("  %-38s", g < f->n_groups ? f->groups[g] : "all");
        print_half(f, d, g < f->n_groups ? g : all_groups, false);
        print_half(f, d, g < f->n_groups ? g : all_groups, true);
        putchar('\n');
    }
}

/* Where the model is most wrong, which may show what it lacks. */
static void print_worst(const struct fit *f)
{
    enum { n_worst = 10 };
    double *const errors = dl_alloc((f->n_samples + 1) * sizeof *errors);
    size_t *const order = dl_alloc((f->n_samples + 1) * sizeof *order);
    for (size_t i = 0; i < f->n_samples; i++) errors[i] = -fabs(log1p(relative_error(&f->device, &f->samples[i])));
    gsl_sort_index(order, errors, 1, f->n_samples);
    puts("worst");
    for (size_t i = 0; i < n_worst && i < f->n_samples; i++) {
        const struct sample *const s = &f->samples[order[i]];
        printf("  %-38s %+6.1f %%  batch %g m %g n %g k %g elements %g: %.3g s\n", f->groups[s->group],
               100 * relative_error(&f->device, s), s->kernel.batch, s->kernel.m, s->kernel.n, s->kernel.k,
               s->kernel.elements, s->seconds);
    }
    dl_free(errors);
    dl_free(order);
}

/* ---- the fit ---- */

static void set_figures(const struct fit *f, const gsl_vector *logs)
{
    for (size_t i = 0; i < f->n_figures; i++)
        *figure_of(f, i) =
            fmin(fmax(f->start[i] * exp(gsl_vector_get(logs, i)), f->figures[i]->min), f->figures[i]->max);
}

static double objective(const gsl_vector *logs, void *user)
{
    set_figures(user, logs);
    return mean_error(user);
}

static void fit(struct fit *f)
{
    const double first_step = 0.3, small_enough = 1e-5;
    gsl_multimin_function function = {.f = objective, .n = f->n_figures, .params = f};
    gsl_vector *const x = gsl_vector_calloc(f->n_figures), *const step = gsl_vector_alloc(f->n_figures);
    gsl_multimin_fminimizer *const simplex =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, f->n_figures);
    for (int again = 0; again < 3; again++) { /* a new simplex leaves the corner where the last one shrank */
        gsl_vector_set_all(step, first_step);
        gsl_multimin_fminimizer_set(simplex, &function, x, step);
        for (int i = 0; i < max_iterations; i++)
            if (gsl_multimin_fminimizer_iterate(simplex) || gsl_multimin_fminimizer_size(simplex) < small_enough) break;
        gsl_vector_memcpy(x, gsl_multimin_fminimizer_x(simplex));
    }
    set_figures(f, x);
    gsl_multimin_fminimizer_free(simplex);
    gsl_vector_free(x);
    gsl_vector_free(step);
}

/* The file with only the times of the first half, with the fitted figures. */
static struct dl_device corrected(struct fit *f)
{
    struct dl_error err = {0};
    struct dl_device d;
    for (size_t j = 0; j < f->n_figures; j++)
        json_object_set_new(json_object_get(f->doc.value, "figures"), f->figures[j]->key, json_real(*figure_of(f, j)));
    remove_kept_out(f->doc.value);
    dl_device_read(f->doc, f->arena, &d, &err);
    stop_on_error(&err);
    return d;
}

int main(int argc, char **argv)
{
    struct fit f = {.kernels = argc > 2 ? argv[2] : ""};
    if (argc < 2) {
        fprintf(stderr, "bench_fit_device FILE [KERNELS [FIGURE...]]: a device file with \"measured\" times\n");
        return EXIT_FAILURE;
    }
    open_fit(&f, argv[1], argc > 3 ? argc - 3 : 0, argv + 3);
    if (!f.n_samples || !f.n_figures) {
        fprintf(stderr, "%s: there is nothing to fit: no measured times, or no such figure\n", argv[1]);
        return EXIT_FAILURE;
    }
    print_errors(&f, &f.device, "as it is");
    fit(&f);
    puts("figures");
    for (size_t i = 0; i < f.n_figures; i++)
        printf("  %-38s %10.4g -> %.4g\n", f.figures[i]->key, f.start[i], *figure_of(&f, i));
    print_errors(&f, &f.device, "fitted");
    print_worst(&f);
    const struct dl_device d = corrected(&f);
    print_errors(&f, &d, "corrected by the fitted half's times");
    json_decref(f.doc.value);
    dl_free(f.samples);
    dl_arena_free(f.arena);
    return EXIT_SUCCESS;
}
