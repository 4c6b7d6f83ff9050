/* sweep_mpi.c - dlsim-sweep-mpi, which `mpirun dlsim sweep` becomes: points are handed to ranks as they become free.
 *
 * Rank 0 has the database: it is the sweep command with other workers. Each other rank has forked a process before MPI
 * began, because what forks for points must know nothing of MPI. The rank hands it points, and its results to rank 0.
 */
#define _GNU_SOURCE /* fork, nanosleep */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "sim/app/commands.h"
#include "sim/core/memory.h"
#include "sim/core/visible.h"
#include "sim/report/host.h"
#include "sim/report/progress.h"
#include "sim/session/own_memory.h"
#include "sim/study/sweep_point.h"
#include "sim/sweep/workers.h"

enum tag { tag_batch, tag_ready, tag_result };
enum { most_of_a_batch = 32 };

/* ---- the process that runs points: a line of JSON in for each batch, one out for each result ---- */

struct runner {
    struct dl_arena *arena;
    struct dl_json doc;
    struct dl_sweep sweep;
    struct dl_sweep_means means;
    FILE *to;
};

static void *open_point(void *user, uint64_t point)
{
    const struct runner *const r = user;
    return dl_sweep_open(&r->sweep, point, &r->means);
}

static void write_line(FILE *to, const json_t *value)
{
    if (json_dumpf(value, to, JSON_COMPACT) || fputc('\n', to) == EOF || fflush(to)) _exit(EXIT_FAILURE);
}

static enum dl_status pass_on(void *user, const json_t *result, struct dl_error *err)
{
    (void)err;
    write_line(((struct runner *)user)->to, result);
    return DL_OK;
}

static enum dl_status do_nothing(void *user, size_t n_done, struct dl_error *err)
{
    (void)user, (void)n_done, (void)err;
    return DL_OK;
}

static enum dl_status open_sweep(struct runner *r, const char *file, struct dl_error *err)
{
    if (r->arena) return DL_OK;
    r->arena = dl_arena_new();
    r->means.machines = dl_machines_new();
    if (dl_json_load(file, r->arena, &r->doc, err)) return err->status;
    return dl_sweep_read(r->doc, r->arena, &r->sweep, err);
}

static void run_batch(struct runner *r, const json_t *batch, struct dl_error *err)
{
    const json_t *const list = json_object_get(batch, "points");
    uint64_t points[most_of_a_batch];
    const size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++) points[i] = (uint64_t)json_integer_value(json_array_get(list, i));
    if (open_sweep(r, json_string_value(json_object_get(batch, "file")), err)) return;
    dl_workers_run(&(struct dl_workers_request){.points = points,
                                                .n_points = n,
                                                .n_workers = 1,
                                                .simulates = dl_sweep_simulates(&r->sweep),
                                                .limit_s = r->sweep.limit_s,
                                                .open = open_point,
                                                .stands_alone = dl_sweep_stands_alone,
                                                .run = dl_sweep_run,
                                                .close = dl_sweep_close_point,
                                                .take = pass_on,
                                                .tick = do_nothing,
                                                .user = r},
                   err);
}

/* The first line: how many ranks share this computer. */
static double memory_share(FILE *from)
{
    json_t *const first = json_loadf(from, JSON_DISABLE_EOF_CHECK, NULL);
    const size_t n_ranks = (size_t)json_integer_value(json_object_get(first, "ranks"));
    json_decref(first);
    return n_ranks ? dl_own_memory_share_bytes(n_ranks) : 0;
}

/* An empty line ends the results of a batch, a string is an error that ends the sweep. */
static void run_batches(FILE *from, FILE *to)
{
    struct runner r = {.to = to, .means.memory_bytes = memory_share(from)};
    struct dl_error err = {0};
    json_t *batch;
    while (!err.status && (batch = json_loadf(from, JSON_DISABLE_EOF_CHECK, NULL))) {
        run_batch(&r, batch, &err);
        json_decref(batch);
        if (err.status) fprintf(to, "%s\n", err.text);
        fputc('\n', to);
        fflush(to);
    }
    _exit(EXIT_SUCCESS);
}

struct pipes {
    FILE *to, *from;
};

static struct pipes fork_runner(void)
{
    int in[2], out[2];
    if (pipe(in) || pipe(out)) exit(3);
    const pid_t child = fork();
    if (child < 0) exit(3);
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(in[1]);
        close(out[0]);
        run_batches(fdopen(in[0], "r"), fdopen(out[1], "w"));
    }
    close(in[0]);
    close(out[1]);
    return (struct pipes){.to = fdopen(in[1], "w"), .from = fdopen(out[0], "r")};
}

/* ---- a rank that runs points ---- */

/* All ranks must call it. */
static void tell_ranks(const struct pipes *runner)
{
    MPI_Comm here;
    int n_ranks;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
    MPI_Comm_size(here, &n_ranks);
    MPI_Comm_free(&here);
    fprintf(runner->to, "{\"ranks\": %d}\n", n_ranks);
    fflush(runner->to);
}

