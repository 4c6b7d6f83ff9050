/* main.c - dlsim-train: trains a model for real, under a strategy file of dlsim's, on as many MPI ranks as it asks for.
 *
 *   mpirun -n 4 dlsim-train --strategy FILE [--workload W] [--steps N] [--algo NAME] [--json FILE|-] [--trace FILE]
 *       [--expect FILE [--tolerance X]] [--converges RATIO] [--check-gradients] [--learning-rate X] [--seed N]
 *       [--devices N] [--spin] [--set PATH=JSON]...
 *
 * Under SMPI (validation/smpi) also --topo T, the machine whose devices compute.
 *
 * Exit codes are dlsim's: 1 the losses are not those of --expect, or have not come down to RATIO of the first; 2 bad
 * usage or input. */
#include <cblas.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>

#include "validation/mpi/helper.h"
#include "validation/mpi/queue.h"

#define AT(member) offsetof(struct dl_train_options, member)
static const struct dl_option options[] = {
    {"strategy", DL_OPT_TEXT, AT(strategy), true, 0, 0, NULL, "a strategy file of dlsim's"},
    {"workload", DL_OPT_TEXT, AT(workload), false, 0, 0, NULL, "the model, in place of the strategy's"},
    {"topo", DL_OPT_TEXT, AT(topo), false, 0, 0, NULL, "under SMPI: the machine whose devices compute"},
    {"algo", DL_OPT_TEXT, AT(algorithm), false, 0, 0, NULL,
     "that sums gradients: mpi, ring, tree, recursive_doubling or rabenseifner; mpi if absent"},
    {"steps", DL_OPT_COUNT, AT(steps), false, 1, 1e6, NULL, "10 if absent"},
    {"seed", DL_OPT_COUNT, AT(seed), false, 0, 1e15, NULL, "of parameters and samples; 0 if absent"},
    {"devices", DL_OPT_COUNT, AT(devices), false, 1, 1e6, NULL, "ranks, in place of the strategy's"},
    {"learning-rate", DL_OPT_NUMBER, AT(learning_rate), false, 0, 1e3, NULL,
     "as the model's optimizer has it if absent"},
    {"json", DL_OPT_TEXT, AT(json), false, 0, 0, NULL, "losses and times by phase; - is standard output"},
    {"trace", DL_OPT_TEXT, AT(trace), false, 0, 0, NULL, "the last step, in the format of dlsim --trace"},
    {"expect", DL_OPT_TEXT, AT(expect), false, 0, 0, NULL, "a file of --json whose losses these must equal"},
    {"tolerance", DL_OPT_NUMBER, AT(tolerance), false, 0, 1, NULL,
     "by which they may differ from --expect; 1e-4 if absent"},
    {"converges", DL_OPT_NUMBER, AT(converges), false, 0, 1, NULL,
     "the last loss must be at most this times the first"},
    {"check-gradients", DL_OPT_FLAG, AT(check_gradients), false, 0, 0, NULL,
     "against differences of the loss, and train nothing"},
    {"spin", DL_OPT_FLAG, AT(spins), false, 0, 0, NULL,
     "a thread that waits for the other one of its rank does not sleep: each has a core"},
    {"set", DL_OPT_TEXTS, AT(set), false, 0, 0, NULL, "another value of a file, as for dlsim; may be repeated"},
};

static enum dl_status find_algorithm(struct dl_train *t, struct dl_error *err)
{
    const char *const name = t->options->algorithm;
    t->algorithm = dl_find_sum(name);
    if (t->algorithm && t->algorithm != &dl_sum_parameter_server) return DL_OK;
    return dl_fail(err, DL_RANGE, "--algo", "must be mpi, ring, tree, recursive_doubling or rabenseifner, got '%s'",
                   name);
}

/* All ranks read the same, so all refuse the same. */
static enum dl_status prepare(struct dl_train *t, struct dl_error *err)
{
    t->product = &dl_product_alone;
    if (find_algorithm(t, err) || dl_train_read(t, err) || dl_train_join(t, err) || t->is_server ||
        dl_pacer_new(t, err))
        return err->status;
    for (size_t i = 0; i < t->n_strategies; i++)
        if (t->strategies[i]->begin && t->strategies[i]->begin(t, t->levels[i], err)) return err->status;
    t->layers = dl_alloc(t->model.n_layers * sizeof *t->layers);
    for (size_t i = 0; i < t->model.n_layers; i++) t->layers[i].is = &t->model.layers[i];
    if (t->kind->build(t, err)) return err->status;
    dl_train_allocate(t);
    dl_train_prepare_memos(t);
    dl_draw_samples(t);
    for (size_t i = 0; i < t->n_strategies; i++)
        if (t->strategies[i]->prepare) t->strategies[i]->prepare(t);
    return DL_OK;
}

static void run_steps(struct dl_train *t, struct dl_losses *l)
{
    MPI_Barrier(t->workers);
    dl_pacer_start(t->timeline.pacer);
    t->timeline.zero_s = MPI_Wtime();
    for (size_t i = 0; i < l->n; i++) {
        t->timeline.records = t->options->trace && i + 1 == l->n;
        dl_train_step(t);
        if (i < dl_warm_ups(l->n)) dl_forget_times(&t->timeline);
        l->list[i] = t->loss;
        l->step_s[i] = dl_now_s(&t->timeline);
    }
    MPI_Allreduce(MPI_IN_PLACE, l->list, (int)l->n, MPI_DOUBLE, MPI_SUM, t->workers);
    MPI_Allreduce(MPI_IN_PLACE, l->step_s, (int)l->n, MPI_DOUBLE, MPI_MAX, t->workers);
    for (size_t i = l->n; i-- > 1;) l->step_s[i] -= l->step_s[i - 1]; /* from the end of the one before */
}

