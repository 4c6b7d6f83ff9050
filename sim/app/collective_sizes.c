#include "sim/app/collective_sizes.h"

#include <math.h>
#include <string.h>

#include "sim/report/progress.h"
#include "sim/session/pool.h"

/* ---- what is compared ---- */

/* Two sizes a decade, the ends included. */
static size_t count_sizes(const struct dl_sizes_range *range)
{
    const double per_decade = 2;
    return range->n ? (size_t)range->n : 1 + (size_t)ceil(per_decade * log10(range->to / range->from) - 1e-9);
}

static void set_sizes(const struct dl_sizes_range *range, struct dl_arena *arena, struct dl_sizes *out)
{
    const size_t n = count_sizes(range);
    const double ratio = range->to / range->from;
    out->bytes = dl_arena_alloc(arena, n * sizeof *out->bytes);
    out->n_bytes = n;
    for (size_t i = 0; i < n; i++) out->bytes[i] = rint(range->from * pow(ratio, (double)i / (double)(n - 1)));
}

/* Who names one is told why it cannot be. */
static enum dl_status add_named(const struct dl_sizes_request *q, const char *name, struct dl_arena *arena,
                                struct dl_sizes *out, struct dl_error *err)
{
    struct dl_wish wish = q->wish;
    struct dl_choice choice;
    wish.algorithm = name;
    wish.bytes = out->bytes[out->n_bytes - 1];
    for (size_t i = 0; i < out->n_algorithms; i++)
        if (strcmp(out->algorithms[i], name) == 0)
            return dl_fail(err, DL_SYNTAX, "--algo", "'%.60s' is named twice", name);
    if (dl_choose(q->estimator, &wish, arena, &choice, err)) return err->status;
    out->algorithms[out->n_algorithms++] = choice.collective.algorithm->name;
    return DL_OK;
}

/* "ring,tree" */
static enum dl_status set_named(const struct dl_sizes_request *q, struct dl_arena *arena, struct dl_sizes *out,
                                struct dl_error *err)
{
    char *at = dl_arena_string(arena, q->wish.algorithm);
    while (at && !err->status) {
        char *const comma = strchr(at, ',');
        if (comma) *comma = '\0';
        add_named(q, at, arena, out, err);
        at = comma ? comma + 1 : NULL;
    }
    return err->status;
}

static enum dl_status set_possible(const struct dl_sizes_request *q, struct dl_arena *arena, struct dl_sizes *out,
                                   struct dl_error *err)
{
    const struct dl_algorithm **const all = dl_arena_alloc(arena, dl_algorithm_count() * sizeof *all);
    struct dl_wish wish = q->wish;
    wish.bytes = out->bytes[out->n_bytes - 1];
    out->n_algorithms = dl_possible_algorithms(q->estimator, &wish, arena, all);
    for (size_t i = 0; i < out->n_algorithms; i++) out->algorithms[i] = all[i]->name;
    if (out->n_algorithms) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, "--sizes", "transport %s has no algorithm for %s here",
                   q->estimator->transport->name, dl_op_name(wish.op));
}

/* ---- times ---- */

struct grid {
    const struct dl_sizes_request *request;
    struct dl_arena *arena;
    struct dl_sizes *out;
    struct dl_choice *choices; /* as the cells; algorithm is NULL: it cannot be done */
};

static struct dl_choice choice_of(const struct grid *g, const char *algorithm, double bytes)
{
    struct dl_wish wish = g->request->wish;
    struct dl_choice choice;
    struct dl_error not_this_one = {0};
    wish.algorithm = algorithm;
    wish.bytes = bytes;
    if (dl_choose(g->request->estimator, &wish, g->arena, &choice, &not_this_one)) choice = (struct dl_choice){0};
    return choice;
}

static double estimated_s(const struct dl_choice *choice)
{
    return choice->collective.algorithm ? choice->estimate.time_s : INFINITY;
}

static void estimate_all(struct grid *g)
{
    struct dl_sizes *const out = g->out;
    for (size_t i = 0; i < out->n_bytes; i++) {
        const struct dl_choice automatic = choice_of(g, "auto", out->bytes[i]);
        out->automatic[i] = automatic.collective.algorithm ? automatic.collective.algorithm->name : NULL;
        for (size_t k = 0; k < out->n_algorithms; k++) {
            struct dl_choice *const choice = &g->choices[i * out->n_algorithms + k];
            *choice = choice_of(g, out->algorithms[k], out->bytes[i]);
            out->cells[i * out->n_algorithms + k] =
                (struct dl_size_cell){choice->estimate.pace.protocol, estimated_s(choice)};
            dl_progress_jobs(i * out->n_algorithms + k + 1, out->n_bytes * out->n_algorithms, "estimates");
        }
    }
}

