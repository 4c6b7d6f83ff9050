#include "kernels/harness.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/numbers.h"

enum { poison = 0xff, guard_bytes = 64 }; /* all ones are a NaN in every floating-point format */

void *dl_memory(size_t bytes)
{
    void *const memory = calloc(1, bytes ? bytes : 1);
    if (memory) return memory;
    fprintf(stderr, "dlsim-profile: no memory for %zu bytes\n", bytes);
    exit(3);
}

bool dl_routine_can(const struct dl_routine *r, const int64_t *dim, enum dl_float f)
{
    return !r->lacks && (r->precisions >> f & 1) && (!r->can || r->can(dim, f));
}

static size_t tensor_bytes(const struct dl_trial *t, size_t i)
{
    return dl_tensor_count(t->problem, i, t->dim) * dl_store_bytes(t->problem->tensors[i].store, t->precision);
}

static struct dl_call call_of(const struct dl_trial *t)
{
    return (struct dl_call){t->dim, t->precision, t->tensor, t->workspace, t->plan};
}

static double filled(const struct dl_trial *t, const struct dl_tensor_spec *s, size_t tensor, size_t i)
{
    const uint64_t stream = (uint64_t)dl_bits(1 + t->seed * DL_MAX_TENSORS + tensor) << 32;
    const double chance = (double)dl_chance(stream + i);
    switch (s->fill) {
    case DL_FILL_UNIFORM: return 2 * chance - 1;
    case DL_FILL_POSITIVE: return 0.5 + chance;
    case DL_FILL_BELOW:
        for (size_t d = 0; t->problem->dims[d]; d++)
            if (strcmp(s->below, t->problem->dims[d]) == 0) return floor(chance * (double)t->dim[d]);
        break;
    case DL_FILL_CODE: return floor(chance * (UINT8_MAX + 1));
    case DL_FILL_MASK: return dl_kept(i);
    case DL_FILL_ZERO: return 0;
    }
    assert(!"no such way to fill a tensor");
    return 0;
}

/* What the first n numbers of a tensor are before a call, and a guard behind them; the caller's to free. */
static uint8_t *contents(const struct dl_trial *t, size_t tensor, size_t n)
{
    const struct dl_tensor_spec *const s = &t->problem->tensors[tensor];
    const size_t bytes = n * dl_store_bytes(s->store, t->precision);
    uint8_t *const memory = dl_memory(bytes + guard_bytes);
    memset(memory, poison, bytes + guard_bytes);
    if (s->role != DL_OUTPUT)
        for (size_t i = 0; i < n; i++) dl_store_put(memory, i, filled(t, s, tensor, i), s->store, t->precision);
    return memory;
}

static double *as_doubles(const struct dl_trial *t, size_t tensor, const uint8_t *memory)
{
    const size_t n = dl_tensor_count(t->problem, tensor, t->dim);
    double *const numbers = dl_memory(n * sizeof *numbers);
    for (size_t i = 0; i < n; i++)
        numbers[i] = dl_store_get(memory, i, t->problem->tensors[tensor].store, t->precision);
    return numbers;
}

static void derive(const struct dl_trial *t, uint8_t *const *memory)
{
    double *numbers[DL_MAX_TENSORS];
    for (size_t i = 0; i < t->problem->n_tensors; i++) numbers[i] = as_doubles(t, i, memory[i]);
    t->problem->derive(t->dim, numbers);
    for (size_t i = 0; i < t->problem->n_tensors; i++) {
        const struct dl_tensor_spec *const s = &t->problem->tensors[i];
        const size_t n = s->role == DL_OUTPUT ? 0 : dl_tensor_count(t->problem, i, t->dim);
        for (size_t j = 0; j < n; j++) dl_store_put(memory[i], j, numbers[i][j], s->store, t->precision);
        free(numbers[i]);
    }
}

static void all_contents(const struct dl_trial *t, uint8_t **memory)
{
    for (size_t i = 0; i < t->problem->n_tensors; i++)
        memory[i] = contents(t, i, dl_tensor_count(t->problem, i, t->dim));
    if (t->problem->derive) derive(t, memory);
}

/* Where only the time counts, the same numbers come again and again, and derived inputs are filled as the others:
 * tensors may be large, and working all of them out takes long. The period is a multiple of no power of two above 16,
 * so that the rows of matrices differ. */
static void fill_for_timing(struct dl_trial *t)
{
    enum { period = 65552 };
    for (size_t i = 0; i < t->problem->n_tensors; i++) {
        const size_t all = dl_tensor_count(t->problem, i, t->dim), n = all < period ? all : period;
        const size_t bytes = n * dl_store_bytes(t->problem->tensors[i].store, t->precision);
        uint8_t *const host = contents(t, i, n);
        t->backend->upload(t->tensor[i], host, bytes + guard_bytes);
        if (n < all) t->backend->repeat(t->tensor[i], bytes, tensor_bytes(t, i));
        free(host);
    }
}