static bool converged(const struct dl_train *t, const struct dl_losses *l)
{
    const double first = l->list[0], last = l->list[l->n - 1], ratio = t->options->converges;
    if (ratio <= 0 || last <= ratio * first) return true; /* NaN has not */
    if (t->rank == 0) printf("loss %g -> %g, not below %g of the first\n", first, last, ratio);
    return false;
}

/* The most relative difference from the losses in a file that --json wrote; negative: they cannot be compared. */
static double difference(const struct dl_train *t, const struct dl_losses *l, struct dl_error *err)
{
    struct dl_json doc;
    double most = 0;
    if (dl_json_load(t->options->expect, t->arena, &doc, err)) return -1;
    const json_t *const list = json_object_get(doc.value, "losses");
    if (json_array_size(list) < l->n) dl_fail(err, DL_RANGE, t->options->expect, "has fewer losses than --steps");
    for (size_t i = 0; i < l->n && !err->status; i++) {
        const double expected = json_number_value(json_array_get(list, i));
        const double relative = fabs(l->list[i] - expected) / fabs(expected);
        most = relative <= most ? most : relative; /* NaN stays */
    }
    json_decref(doc.value);
    return most;
}

static bool as_expected(const struct dl_train *t, const struct dl_losses *l, struct dl_error *err)
{
    if (!t->options->expect) return true;
    const double most = difference(t, l, err);
    const bool good = !err->status && most <= t->options->tolerance;
    if (t->rank == 0 && !err->status)
        printf("losses differ by %.1e at most, allowed %.1e\n", most, t->options->tolerance);
    return good;
}

static int train(struct dl_train *t, struct dl_error *err)
{
    const size_t n = t->options->steps;
    struct dl_losses l = {.list = dl_alloc(2 * n * sizeof(double)), .n = n};
    l.step_s = l.list + n;
    run_steps(t, &l);
    dl_queue_free(t->queue);
    if (t->options->json) dl_report_json(t, &l, err);
    if (t->options->trace) dl_report_trace(t, err);
    if (t->rank == 0 && !t->options->json && !t->options->expect)
        for (size_t i = 0; i < n; i++) printf("step %zu: loss %.9g, %.3g s\n", i, l.list[i], l.step_s[i]);
    const bool good = converged(t, &l) & as_expected(t, &l, err);
    dl_free(l.list);
    return !good;
}

static int check(struct dl_train *t, struct dl_error *err)
{
    if (t->n_ranks > 1) return !!dl_fail(err, DL_IMPOSSIBLE, "--check-gradients", "is for one rank");
    const double most = dl_check_gradients(t);
    printf("gradients differ by %.1e at most, allowed %.1e\n", most, t->options->tolerance);
    return !(most <= t->options->tolerance);
}

/* Once there are servers they must be told that it is over, whatever happened. */
static int run(struct dl_train *t, struct dl_error *err)
{
    int code = prepare(t, err) ? 2 : 0;
    if (t->workers == MPI_COMM_NULL) return code; /* so it is on all ranks */
    if (t->is_server) {
        dl_serve_parameters(&(struct dl_service){.world = t->world,
                                                 .n_workers = (int)t->job.n_devices,
                                                 .members = (int)t->s->ways[DL_AXIS_DATA],
                                                 .most = (size_t)dl_model_parameters(&t->model)});
    } else {
        if (!code) code = t->options->check_gradients ? check(t, err) : train(t, err);
        dl_dismiss_servers(&t->replicas[DL_SET_COMMON]);
    }
    if (err->status) code = 2;
    MPI_Bcast(&code, 1, MPI_INT, 0, t->world);
    return code;
}

static int leave(struct dl_train *t, int code)
{
    dl_pacer_free(t->timeline.pacer);
    dl_train_part(t);
    dl_train_release(t);
    MPI_Finalize();
    return code;
}

/* What is freed stays with the rank, as frameworks keep what their device has given them; else every step begins with
 * pages that the system has to clear. */
static void keep_memory(void)
{
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
}

int main(int argc, char **argv)
{
    if (dl_helped(argc, argv, "mpirun -n RANKS dlsim-train --strategy FILE [OPTIONS]", options, DL_COUNT(options)))
        return 0;
    struct dl_error err = {0};
    struct dl_train_options o = {.algorithm = "mpi", .steps = 10, .tolerance = 1e-4};
    struct dl_train t = {.options = &o, .arena = dl_arena_new(), .workers = MPI_COMM_NULL};
    int threads = 0, code = 2;
    keep_memory();
    openblas_set_num_threads(1); /* a rank is a core */
    MPI_Init_thread(&argc, &argv, dl_helper_threads(), &threads);
    if (threads < dl_helper_threads()) dl_fail(&err, DL_IMPOSSIBLE, NULL, "this MPI cannot be called from two threads");
    t.world = dl_helper_world();
    if (t.world == MPI_COMM_NULL) return leave(&t, 0);
    MPI_Comm_rank(t.world, &t.rank);
    MPI_Comm_size(t.world, &t.n_ranks);
    if (!err.status && !dl_read_options(argc, argv, options, DL_COUNT(options), &o, NULL, &err)) code = run(&t, &err);
    if (err.status && t.rank == 0) fprintf(stderr, "dlsim-train: %s\n", err.text);
    dl_helper_dismiss();
    return leave(&t, code);
}
