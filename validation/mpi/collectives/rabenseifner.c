/* rabenseifner.c - halves are summed and scattered, then gathered: the latency of a butterfly with the bytes of a ring
 * (Rabenseifner, ICCS 2004). */
#include "sim/core/memory.h"
#include "validation/mpi/collectives/butterfly.h"
#include "validation/mpi/collectives/swap.h"

static struct dl_range half(struct dl_range whole, bool upper)
{
    const size_t below = whole.n / 2;
    return upper ? (struct dl_range){whole.from + below, whole.n - below} : (struct dl_range){whole.from, below};
}

struct halves {
    const struct dl_team *team;
    struct dl_butterfly butterfly;
    dl_real *values, *heard;
};

/* Keep one half of the range and give the other to the partner; then go on within the half, and gather it again. The
 * nearest partner comes first: most of the data stays near. */
static void scatter_and_gather(const struct halves *h, struct dl_range range, int distance)
{
    if (distance >= h->butterfly.players) return;
    dl_real *const values = h->values;
    const int partner = dl_butterfly_partner(&h->butterfly, distance);
    const bool upper = h->butterfly.me & distance;
    const struct dl_range mine = half(range, upper), theirs = half(range, !upper);
    dl_swap(h->team->comm, DL_MPI_REAL, (struct dl_outgoing){values + theirs.from, theirs.n, partner},
            (struct dl_incoming){h->heard, mine.n, partner});
    for (size_t i = 0; i < mine.n; i++) values[mine.from + i] += h->heard[i];
    scatter_and_gather(h, mine, distance * 2);
    dl_swap(h->team->comm, DL_MPI_REAL, (struct dl_outgoing){values + mine.from, mine.n, partner},
            (struct dl_incoming){values + theirs.from, theirs.n, partner});
}

static void sum(const struct dl_team *team, dl_real *values, size_t n)
{
    struct halves h = {.team = team, .values = values, .heard = dl_room(n)};
    h.butterfly = dl_butterfly_enter(team, values, h.heard, n);
    if (h.butterfly.me >= 0) scatter_and_gather(&h, (struct dl_range){0, n}, 1);
    dl_butterfly_leave(&h.butterfly, team, values, n);
    dl_free(h.heard);
}

const struct dl_sum_algorithm dl_sum_rabenseifner = {.name = "rabenseifner", .sum = sum};