static void fill_tensors(struct dl_trial *t)
{
    uint8_t *host[DL_MAX_TENSORS];
    all_contents(t, host);
    for (size_t i = 0; i < t->problem->n_tensors; i++) {
        t->backend->upload(t->tensor[i], host[i], tensor_bytes(t, i) + guard_bytes);
        free(host[i]);
    }
}

static size_t workspace_bytes(const struct dl_trial *t)
{
    return t->routine->workspace_bytes ? t->routine->workspace_bytes(t->dim, t->precision) : 0;
}

/* With a guard behind it. */
static void make_workspace(struct dl_trial *t)
{
    enum { period_bytes = 1024 };
    const size_t needed = workspace_bytes(t), bytes = needed + guard_bytes;
    const size_t first_bytes = bytes < period_bytes ? bytes : period_bytes;
    uint8_t host[period_bytes];
    if (!needed) return;
    memset(host, poison, first_bytes);
    t->workspace = t->backend->alloc(bytes);
    t->backend->upload(t->workspace, host, first_bytes);
    t->backend->repeat(t->workspace, first_bytes, bytes);
}

static bool is_apart(const struct dl_trial *t, size_t i)
{
    return t->problem->tensors[i].is_on_host && t->backend->alloc_host;
}

static void *alloc_tensor(const struct dl_trial *t, size_t i)
{
    const size_t bytes = tensor_bytes(t, i) + guard_bytes;
    return is_apart(t, i) ? t->backend->alloc_host(bytes) : t->backend->alloc(bytes);
}

static void free_tensor(const struct dl_trial *t, size_t i)
{
    if (is_apart(t, i))
        t->backend->free_host(t->tensor[i]);
    else
        t->backend->free(t->tensor[i]);
}

/* Tensors are allocated, not filled. */
static struct dl_trial *empty_trial(const struct dl_trial_spec *spec)
{
    struct dl_trial *const t = dl_memory(sizeof *t);
    *t = (struct dl_trial){.backend = spec->backend, .routine = spec->routine};
    t->problem = dl_problem_find(spec->routine->problem, spec->routine->pass);
    assert(t->problem && t->problem->n_tensors <= DL_MAX_TENSORS);
    t->precision = spec->precision;
    t->seed = spec->seed;
    dl_problem_complete(t->problem, spec->given, t->dim);
    for (size_t i = 0; i < t->problem->n_tensors; i++) t->tensor[i] = alloc_tensor(t, i);
    return t;
}

static struct dl_trial *ready(struct dl_trial *t)
{
    make_workspace(t);
    const struct dl_call call = call_of(t);
    if (t->routine->open) t->plan = t->routine->open(&call);
    return t;
}

struct dl_trial *dl_trial_new(const struct dl_trial_spec *spec)
{
    struct dl_trial *const t = empty_trial(spec);
    fill_for_timing(t);
    return ready(t);
}

struct dl_trial *dl_trial_twin(const struct dl_trial *of)
{
    struct dl_trial *const t =
        empty_trial(&(struct dl_trial_spec){of->backend, of->routine, of->dim, of->precision, of->seed});
    for (size_t i = 0; i < t->problem->n_tensors; i++)
        t->backend->upload(t->tensor[i], of->tensor[i], tensor_bytes(t, i) + guard_bytes);
    return ready(t);
}

void dl_trial_free(struct dl_trial *t)
{
    if (!t) return;
    if (t->routine->close) t->routine->close(t->plan);
    for (size_t i = 0; i < t->problem->n_tensors; i++) free_tensor(t, i);
    if (t->workspace) t->backend->free(t->workspace);
    free(t);
}

void dl_trial_run(const struct dl_trial *t)
{
    const struct dl_call call = call_of(t);
    t->routine->run(&call);
}

double dl_trial_bytes(const struct dl_trial *t)
{
    double bytes = (double)workspace_bytes(t);
    for (size_t i = 0; i < t->problem->n_tensors; i++) bytes += (double)tensor_bytes(t, i);
    return bytes;
}

/* What is checked: bytes before and after the call, and all as doubles. */
struct evidence {
    uint8_t *bytes_before[DL_MAX_TENSORS], *bytes_after[DL_MAX_TENSORS];
    double *before[DL_MAX_TENSORS], *after[DL_MAX_TENSORS], *magnitude[DL_MAX_TENSORS];
};

