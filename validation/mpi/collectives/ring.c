/* ring.c - every member sends to the next: p - 1 steps to scatter sums, p - 1 to gather them (Patarasuk and Yuan, JPDC
 * 2009). */
#include "sim/core/memory.h"
#include "validation/mpi/collectives/collectives.h"
#include "validation/mpi/collectives/swap.h"

/* Part `i` may be any number; the ring wraps. */
static struct dl_range part(const struct dl_team *team, size_t n, int i)
{
    return dl_part_of(n, (size_t)((i % team->n + team->n) % team->n), (size_t)team->n);
}

static int next(const struct dl_team *team) { return (team->rank + 1) % team->n; }
static int previous(const struct dl_team *team) { return (team->rank + team->n - 1) % team->n; }

void dl_ring_scatter(const struct dl_team *team, dl_real *values, size_t n)
{
    dl_real *const heard = dl_room(n / (size_t)team->n + 1);
    for (int step = 0; step < team->n - 1; step++) {
        const struct dl_range out = part(team, n, team->rank - 1 - step), in = part(team, n, team->rank - 2 - step);
        dl_swap(team->comm, DL_MPI_REAL, (struct dl_outgoing){values + out.from, out.n, next(team)},
                (struct dl_incoming){heard, in.n, previous(team)});
        for (size_t i = 0; i < in.n; i++) values[in.from + i] += heard[i];
    }
    dl_free(heard);
}

void dl_ring_gather(const struct dl_team *team, dl_real *values, size_t n)
{
    for (int step = 0; step < team->n - 1; step++) {
        const struct dl_range out = part(team, n, team->rank - step), in = part(team, n, team->rank - 1 - step);
        dl_swap(team->comm, DL_MPI_REAL, (struct dl_outgoing){values + out.from, out.n, next(team)},
                (struct dl_incoming){values + in.from, in.n, previous(team)});
    }
}

void dl_ring_gather_bytes(const struct dl_team *team, void *data, const size_t *bytes, const size_t *offset)
{
    for (int step = 0; step < team->n - 1; step++) {
        const int out = (team->rank - step + team->n) % team->n, in = (team->rank - 1 - step + team->n) % team->n;
        dl_swap(team->comm, MPI_BYTE, (struct dl_outgoing){(char *)data + offset[out], bytes[out], next(team)},
                (struct dl_incoming){(char *)data + offset[in], bytes[in], previous(team)});
    }
}

static void sum(const struct dl_team *team, dl_real *values, size_t n)
{
    dl_ring_scatter(team, values, n);
    dl_ring_gather(team, values, n);
}

const struct dl_sum_algorithm dl_sum_ring = {.name = "ring", .sum = sum};
