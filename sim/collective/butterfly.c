/* butterfly.c - recursive doubling and halving: in round k a rank exchanges with the one whose number differs in bit k.
 *
 * Only powers of two can. With n = 2^m + r ranks the first 2r pair up as in MPICH: each even one hands its data to the
 * odd one beside it (fold in), the odd ones and the rest play as 2^m players, and the result is handed back (fold out).
 *
 * Halving keeps the blocks that agree with the player's number in ever more low bits, so that player v ends with block
 * v: the largest messages go to the nearest ranks. Doubling undoes it, from the highest bit down. */
#include "sim/collective/algorithms.h"
#include "sim/collective/phase.h"

static uint32_t n_folded(uint32_t size) { return size - dl_floor_power_of_2(size); }

static uint32_t player_of(uint32_t size, uint32_t rank)
{
    const uint32_t folded = n_folded(size);
    if (rank >= 2 * folded) return rank - folded;
    return rank % 2 ? rank / 2 : DL_NOBODY;
}

static uint32_t rank_of(uint32_t size, uint32_t player)
{
    const uint32_t folded = n_folded(size);
    return player < folded ? 2 * player + 1 : player + folded;
}

static uint32_t first_player(uint32_t size, uint32_t round)
{
    (void)round;
    return rank_of(size, 0);
}

/* Ranks behind the players base .. base + count - 1. */
static uint32_t ranks_behind(uint32_t size, uint32_t base, uint32_t count)
{
    const uint32_t folded = n_folded(size), doubled = base < folded ? folded - base : 0;
    return count + (doubled < count ? doubled : count);
}

static uint32_t fold_rounds(uint32_t size) { return n_folded(size) ? 1 : 0; }

static uint32_t even_partner(uint32_t size, uint32_t rank)
{
    return rank < 2 * n_folded(size) && rank % 2 ? rank - 1 : DL_NOBODY;
}

static uint32_t odd_partner(uint32_t size, uint32_t rank)
{
    return rank < 2 * n_folded(size) && rank % 2 == 0 ? rank + 1 : DL_NOBODY;
}

static bool send_fold_in(uint32_t size, uint32_t rank, uint32_t round, struct dl_message *out)
{
    (void)round;
    *out = (struct dl_message){.to = odd_partner(size, rank), .first = rank, .merged = 1};
    return out->to != DL_NOBODY;
}

static uint32_t source_fold_in(uint32_t size, uint32_t rank, uint32_t round)
{
    (void)round;
    return even_partner(size, rank);
}

static bool send_fold_out(uint32_t size, uint32_t rank, uint32_t round, struct dl_message *out)
{
    (void)round;
    *out = (struct dl_message){.to = even_partner(size, rank)};
    return out->to != DL_NOBODY;
}

static uint32_t source_fold_out(uint32_t size, uint32_t rank, uint32_t round)
{
    (void)round;
    return odd_partner(size, rank);
}

static const struct dl_pattern fold_in = {
    .whole = true, .reduce = true, .rounds = fold_rounds, .send = send_fold_in, .source = source_fold_in};

static const struct dl_pattern fold_out = {
    .whole = true, .rounds = fold_rounds, .send = send_fold_out, .source = source_fold_out, .largest = first_player};

static uint32_t player_rounds(uint32_t size) { return dl_ceil_log2(dl_floor_power_of_2(size)); }

static uint32_t partner(uint32_t size, uint32_t rank, uint32_t bit)
{
    const uint32_t player = player_of(size, rank);
    return player == DL_NOBODY ? DL_NOBODY : rank_of(size, player ^ (UINT32_C(1) << bit));
}

/* In rising order of bits; a message to partner w carries the blocks that agree with w in bits 0 .. round. */
static bool send_rising(uint32_t size, uint32_t rank, uint32_t round, struct dl_message *out)
{
    const uint32_t player = player_of(size, rank), bit = UINT32_C(1) << round;
    if (player == DL_NOBODY) return false;
    const uint32_t stride = 2 * bit, base = player & ~(bit - 1);
    *out = (struct dl_message){.to = rank_of(size, player ^ bit),
                               .parts = {(player ^ bit) & (stride - 1), dl_floor_power_of_2(size) / stride, stride},
                               .first = base,
                               .merged = ranks_behind(size, base, bit)};
    return true;
}

static uint32_t source_rising(uint32_t size, uint32_t rank, uint32_t round) { return partner(size, rank, round); }

static bool send_falling(uint32_t size, uint32_t rank, uint32_t round, struct dl_message *out)
{
    const uint32_t player = player_of(size, rank), bit = dl_floor_power_of_2(size) >> (round + 1);
    if (player == DL_NOBODY) return false;
    const uint32_t stride = 2 * bit;
    *out = (struct dl_message){.to = rank_of(size, player ^ bit),
                               .parts = {player & (stride - 1), dl_floor_power_of_2(size) / stride, stride}};
    return true;
}

static uint32_t source_falling(uint32_t size, uint32_t rank, uint32_t round)
{
    return partner(size, rank, player_rounds(size) - 1 - round);
}

static const struct dl_pattern butterfly = {
    .whole = true,
    .reduce = true,
    .rounds = player_rounds,
    .send = send_rising,
    .source = source_rising,
    .largest = first_player,
};

const struct dl_pattern dl_halving_reduce_scatter = {
    .reduce = true,
    .rounds = player_rounds,
    .send = send_rising,
    .source = source_rising,
    .largest = first_player,
};

const struct dl_pattern dl_doubling_allgather = {
    .rounds = player_rounds,
    .send = send_falling,
    .source = source_falling,
    .largest = first_player,
};

static uint32_t block_per_player(const struct dl_collective *c) { return dl_floor_power_of_2(c->group->n); }

static const struct dl_phase doubling_phases[] = {
    {&fold_in, DL_ALL_RANKS}, {&butterfly, DL_ALL_RANKS}, {&fold_out, DL_ALL_RANKS}, {0}};

const struct dl_algorithm dl_allreduce_recursive_doubling = {
    .name = "recursive_doubling",
    .doc = "butterfly: all exchange everything with partners at distance 1, 2, 4, ...",
    .op = DL_ALLREDUCE,
    .blocks = dl_one_block,
    .phases = doubling_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .automatic = true,
};

static const struct dl_phase rabenseifner_phases[] = {{&fold_in, DL_ALL_RANKS},
                                                      {&dl_halving_reduce_scatter, DL_ALL_RANKS},
                                                      {&dl_doubling_allgather, DL_ALL_RANKS},
                                                      {&fold_out, DL_ALL_RANKS},
                                                      {0}};

const struct dl_algorithm dl_allreduce_rabenseifner = {
    .name = "rabenseifner",
    .doc = "recursive halving reduce-scatter, then recursive doubling all-gather",
    .op = DL_ALLREDUCE,
    .blocks = block_per_player,
    .phases = rabenseifner_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .automatic = true,
};