static void gather(const struct dl_trial *t, struct evidence *e)
{
    all_contents(t, e->bytes_before);
    for (size_t i = 0; i < t->problem->n_tensors; i++) {
        const size_t bytes = tensor_bytes(t, i) + guard_bytes;
        e->bytes_after[i] = dl_memory(bytes);
        t->backend->download(e->bytes_after[i], t->tensor[i], bytes);
        e->before[i] = as_doubles(t, i, e->bytes_before[i]);
        e->after[i] = as_doubles(t, i, e->bytes_after[i]);
        e->magnitude[i] = dl_memory(dl_tensor_count(t->problem, i, t->dim) * sizeof *e->magnitude[i]);
    }
}

static void release(const struct dl_trial *t, struct evidence *e)
{
    for (size_t i = 0; i < t->problem->n_tensors; i++) {
        free(e->bytes_before[i]);
        free(e->bytes_after[i]);
        free(e->before[i]);
        free(e->after[i]);
        free(e->magnitude[i]);
    }
}

static char complaint[256];

static const char *check_untouched(const struct dl_trial *t, const struct evidence *e, size_t i)
{
    const struct dl_tensor_spec *const s = &t->problem->tensors[i];
    const size_t bytes = tensor_bytes(t, i), from = s->role == DL_INPUT ? 0 : bytes;
    if (memcmp(e->bytes_before[i] + from, e->bytes_after[i] + from, bytes - from + guard_bytes) == 0) return NULL;
    snprintf(complaint, sizeof complaint, "%s: %s was changed", s->name,
             s->role == DL_INPUT ? "this input or what is behind it" : "the memory behind it");
    return complaint;
}

/* What it has more of than it says would not be within anyone's limit. */
static const char *check_workspace(const struct dl_trial *t)
{
    uint8_t guard[guard_bytes];
    if (!t->workspace) return NULL;
    t->backend->download(guard, (const uint8_t *)t->workspace + workspace_bytes(t), guard_bytes);
    for (size_t i = 0; i < guard_bytes; i++)
        if (guard[i] != poison) return "workspace: the memory behind it was changed";
    return NULL;
}

static double root_mean_square(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return n ? sqrt(sum / (double)n) : 0;
}

/* The reference has been written over what was there before. */
static const char *compare(const struct dl_trial *t, const struct evidence *e, size_t tensor, double *worst)
{
    const struct dl_tensor_spec *const s = &t->problem->tensors[tensor];
    const size_t n = dl_tensor_count(t->problem, tensor, t->dim);
    const double *const reference = e->before[tensor], *const got = e->after[tensor];
    const bool is_whole = s->store == DL_STORE_INT || s->store == DL_STORE_BYTE;
    const enum dl_float f = s->store == DL_STORE_FLOAT && t->precision != DL_FLOAT_TF32 ? DL_FLOAT_FP32 : t->precision;
    const double tolerance = is_whole ? 0 : dl_float_tolerance(f) * (s->slack > 0 ? s->slack : 1);
    const double scale = root_mean_square(reference, n), last_place = is_whole ? 0 : dl_float_least(f) / 2;
    for (size_t i = 0; i < n; i++) {
        const double error = fabs(got[i] - reference[i]), size = fabs(reference[i]) + scale;
        const double allowed = tolerance * fmax(size, e->magnitude[tensor][i]) + last_place;
        if (error > 0 && allowed > 0 && worst) *worst = fmax(*worst, error / allowed);
        if (error <= allowed) continue; /* so that NaN fails too */
        snprintf(complaint, sizeof complaint, "%s[%zu]: must be %.9g within %.2g, got %.9g", s->name, i, reference[i],
                 allowed, got[i]);
        return complaint;
    }
    return NULL;
}

static const char *judge(const struct dl_trial *t, const struct evidence *e, double *worst)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < t->problem->n_tensors && !wrong; i++) wrong = check_untouched(t, e, i);
    if (wrong) return wrong;
    if (t->problem->verify) return t->problem->verify(t->dim, e->before, e->after);
    t->problem->reference(t->dim, e->before);
    if (t->problem->magnitudes) t->problem->magnitudes(t->dim, e->before, e->magnitude);
    for (size_t i = 0; i < t->problem->n_tensors && !wrong; i++)
        if (t->problem->tensors[i].role != DL_INPUT) wrong = compare(t, e, i, worst);
    return wrong;
}

const char *dl_trial_check(struct dl_trial *t, double *worst)
{
    struct evidence e;
    if (worst) *worst = 0;
    fill_tensors(t);
    t->backend->start();
    dl_trial_run(t);
    t->backend->stop();
    gather(t, &e);
    const char *const wrong = judge(t, &e, worst);
    release(t, &e);
    return wrong ? wrong : check_workspace(t);
}
