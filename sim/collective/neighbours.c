/* neighbours.c - ranks in a row: each sends its part to the next, round about; or to both neighbours, and nobody beyond
 * the ends. */
#include "sim/collective/algorithms.h"
#include "sim/collective/phase.h"

/* In one round every rank sends at most one message: the part that it begins with. */
static bool next_in_row(uint32_t rank, uint32_t step, uint32_t to, uint32_t from, struct dl_action *out)
{
    const bool sends = to != DL_NOBODY, receives = from != DL_NOBODY;
    if (step >= (uint32_t)sends + receives) return false;
    const bool is_send = sends && step == 0;
    *out = (struct dl_action){.kind = is_send ? DL_SEND : DL_RECV,
                              .peer = is_send ? to : from,
                              .blocks = {is_send ? rank : from, 1, 1},
                              .merged = 1};
    return true;
}

static bool one_round(const struct dl_collective *c, uint32_t lane, uint32_t k, struct dl_round *out)
{
    (void)lane;
    *out = (struct dl_round){.repeat = 1, .blocks = 1, .merged = 1};
    return k == 0 && c->group->n > 1;
}

/* ---- round about ---- */

static uint32_t next_round_about(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    (void)lane, (void)k;
    return (rank + 1) % c->group->n;
}

static bool next_shift(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step,
                       struct dl_action *out)
{
    const uint32_t n = c->group->n;
    return n > 1 && next_in_row(rank, step, next_round_about(c, lane, 0, rank), (rank + n - 1) % n, out);
}

const struct dl_algorithm dl_shift_direct = {
    .name = "direct",
    .doc = "each rank sends its part to the next, the last to the first",
    .op = DL_SHIFT,
    .blocks = dl_block_per_rank,
    .next = next_shift,
    .round = one_round,
    .peer = next_round_about,
    .automatic = true,
};

/* ---- up to the ends ---- */

/* One lane onward and one back, where both have something. */
static uint32_t halo_lanes(const struct dl_collective *c)
{
    return c->back_fraction > 0 && c->back_fraction < 1 ? 2 : 1;
}

static bool goes_back(const struct dl_collective *c, uint32_t lane) { return lane == 1 || c->back_fraction == 1; }

static double halo_share(const struct dl_collective *c, uint32_t lane)
{
    return goes_back(c, lane) ? c->back_fraction : 1 - c->back_fraction;
}

static uint32_t neighbour(const struct dl_collective *c, uint32_t rank, bool before)
{
    if (before) return rank ? rank - 1 : DL_NOBODY;
    return rank + 1 < c->group->n ? rank + 1 : DL_NOBODY;
}

static uint32_t peer_halo(const struct dl_collective *c, uint32_t lane, uint32_t k, uint32_t rank)
{
    (void)k;
    return neighbour(c, rank, goes_back(c, lane));
}

static bool next_halo(const struct dl_collective *c, uint32_t lane, uint32_t rank, uint32_t step, struct dl_action *out)
{
    const bool back = goes_back(c, lane);
    return next_in_row(rank, step, neighbour(c, rank, back), neighbour(c, rank, !back), out);
}

const struct dl_algorithm dl_halo_direct = {
    .name = "direct",
    .doc = "each rank sends a border to the next and one to the one before; none beyond the first and the last",
    .op = DL_HALO,
    .lanes = halo_lanes,
    .share = halo_share,
    .blocks = dl_block_per_rank,
    .next = next_halo,
    .round = one_round,
    .peer = peer_halo,
    .automatic = true,
};