static char *receive_text(int source, int tag)
{
    MPI_Status status;
    int n;
    MPI_Probe(source, tag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_CHAR, &n);
    char *const text = dl_alloc((size_t)n + 1);
    MPI_Recv(text, n, MPI_CHAR, source, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return text;
}

static void send_results(FILE *from, int rank)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t n;
    while ((n = getline(&line, &capacity, from)) > 1) {
        if (line[0] != '{') {
            fprintf(stderr, "dlsim: rank %d: %s", rank, line);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        MPI_Send(line, (int)n, MPI_CHAR, 0, tag_result, MPI_COMM_WORLD);
    }
    if (n != 1) MPI_Abort(MPI_COMM_WORLD, 3); /* its process is gone */
    free(line);
}

/* Until a batch is empty. */
static void serve(const struct pipes *runner, int rank)
{
    for (;;) {
        MPI_Send(NULL, 0, MPI_CHAR, 0, tag_ready, MPI_COMM_WORLD);
        char *const batch = receive_text(0, tag_batch);
        const bool is_over = !batch[0];
        if (!is_over) {
            fprintf(runner->to, "%s\n", batch);
            fflush(runner->to);
            send_results(runner->from, rank);
        }
        dl_free(batch);
        if (is_over) return;
    }
}

/* ---- rank 0 ---- */

static volatile sig_atomic_t stopped_by;

static void note_signal(int signal) { stopped_by = signal; }

struct hand_out {
    const struct dl_workers_request *request;
    size_t n_given, n_done;
    int n_idle; /* ranks that were told nothing when they were ready */
};

/* Small enough that no rank has many left when the others are done. */
static size_t batch_size(const struct hand_out *h, int n_ranks)
{
    const size_t fair = (h->request->n_points - h->n_given) / (size_t)(4 * n_ranks);
    return fair < 1 ? 1 : fair > most_of_a_batch ? most_of_a_batch : fair;
}

static void give_batch(struct hand_out *h, int rank, int n_ranks)
{
    json_t *const points = json_array();
    for (size_t n = batch_size(h, n_ranks); n && h->n_given < h->request->n_points; n--)
        json_array_append_new(points, json_integer((json_int_t)h->request->points[h->n_given++]));
    json_t *const batch = json_pack("{so ss}", "points", points, "file", h->request->file);
    char *const text = json_dumps(batch, JSON_COMPACT);
    MPI_Send(text, (int)strlen(text), MPI_CHAR, rank, tag_batch, MPI_COMM_WORLD);
    free(text);
    json_decref(batch);
}

static void take_result(struct hand_out *h, int rank, struct dl_error *err)
{
    char *const text = receive_text(rank, tag_result);
    json_t *const result = json_loads(text, 0, NULL);
    h->request->take(h->request->user, result, err);
    h->n_done++;
    json_decref(result);
    dl_free(text);
}

static void answer(struct hand_out *h, const MPI_Status *status, int n_ranks, struct dl_error *err)
{
    if (status->MPI_TAG == tag_result) {
        take_result(h, status->MPI_SOURCE, err);
        return;
    }
    MPI_Recv(NULL, 0, MPI_CHAR, status->MPI_SOURCE, tag_ready, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (h->n_given < h->request->n_points)
        give_batch(h, status->MPI_SOURCE, n_ranks);
    else
        h->n_idle++;
}

static int n_idle_ranks; /* when all points are done */

/* In place of dl_workers_run. Sleeps while nothing comes, where MPI would spin. */
static int hand_out_points(const struct dl_workers_request *request, struct dl_error *err)
{
    const struct timespec a_moment = {.tv_nsec = 1000000};
    struct hand_out h = {.request = request};
    double ticked_s = 0;
    int n_ranks, is_there;
    MPI_Status status;
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    signal(SIGINT, note_signal);
    signal(SIGTERM, note_signal);
    while (h.n_done < request->n_points && !stopped_by && !err->status) {
        MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &is_there, &status);
        if (is_there)
            answer(&h, &status, n_ranks - 1, err);
        else
            nanosleep(&a_moment, NULL);
        dl_workers_tick(request, &ticked_s, h.n_done, err);
    }
    if (!err->status) request->tick(request->user, h.n_done, err);
    n_idle_ranks = h.n_idle;
    return stopped_by;
}

/* Ranks that still run points are ended by mpirun. */
static void end_ranks(int n_ranks, int code)
{
    if (stopped_by || code) MPI_Abort(MPI_COMM_WORLD, code);
    while (n_idle_ranks < n_ranks - 1) {
        MPI_Recv(NULL, 0, MPI_CHAR, MPI_ANY_SOURCE, tag_ready, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        n_idle_ranks++;
    }
    for (int rank = 1; rank < n_ranks; rank++) MPI_Send(NULL, 0, MPI_CHAR, rank, tag_batch, MPI_COMM_WORLD);
}

static int sweep(int argc, char **argv, int n_ranks)
{
    struct dl_error err = {0};
    dl_sweep_workers = hand_out_points;
    int code = dl_command_sweep.run(argc - 1, argv + 1, &err);
    fflush(stdout);
    if (err.status) {
        dl_progress_end();
        fprintf(stderr, "dlsim: %s\n", err.text);
        code = err.status == DL_STALLED ? 3 : 2;
    }
    end_ranks(n_ranks, code);
    return code;
}

int main(int argc, char **argv)
{
    dl_memory_begin();
    const struct pipes runner = fork_runner();
    int rank, n_ranks, code = 0;
    dl_show_only_text();
    dl_host_begin();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    tell_ranks(&runner);
    if (rank == 0)
        code = sweep(argc, argv, n_ranks);
    else
        serve(&runner, rank);
    MPI_Finalize();
    return code;
}
