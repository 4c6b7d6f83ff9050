/* recursive.c - all-gather and reduce-scatter in as few rounds as can be, for any number of ranks.
 *
 * Powers of two: recursive doubling and halving (butterfly.c). Others: Bruck et al. (TPDS 1997): after k rounds member
 * i has the 2^k parts from its own on, round the circle; it sends what it has, or what is still wanted of it, 2^k
 * members back. Reduce-scatter is the same film run backwards. */
#include "sim/collective/algorithms.h"
#include "sim/collective/phase.h"

static bool is_power_of_2(uint32_t n) { return (n & (n - 1)) == 0; }

static uint32_t ahead(uint32_t size, uint32_t member, uint32_t distance) { return (member + distance) % size; }

static uint32_t behind(uint32_t size, uint32_t member, uint32_t distance) { return (member + size - distance) % size; }

static uint32_t parts_wanted(uint32_t size, uint32_t distance)
{
    return distance < size - distance ? distance : size - distance;
}

static bool send_allgather(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out)
{
    if (is_power_of_2(size)) return dl_doubling_allgather.send(size, member, round, out);
    const uint32_t distance = UINT32_C(1) << round;
    *out =
        (struct dl_message){.to = behind(size, member, distance), .parts = {member, parts_wanted(size, distance), 1}};
    return true;
}

static uint32_t source_allgather(uint32_t size, uint32_t member, uint32_t round)
{
    if (is_power_of_2(size)) return dl_doubling_allgather.source(size, member, round);
    return ahead(size, member, UINT32_C(1) << round);
}

static uint32_t falling_distance(uint32_t size, uint32_t round)
{
    return UINT32_C(1) << (dl_ceil_log2(size) - 1 - round);
}

static bool send_reduce_scatter(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out)
{
    if (is_power_of_2(size)) return dl_halving_reduce_scatter.send(size, member, round, out);
    const uint32_t distance = falling_distance(size, round), to = ahead(size, member, distance);
    /* The part for the member at `distance` has come from every 2 x distance-th member before this one. */
    const uint32_t merged = (size - distance + 2 * distance - 1) / (2 * distance);
    *out = (struct dl_message){.to = to, .parts = {to, parts_wanted(size, distance), 1}, .merged = merged};
    return true;
}

static uint32_t source_reduce_scatter(uint32_t size, uint32_t member, uint32_t round)
{
    if (is_power_of_2(size)) return dl_halving_reduce_scatter.source(size, member, round);
    return behind(size, member, falling_distance(size, round));
}

static const struct dl_pattern recursive_allgather = {
    .rhythm = DL_EVERY, .rounds = dl_ceil_log2, .send = send_allgather, .source = source_allgather};

static const struct dl_pattern recursive_reduce_scatter = {.rhythm = DL_EVERY,
                                                           .reduce = true,
                                                           .rounds = dl_ceil_log2,
                                                           .send = send_reduce_scatter,
                                                           .source = source_reduce_scatter};

static const struct dl_phase allgather_phases[] = {{&recursive_allgather, DL_ALL_RANKS}, {0}};
static const struct dl_phase reduce_scatter_phases[] = {{&recursive_reduce_scatter, DL_ALL_RANKS}, {0}};

const struct dl_algorithm dl_allgather_recursive = {
    .name = "recursive",
    .doc = "recursive doubling; Bruck's algorithm where the ranks are no power of two",
    .op = DL_ALLGATHER,
    .blocks = dl_block_per_rank,
    .phases = allgather_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .automatic = true,
};

const struct dl_algorithm dl_reducescatter_recursive = {
    .name = "recursive",
    .doc = "recursive halving; Bruck's algorithm backwards where the ranks are no power of two",
    .op = DL_REDUCESCATTER,
    .blocks = dl_block_per_rank,
    .phases = reduce_scatter_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .automatic = true,
};
