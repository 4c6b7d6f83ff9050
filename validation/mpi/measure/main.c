/* main.c - dlsim-measure: latency and bandwidth of messages, and kernels, on the ranks of this machine.
 *
 *   mpirun -n 4 dlsim-measure [--json FILE|-] [--system FILE --transport FILE [--device NAME]] [--seconds X]
 *       [--ring|--server] [--least-bytes N] [--most-bytes N] [--pieces-above N] [--again FILE]
 *
 * All ranks are busy at once, as they are in a training; an even number of them. `--seconds` is about what each size of
 * message and each kernel takes. `--ring`: all send to the next at once, instead of pairs in turns. `--server`: all
 * send to rank 0, which hears one after the other, answers all, and is alone when it adds. `--pieces-above`: MPI sends
 * larger messages another way, which gets a line of its own. `--again`: fit what an earlier --json tells anew. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/app/options.h"
#include "sim/core/files.h"
#include "validation/mpi/collectives/swap.h"
#include "validation/mpi/measure/measure.h"
#include "validation/mpi/packing.h"

struct options {
    const char *json, *system, *transport, *device, *again;
    double seconds;
    bool ring, server;
    uint64_t least_bytes, most_bytes, pieces_above;
};
#define AT(member) offsetof(struct options, member)
static const struct dl_option options[] = {
    {"json", DL_OPT_TEXT, AT(json), false, 0, 0, NULL, "all that was measured; - is standard output"},
    {"system", DL_OPT_TEXT, AT(system), false, 0, 0, NULL, "a system file of dlsim, to be written"},
    {"transport", DL_OPT_TEXT, AT(transport), false, 0, 0, NULL,
     "a transport file of dlsim, to be written, with --system"},
    {"device", DL_OPT_TEXT, AT(device), false, 0, 0, NULL, "of the system; xeon-core if absent"},
    {"seconds", DL_OPT_NUMBER, AT(seconds), false, 1e-3, 100, NULL,
     "about what each size and each kernel takes; 0.3 if absent"},
    {"ring", DL_OPT_FLAG, AT(ring), false, 0, 0, NULL, "all send to the next at once, instead of pairs in turns"},
    {"server", DL_OPT_FLAG, AT(server), false, 0, 0, NULL, "all send to rank 0 and hear from it; only it adds"},
    {"least-bytes", DL_OPT_COUNT, AT(least_bytes), false, 1, 1 << 16, NULL, "of a message; 8 if absent"},
    {"most-bytes", DL_OPT_COUNT, AT(most_bytes), false, 1 << 20, 1 << 28, NULL, "of a message; 4 MiB if absent"},
    {"pieces-above", DL_OPT_COUNT, AT(pieces_above), false, 1 << 10, 1 << 28, NULL,
     "bytes; MPI sends larger messages in pieces: a line of their own"},
    {"again", DL_OPT_TEXT, AT(again), false, 0, 0, NULL, "a file of an earlier --json, to be fitted anew"},
};

enum { n_batches = 15 }; /* a time is the median of so many */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Something that is done n times over. */
typedef void (*work_fn)(void *what, size_t n);

/* How often fits into so many seconds, the same on all ranks. */
static size_t count_for(work_fn work, void *what, double seconds)
{
    size_t n = 1;
    for (;;) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double from_s = MPI_Wtime();
        work(what, n);
        double took_s = MPI_Wtime() - from_s;
        MPI_Allreduce(MPI_IN_PLACE, &took_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (took_s * 2 > seconds || n > 1 << 24) return n;
        n *= 2;
    }
}

