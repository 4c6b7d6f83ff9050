/* allreduce.c - all-reduce as a real MPI program: what dlsim simulates, written by hand on real buffers.
 *
 *     allreduce ring|rabenseifner|library BYTES [REPEAT]
 *
 * prints the seconds from the common start to the end of the slowest rank, the longest of the repeats. `library` calls
 * MPI_Allreduce. Runs under SMPI, where the time is simulated, and under any other MPI. */
#include <limits.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Sums of small whole numbers are exact in a float, in any order of the ranks. */
typedef float value;
#define MPI_VALUE MPI_FLOAT
enum { pattern_length = 7 };

struct job {
    int rank, n_ranks;
    int n_values;
    value *data;    /* n_values: in, and in place out */
    value *scratch; /* as many: what comes in before it is added */
};

struct part {
    int first, count;
};

static struct part block(const struct job *j, int index)
{
    const int first = (int)((long long)j->n_values * index / j->n_ranks);
    const int end = (int)((long long)j->n_values * (index + 1) / j->n_ranks);
    return (struct part){first, end - first};
}

static void add(value *sum, const value *more, int n)
{
    for (int i = 0; i < n; i++) sum[i] += more[i];
}

/* Both ways at once; the round is over when both are. */
static void exchange(const struct job *j, int to, struct part out, value *in, int from, int n_in)
{
    MPI_Request requests[2];
    MPI_Irecv(in, n_in, MPI_VALUE, from, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(j->data + out.first, out.count, MPI_VALUE, to, 0, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* Round r: rank i passes on block i - r. After n - 1 rounds it holds the whole sum of block i + 1; a second turn shares
 * the sums. */
static void ring(const struct job *j)
{
    const int n = j->n_ranks, next = (j->rank + 1) % n, before = (j->rank + n - 1) % n;
    for (int round = 0; round < 2 * (n - 1); round++) {
        const struct part out = block(j, (j->rank + 2 * n - round) % n),
                          in = block(j, (j->rank + 2 * n - 1 - round) % n);
        const bool is_sum = round >= n - 1;
        exchange(j, next, out, is_sum ? j->data + in.first : j->scratch, before, in.count);
        if (!is_sum) add(j->data + in.first, j->scratch, in.count);
    }
}

/* Players of a butterfly are a power of two: of the first 2 x extra ranks, each even one leaves its data with the odd
 * one above it and waits for the result. */
struct table {
    int n_players, extra;
};

static struct table seat(int n_ranks)
{
    struct table t = {.n_players = 1};
    while (2 * t.n_players <= n_ranks) t.n_players *= 2;
    t.extra = n_ranks - t.n_players;
    return t;
}

static int player_of(const struct table *t, int rank) { return rank < 2 * t->extra ? rank / 2 : rank - t->extra; }

static int rank_of(const struct table *t, int player) { return player < t->extra ? 2 * player + 1 : player + t->extra; }

enum { max_rounds = CHAR_BIT * sizeof(int) };

/* Halve the range with partners at distance 1, 2, 4, ..., then walk the same way back. */
static void halve_and_double(const struct job *j, const struct table *t)
{
    const int player = player_of(t, j->rank);
    struct part mine = {0, j->n_values}, kept[max_rounds], given[max_rounds];
    int partner[max_rounds], n_rounds = 0;
    for (int distance = 1; distance < t->n_players; distance *= 2, n_rounds++) {
        const struct part low = {mine.first, mine.count / 2}, high = {low.first + low.count, mine.count - low.count};
        const bool keeps_high = player & distance;
        kept[n_rounds] = mine = keeps_high ? high : low;
        given[n_rounds] = keeps_high ? low : high;
        partner[n_rounds] = rank_of(t, player ^ distance);
        exchange(j, partner[n_rounds], given[n_rounds], j->scratch, partner[n_rounds], mine.count);
        add(j->data + mine.first, j->scratch, mine.count);
    }
    while (n_rounds-- > 0)
        exchange(j, partner[n_rounds], kept[n_rounds], j->data + given[n_rounds].first, partner[n_rounds],
                 given[n_rounds].count);
}

static void rabenseifner(const struct job *j)
{
    const struct table t = seat(j->n_ranks);
    const bool is_folded = j->rank < 2 * t.extra;
    if (is_folded && j->rank % 2 == 0) {
        MPI_Send(j->data, j->n_values, MPI_VALUE, j->rank + 1, 0, MPI_COMM_WORLD);
        MPI_Recv(j->data, j->n_values, MPI_VALUE, j->rank + 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    if (is_folded) {
        MPI_Recv(j->scratch, j->n_values, MPI_VALUE, j->rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        add(j->data, j->scratch, j->n_values);
    }
    halve_and_double(j, &t);
    if (is_folded) MPI_Send(j->data, j->n_values, MPI_VALUE, j->rank - 1, 0, MPI_COMM_WORLD);
}

static void library(const struct job *j)
{
    MPI_Allreduce(MPI_IN_PLACE, j->data, j->n_values, MPI_VALUE, MPI_SUM, MPI_COMM_WORLD);
}

static const struct algorithm {
    const char *name;
    void (*run)(const struct job *j);
} algorithms[] = {{"ring", ring}, {"rabenseifner", rabenseifner}, {"library", library}};

static const struct algorithm *find(const char *name)
{
    for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
        if (strcmp(algorithms[i].name, name) == 0) return &algorithms[i];
    return NULL;
}

static void fill(const struct job *j)
{
    for (int i = 0; i < j->n_values; i++) j->data[i] = (value)((j->rank + 1) * (i % pattern_length + 1));
}

static bool is_right(const struct job *j)
{
    const int sum_of_ranks = j->n_ranks * (j->n_ranks + 1) / 2;
    for (int i = 0; i < j->n_values; i++)
        if (j->data[i] != (value)(sum_of_ranks * (i % pattern_length + 1))) return false;
    return true;
}

/* A barrier lets the ranks go one by one; so agree on a moment and sleep until then, to the nanosecond. At the
 * beginning of a simulation they are together to the last bit, which counts: where many messages share a link evenly, a
 * nanosecond of head start grows from round to round. */
static double common_start(void)
{
    const double ahead_s = 0.01;
    if (MPI_Wtime() == 0) return 0;
    double start_s = MPI_Wtime() + ahead_s;
    MPI_Allreduce(MPI_IN_PLACE, &start_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const double wait_s = start_s - MPI_Wtime();
    if (wait_s > 0) nanosleep(&(struct timespec){.tv_nsec = (long)(wait_s * 1e9)}, NULL);
    return start_s;
}

static double slowest(double seconds)
{
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

static double run_once(const struct job *j, const struct algorithm *a, bool *right)
{
    fill(j);
    const double start_s = common_start();
    a->run(j);
    const double took_s = MPI_Wtime() - start_s;
    *right = *right && is_right(j);
    return slowest(took_s);
}

/* Prints the longest of the repeats; false if a sum was wrong. */
static bool measure(const struct algorithm *a, long bytes, long repeat)
{
    struct job j = {.n_values = (int)(bytes / (long)sizeof(value)), .data = malloc(bytes), .scratch = malloc(bytes)};
    if (!j.data || !j.scratch) abort();
    MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &j.n_ranks);
    bool right = true;
    double longest_s = 0;
    for (long i = 0; i < repeat; i++) longest_s = fmax(longest_s, run_once(&j, a, &right));
    if (!right) fprintf(stderr, "allreduce: rank %d has wrong sums\n", j.rank);
    if (!j.rank) printf("%.12g\n", longest_s);
    free(j.data);
    free(j.scratch);
    return right;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    const struct algorithm *const a = argc > 2 ? find(argv[1]) : NULL;
    const long bytes = argc > 2 ? atol(argv[2]) : 0, repeat = argc > 3 ? atol(argv[3]) : 1;
    const bool sensible = a && bytes > 0 && bytes % (long)sizeof(value) == 0 && bytes <= INT_MAX && repeat > 0;
    int code = 2;
    if (sensible)
        code = measure(a, bytes, repeat) ? 0 : 1;
    else
        fprintf(stderr, "usage: allreduce ring|rabenseifner|library BYTES [REPEAT]; BYTES in whole floats\n");
    MPI_Finalize();
    return code;
}