struct simulated {
    double time_s;
    struct dl_error err;
};

static void simulate_one(void *user, size_t job, void *result)
{
    const struct grid *const g = user;
    struct simulated *const s = result;
    s->time_s = INFINITY;
    if (g->choices[job].collective.algorithm)
        s->time_s = g->request->simulate(g->request->user, &g->choices[job], &s->err);
}

static enum dl_status simulate_all(struct grid *g, struct dl_error *err)
{
    const struct dl_pool_request pool = {.n_jobs = g->out->n_bytes * g->out->n_algorithms,
                                         .result_bytes = sizeof(struct simulated),
                                         .run = simulate_one,
                                         .user = g,
                                         .simulates = true,
                                         .what = "sizes and algorithms"};
    struct simulated *const results = dl_alloc(pool.n_jobs * sizeof *results);
    struct dl_error *const errors = dl_alloc(pool.n_jobs * sizeof *errors);
    dl_pool_run(&pool, results, errors);
    dl_pool_check(&pool, errors, "--sizes", err);
    for (size_t i = 0; i < pool.n_jobs && !err->status; i++) {
        if (results[i].err.status) dl_fail(err, results[i].err.status, NULL, "%s", results[i].err.text);
        g->out->cells[i].time_s = results[i].time_s;
    }
    dl_free(results);
    dl_free(errors);
    return err->status;
}

/* ---- cross-overs ---- */

static size_t fastest_at(const struct grid *g, double bytes)
{
    size_t fastest = 0;
    double least_s = INFINITY;
    for (size_t i = 0; i < g->out->n_algorithms; i++) {
        const struct dl_choice choice = choice_of(g, g->out->algorithms[i], bytes);
        if (estimated_s(&choice) >= least_s) continue;
        least_s = estimated_s(&choice);
        fastest = i;
    }
    return fastest;
}

static void add_crossover(struct grid *g, struct dl_crossover c) { g->out->crossovers[g->out->n_crossovers++] = c; }

/* The first size above `low` where `from` is no longer the fastest, to about a part in a thousand; whichever follows it
 * there need not be the fastest at `high` yet. */
static struct dl_crossover find_first(const struct grid *g, double low, double high, size_t from, size_t to)
{
    const double close = 1.001;
    while (high / low > close) {
        const double middle = sqrt(low * high);
        const size_t fastest = fastest_at(g, middle);
        if (fastest == from) {
            low = middle;
        } else {
            high = middle;
            to = fastest;
        }
    }
    return (struct dl_crossover){rint(high), rint(high), from, to};
}

static void find_between(struct grid *g, size_t i)
{
    const double high = g->out->bytes[i + 1];
    size_t from = dl_sizes_fastest(g->out, i);
    const size_t to = dl_sizes_fastest(g->out, i + 1);
    double low = g->out->bytes[i];
    if (g->request->simulate) {
        if (from != to) add_crossover(g, (struct dl_crossover){low, high, from, to});
        return;
    }
    for (size_t k = 0; k < g->out->n_algorithms && from != to; k++) { /* each is passed once, and ends it in any case */
        const struct dl_crossover c = find_first(g, low, high, from, to);
        add_crossover(g, c);
        low = c.high_bytes;
        from = c.to;
    }
}

enum dl_status dl_sizes_find(const struct dl_sizes_request *request, struct dl_arena *arena, struct dl_sizes *out,
                             struct dl_error *err)
{
    struct grid g = {.request = request, .arena = arena, .out = out};
    set_sizes(&request->range, arena, out);
    out->algorithms = dl_arena_alloc(arena, dl_algorithm_count() * sizeof *out->algorithms);
    const bool is_auto = dl_is_auto(request->wish.algorithm);
    if (is_auto ? set_possible(request, arena, out, err) : set_named(request, arena, out, err)) return err->status;
    const size_t n_cells = out->n_bytes * out->n_algorithms;
    out->cells = dl_arena_alloc(arena, n_cells * sizeof *out->cells);
    out->automatic = dl_arena_alloc(arena, out->n_bytes * sizeof *out->automatic);
    out->crossovers = dl_arena_alloc(arena, n_cells * sizeof *out->crossovers);
    g.choices = dl_alloc(n_cells * sizeof *g.choices);
    estimate_all(&g);
    if (!request->simulate || !simulate_all(&g, err))
        for (size_t i = 0; i + 1 < out->n_bytes; i++) find_between(&g, i);
    dl_free(g.choices);
    return err->status;
}