/* Seconds of one, all ranks together: the median over batches, of the slowest rank. */
static double time_of(work_fn work, void *what, double seconds)
{
    const size_t n = count_for(work, what, seconds / n_batches);
    double batch_s[n_batches];
    for (int i = 0; i < n_batches; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double from_s = MPI_Wtime();
        work(what, n);
        batch_s[i] = (MPI_Wtime() - from_s) / (double)n;
    }
    qsort(batch_s, n_batches, sizeof *batch_s, ascending);
    double median_s = batch_s[n_batches / 2];
    MPI_Allreduce(MPI_IN_PLACE, &median_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return median_s;
}

/* How much longer the slowest rank takes than they do in the mean, when all wait for each other after every batch,
 * which is about as long as a step: who is slow changes. */
static double slowest_over_mean(work_fn work, void *what)
{
    const double batch_s = 0.02;
    const size_t n = count_for(work, what, batch_s);
    double ratio[n_batches];
    int n_ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    for (int i = 0; i < n_batches; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double from_s = MPI_Wtime();
        work(what, n);
        double sum_s = MPI_Wtime() - from_s, most_s = sum_s;
        MPI_Allreduce(MPI_IN_PLACE, &sum_s, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        MPI_Allreduce(MPI_IN_PLACE, &most_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        ratio[i] = most_s * n_ranks / sum_s;
    }
    qsort(ratio, n_batches, sizeof *ratio, ascending);
    return ratio[n_batches / 2];
}

/* ---- messages ---- */

struct pair {
    char *bytes, *heard;
    size_t room;
    int n, rank;
};

/* Where message i is: one after the other, as parts of something larger are sent, which is not all in a cache. */
static size_t place(const struct pair *p, size_t i) { return i % (p->room / (size_t)p->n) * (size_t)p->n; }

/* What is sent was made just before, so that it is in the cache of who sends it and nowhere else. */
static char *make(const struct pair *p, size_t i) { return memset(p->bytes + place(p, i), (int)i, (size_t)p->n); }

static void make_all(void *what, size_t n)
{
    for (size_t i = 0; i < n; i++) make(what, i);
}

static void ping_pong(void *what, size_t n)
{
    const struct pair *const p = what;
    const int partner = p->rank ^ 1;
    for (size_t i = 0; i < n; i++) {
        char *const bytes = make(p, i);
        if (p->rank < partner) MPI_Send(bytes, p->n, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
        MPI_Recv(p->heard + place(p, i), p->n, MPI_BYTE, partner, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (p->rank > partner) MPI_Send(bytes, p->n, MPI_BYTE, partner, 0, MPI_COMM_WORLD);
    }
}

static void pass_on(void *what, size_t n)
{
    const struct pair *const p = what;
    int n_ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    const int next = (p->rank + 1) % n_ranks, previous = (p->rank + n_ranks - 1) % n_ranks;
    for (size_t i = 0; i < n; i++)
        dl_swap(MPI_COMM_WORLD, MPI_BYTE, (struct dl_outgoing){make(p, i), (size_t)p->n, next},
                (struct dl_incoming){p->heard + place(p, i), (size_t)p->n, previous});
}

/* Members send at once and copy what they send themselves; the server hears and answers one after the other. */
static void serve(void *what, size_t n)
{
    const struct pair *const p = what;
    int n_ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    for (size_t i = 0; i < n; i++) {
        char *const bytes = make(p, i);
        if (p->rank) MPI_Send(bytes, p->n, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        for (int from = 1; from < (p->rank ? 2 : n_ranks); from++)
            MPI_Recv(p->heard + place(p, i), p->n, MPI_BYTE, p->rank ? 0 : MPI_ANY_SOURCE, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        for (int to = 1; to < n_ranks && !p->rank; to++) MPI_Send(bytes, p->n, MPI_BYTE, to, 0, MPI_COMM_WORLD);
    }
}

/* Messages that follow each other in one go of a pattern. */
static int messages_in_turn(const struct options *o)
{
    int n_ranks;
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    return o->server ? 2 * (n_ranks - 1) : o->ring ? 1 : 2;
}

/* Of one message, there or back; what it takes to make it is no part of it, unless others use this machine so much that
 * the two cannot be told apart. */
static double message_s(struct pair *p, const struct options *o)
{
    const double make_s = time_of(make_all, p, o->seconds), all_s = time_of(o->server ? serve
                                                                            : o->ring ? pass_on
                                                                                      : ping_pong,
                                                                            p, o->seconds);
    return (all_s > make_s ? all_s - make_s : all_s) / messages_in_turn(o);
}

/* Where fewer sizes are left they are closer. */
static int size_after(int bytes, const struct options *o)
{
    return o->pieces_above && (uint64_t)bytes >= o->pieces_above ? bytes + bytes / 2 : 2 * bytes;
}

static struct dl_messages measure_messages(int rank, const struct options *o)
{
    const size_t most = o->most_bytes;
    struct dl_messages m = {0};
    struct pair p = {.bytes = dl_alloc(most), .heard = dl_alloc(most), .room = most, .rank = rank};
    for (p.n = (int)o->least_bytes; (size_t)p.n <= most; p.n = size_after(p.n, o)) {
        m.bytes[m.n] = p.n;
        m.seconds[m.n++] = message_s(&p, o);
    }
    dl_free(p.bytes);
    dl_free(p.heard);
    return m;
}

/* ---- kernels ---- */

enum { side = 192, n_values = 1 << 20, pack_bits = 8 }; /* values like the parts of a training: not all in a cache */

struct arrays {
    float *a, *b, *c;
    dl_real *values;
    char *packed;
    gsl_rng *random;
    bool works; /* this rank */
};

static void multiply(void *what, size_t n)
{
    const struct arrays *const x = what;
    for (size_t i = 0; i < n && x->works; i++)
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, side, side, side, 1, x->a, side, x->b, side, 0, x->c,
                    side);
}

static void add(void *what, size_t n)
{
    const struct arrays *const x = what;
    for (size_t i = 0; i < n && x->works; i++)
        for (size_t j = 0; j < n_values; j++) x->a[j] += x->b[j];
}

static void pack(void *what, size_t n)
{
    const struct arrays *const x = what;
    for (size_t i = 0; i < n; i++) {
        dl_pack(x->values, n_values, pack_bits, x->random, x->packed);
        dl_unpack_add(x->packed, n_values, pack_bits, x->values);
    }
}

static void measure_kernels(struct dl_measured *m, int rank, const struct options *o)
{
    const double seconds = o->seconds;
    const double flop = 2.0 * side * side * side, bytes = (double)n_values * sizeof(float);
    struct arrays x = {.a = dl_alloc(n_values * sizeof *x.a),
                       .b = dl_alloc(n_values * sizeof *x.b),
                       .c = dl_alloc(n_values * sizeof *x.c),
                       .values = dl_alloc(n_values * sizeof *x.values),
                       .packed = dl_alloc(dl_packed_bytes(n_values, pack_bits)),
                       .random = dl_random_new(0, "measure", (uint64_t)rank),
                       .works = true};
    m->gemm_flop_per_s = flop / time_of(multiply, &x, seconds);
    m->slowest_over_mean = slowest_over_mean(multiply, &x);
    m->pack_s_per_byte = time_of(pack, &x, seconds) / 2 / bytes; /* to pack or to unpack */
    x.works = rank == 0 || !o->server;
    m->reduction_s_per_byte = time_of(add, &x, seconds) / bytes;
    x.works = rank == 0;
    m->gemm_alone_flop_per_s = flop / time_of(multiply, &x, seconds);
    gsl_rng_free(x.random);
    dl_free(x.a);
    dl_free(x.b);
    dl_free(x.c);
    dl_free(x.values);
    dl_free(x.packed);
}

/* ---- results ---- */

static void tell(const struct dl_measured *m)
{
    printf("messages of %d ranks at once: %.3g s + bytes / %.3g bytes/s", m->n_ranks, m->fitted.small.intercept,
           1 / m->fitted.small.slope);
    if (m->fitted.two_ways)
        printf(", above %.0f bytes %.3g s + bytes / %.3g bytes/s", m->fitted.small_until_bytes,
               m->fitted.large.intercept, 1 / m->fitted.large.slope);
    if (m->fitted.pieces_above_bytes > 0)
        printf(", in pieces above %.0f bytes %.3g s + bytes / %.3g bytes/s", m->fitted.pieces_above_bytes,
               m->fitted.pieces.intercept, 1 / m->fitted.pieces.slope);
    printf("\nproducts of %d: %.3g flop/s a rank, %.3g alone\n", side, m->gemm_flop_per_s, m->gemm_alone_flop_per_s);
}

/* What is no latency and no bandwidth says nothing but that others use this machine. */
static bool is_sound(const struct dl_line *l) { return l->intercept >= 0 && l->slope > 0; }

static bool are_sound(const struct dl_message_fit *f)
{
    return is_sound(&f->small) && (!f->two_ways || is_sound(&f->large)) &&
           (f->pieces_above_bytes == 0 || is_sound(&f->pieces));
}

static enum dl_status write_files(const struct options *o, const struct dl_measured *m, struct dl_error *err)
{
    if ((o->system || o->transport) && !are_sound(&m->fitted))
        return dl_fail(err, DL_STALLED, NULL,
                       "this machine is too busy to measure messages in %g s each; try --seconds", o->seconds);
    if (o->json) dl_write_json(o->json, dl_measured_json(m), err);
    struct dl_arena *const arena = dl_arena_new();
    const bool is_named = o->system && o->transport;
    const char *const transport = is_named ? dl_name_from(o->system, o->transport, arena) : "mpi";
    if (o->system) dl_write_json(o->system, dl_measured_system(m, o->device, transport), err);
    dl_arena_free(arena);
    if (o->transport) dl_write_json(o->transport, dl_measured_transport(m), err);
    if (!o->json || strcmp(o->json, "-") != 0) tell(m);
    return err->status;
}

static enum dl_status fit(struct dl_measured *m, const struct options *o, struct dl_error *err)
{
    const struct dl_points points = {m->messages.bytes, m->messages.seconds, m->messages.n};
    const size_t n_whole = dl_count_sizes(points, (double)o->pieces_above);
    if (!o->pieces_above) {
        m->fitted = dl_fit_messages(points);
    } else if (n_whole < DL_LEAST_MESSAGES || points.n < n_whole + DL_LEAST_PIECES) {
        return dl_fail(err, DL_IMPOSSIBLE, "--pieces-above",
                       "has %zu sizes of messages up to it and %zu above, %d and %d are needed", n_whole,
                       points.n - n_whole, DL_LEAST_MESSAGES, DL_LEAST_PIECES);
    } else {
        m->fitted = dl_fit_messages_and_pieces(points, (double)o->pieces_above);
    }
    return DL_OK;
}

static enum dl_status measure(const struct options *o, struct dl_error *err)
{
    struct dl_measured m = {0};
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &m.n_ranks);
    if (o->ring && o->server) return dl_fail(err, DL_IMPOSSIBLE, NULL, "--ring and --server exclude each other");
    if (o->again) {
        if (dl_measured_read(o->again, &m, err)) return err->status;
    } else if (m.n_ranks % 2) {
        return dl_fail(err, DL_IMPOSSIBLE, NULL, "needs an even number of ranks, mpirun started %d", m.n_ranks);
    } else {
        m.messages = measure_messages(rank, o);
        measure_kernels(&m, rank, o);
    }
    return fit(&m, o, err) || rank ? err->status : write_files(o, &m, err);
}

int main(int argc, char **argv)
{
    if (dl_helped(argc, argv, "mpirun -n RANKS dlsim-measure [OPTIONS]", options, DL_COUNT(options))) return 0;
    struct dl_error err = {0};
    struct options o = {.device = "xeon-core", .seconds = 0.3, .least_bytes = 8, .most_bytes = 4 << 20};
    int rank, threads;
    openblas_set_num_threads(1);                                  /* a rank is a core */
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &threads); /* as in a training */
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (!dl_read_options(argc, argv, options, DL_COUNT(options), &o, NULL, &err)) measure(&o, &err);
    if (err.status && rank == 0) fprintf(stderr, "dlsim-measure: %s\n", err.text);
    MPI_Finalize();
    return err.status == DL_STALLED ? 3 : err.status ? 2 : 0;
}
