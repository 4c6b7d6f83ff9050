/* auto_best.h - `auto` against every algorithm that it may choose, all simulated, for auto_best.c and auto_best_long.c.
 *
 * Where a library's tuner is imitated its choice may be slower, but then the answer names a faster one. */
#ifndef DL_TESTS_AUTO_BEST_H
#define DL_TESTS_AUTO_BEST_H

#include <check.h>

#include "sim/core/files.h"
#include "tests/collective_runs.h"

/* How many times as long as an algorithm `auto` may take. */
static const double most_above_best = 1.05;
static const struct {
    const char *faster;
    enum dl_op op;
    double most;
} exceptions[] = {
    /* Its lanes are taken to be in the same step half of the time. Where all share PCIe with a slow NIC they are less
     * (l40s), so that a library's tuner is wrong and the estimate does not say so. */
    {"rings", DL_ALLREDUCE, 1.12},
    /* Its lanes are estimated as if all were in the same round: one moves while the others wait for their latencies. */
    {"torus", DL_ALLREDUCE, 1.10},
    /* Four parts that come at once are added as they come; the estimate adds them at the end. */
    {"direct", DL_REDUCESCATTER, 1.07},
};

static inline double most_above(const struct job *job)
{
    for (size_t i = 0; i < DL_COUNT(exceptions); i++)
        if (exceptions[i].op == job->op && strcmp(exceptions[i].faster, job->algorithm) == 0) return exceptions[i].most;
    return most_above_best;
}

static const enum dl_op chosen_ops[] = {DL_ALLREDUCE, DL_ALLGATHER, DL_REDUCESCATTER, DL_ALLTOALL,
                                        DL_BROADCAST, DL_REDUCE,    DL_GATHER,        DL_SCATTER};

struct auto_case {
    const char *system;
    uint32_t n_ranks;
    const char *const *algorithms; /* by their number: that the transport has; NULL: it has not */
    bool tuned;
};

/* Of the system: its devices, and what its software may choose from. The names stay in the arena. */
static inline struct auto_case read_case(const char *system, uint32_t n_ranks, struct dl_arena *arena)
{
    struct auto_case x = {.system = system, .n_ranks = n_ranks};
    struct dl_machine m = {0};
    struct dl_error err = {0};
    const struct dl_texts none = {0};
    ck_assert_msg(!dl_machine_open((struct dl_input){.name = system}, &none, arena, &m, &err), "%s", err.text);
    const uint32_t n_devices = m.topology->n_devices, in_node = m.topology->node.n_devices;
    if (n_devices <= n_ranks) x.n_ranks = n_devices - 1; /* one more is wanted for a server */
    ck_assert(!dl_machine_use_transport(&m, NULL, (x.n_ranks + in_node - 1) / in_node, &none, arena, &err));
    x.tuned = m.transport.tuner != NULL;
    const char **const names = dl_arena_alloc(arena, (dl_algorithm_count() + 1) * sizeof *names);
    size_t n = 0;
    for (size_t i = 0; i < dl_algorithm_count(); i++) {
        const struct dl_algorithm *const a = dl_algorithm_get(i);
        names[i] = a->automatic && dl_transport_has(&m.transport, dl_op_name(a->op), a->name) ? a->name : NULL;
        n += names[i] != NULL;
    }
    ck_assert_uint_gt(n, 0);
    x.algorithms = names;
    dl_machine_close(&m);
    return x;
}

/* The first is auto. */
static inline size_t list_rivals(const struct auto_case *x, enum dl_op op, double bytes, struct job *jobs)
{
    const struct job job = {.op = op, .algorithm = "auto", .n = x->n_ranks, .bytes = bytes, .refusable = true};
    size_t n = 0;
    jobs[n++] = job;
    for (size_t i = 0; i < dl_algorithm_count(); i++) {
        if (dl_algorithm_get(i)->op != op || !x->algorithms[i]) continue;
        jobs[n] = job;
        jobs[n++].algorithm = x->algorithms[i];
    }
    return n;
}

static inline void check_rivals(const struct auto_case *x, const struct job *jobs, const struct outcome *outcomes,
                                size_t n)
{
    const struct outcome *const chosen = &outcomes[0];
    for (size_t i = 1; i < n; i++)
        ck_assert_msg(outcomes[i].refused ||
                          chosen->result.time_s <= most_above(&jobs[i]) * outcomes[i].result.time_s ||
                          (x->tuned && chosen->names_faster),
                      "%s, %s of %g bytes over %u: auto takes %g s (estimate %g s), %s %g s (estimate %g s)%s",
                      x->system, dl_op_name(jobs[0].op), jobs[0].bytes, x->n_ranks, chosen->result.time_s,
                      chosen->estimate_s, jobs[i].algorithm, outcomes[i].result.time_s, outcomes[i].estimate_s,
                      x->tuned ? ", and no faster one is named" : "");
}

static inline void check_auto(const char *system, uint32_t n_ranks, const double *sizes, size_t n_sizes)
{
    enum { most = 1024 };
    static struct job jobs[most];
    static struct outcome outcomes[most];
    size_t n = 0, first[most], n_questions = 0;
    struct dl_arena *const arena = dl_arena_new();
    const struct auto_case x = read_case(system, n_ranks, arena);
    const struct setting setting = {.system = system, .engine = "simgrid"};
    for (size_t i = 0; x.n_ranks > 1 && i < n_sizes * DL_COUNT(chosen_ops); i++) { /* small ones first */
        ck_assert_uint_le(n + dl_algorithm_count() + 1, most);
        first[n_questions++] = n;
        n += list_rivals(&x, chosen_ops[i % DL_COUNT(chosen_ops)], sizes[i / DL_COUNT(chosen_ops)], &jobs[n]);
    }
    first[n_questions] = n;
    if (n) run_jobs(&setting, jobs, n, outcomes);
    for (size_t i = 0; i < n_questions; i++)
        check_rivals(&x, &jobs[first[i]], &outcomes[first[i]], first[i + 1] - first[i]);
    dl_arena_free(arena);
}

#endif
