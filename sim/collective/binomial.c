/* binomial.c - binomial trees: member i hangs below i without its lowest set bit.
 *
 * At level k members with lowest set bit 2^k talk to their parents; member i speaks for the members i .. i + 2^k - 1
 * below it. Up the tree levels come in rising order, down in falling order. */
#include "sim/collective/algorithms.h"
#include "sim/collective/phase.h"

static bool is_child(uint32_t member, uint32_t level)
{
    const uint32_t bit = UINT32_C(1) << level;
    return (member & (2 * bit - 1)) == bit;
}

static uint32_t parent_of(uint32_t member, uint32_t level) { return member - (UINT32_C(1) << level); }

static uint32_t child_of(uint32_t size, uint32_t member, uint32_t level)
{
    const uint32_t bit = UINT32_C(1) << level;
    const bool may_have = (member & (2 * bit - 1)) == 0;
    return may_have && bit < size - member ? member + bit : DL_NOBODY;
}

static uint32_t members_below(uint32_t size, uint32_t child, uint32_t level)
{
    const uint32_t full = UINT32_C(1) << level;
    return full < size - child ? full : size - child;
}

static bool send_up(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out)
{
    if (!is_child(member, round)) return false;
    const uint32_t below = members_below(size, member, round);
    *out = (struct dl_message){
        .to = parent_of(member, round), .parts = {member, below, 1}, .first = member, .merged = below};
    return true;
}

static uint32_t source_up(uint32_t size, uint32_t member, uint32_t round) { return child_of(size, member, round); }

static uint32_t largest_up(uint32_t size, uint32_t round)
{
    (void)size;
    return UINT32_C(1) << round;
}

static bool send_down(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out)
{
    const uint32_t level = dl_ceil_log2(size) - 1 - round, child = child_of(size, member, level);
    if (child == DL_NOBODY) return false;
    *out = (struct dl_message){.to = child, .parts = {child, members_below(size, child, level), 1}};
    return true;
}

static uint32_t source_down(uint32_t size, uint32_t member, uint32_t round)
{
    const uint32_t level = dl_ceil_log2(size) - 1 - round;
    return is_child(member, level) ? parent_of(member, level) : DL_NOBODY;
}

const struct dl_pattern dl_binomial_reduce = {
    .whole = true,
    .reduce = true,
    .rounds = dl_ceil_log2,
    .send = send_up,
    .source = source_up,
    .largest = largest_up,
};

const struct dl_pattern dl_binomial_gather = {
    .rounds = dl_ceil_log2,
    .send = send_up,
    .source = source_up,
    .largest = largest_up,
};

const struct dl_pattern dl_binomial_broadcast = {
    .whole = true,
    .rounds = dl_ceil_log2,
    .send = send_down,
    .source = source_down,
};

const struct dl_pattern dl_binomial_scatter = {
    .rounds = dl_ceil_log2,
    .send = send_down,
    .source = source_down,
};

static const struct dl_phase reduce_phases[] = {{&dl_binomial_reduce, DL_ALL_RANKS}, {0}};
static const struct dl_phase broadcast_phases[] = {{&dl_binomial_broadcast, DL_ALL_RANKS}, {0}};
static const struct dl_phase gather_phases[] = {{&dl_binomial_gather, DL_ALL_RANKS}, {0}};
static const struct dl_phase scatter_phases[] = {{&dl_binomial_scatter, DL_ALL_RANKS}, {0}};
static const struct dl_phase tree_phases[] = {
    {&dl_binomial_reduce, DL_ALL_RANKS}, {&dl_binomial_broadcast, DL_ALL_RANKS}, {0}};
static const struct dl_phase scatter_allgather_phases[] = {
    {&dl_binomial_scatter, DL_ALL_RANKS}, {&dl_ring_allgather, DL_ALL_RANKS}, {0}};

const struct dl_algorithm dl_allreduce_tree = {
    .name = "tree",
    .doc = "binomial reduce to rank 0, then binomial broadcast",
    .op = DL_ALLREDUCE,
    .blocks = dl_one_block,
    .phases = tree_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .family = DL_FAMILY_TREE,
    .automatic = true,
};

const struct dl_algorithm dl_broadcast_binomial = {
    .name = "binomial",
    .doc = "the number of ranks that have it doubles with each round",
    .op = DL_BROADCAST,
    .blocks = dl_one_block,
    .phases = broadcast_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .automatic = true,
};

const struct dl_algorithm dl_broadcast_scatter_allgather = {
    .name = "scatter_allgather",
    .doc = "binomial scatter, then ring all-gather (van de Geijn)",
    .op = DL_BROADCAST,
    .blocks = dl_block_per_rank,
    .phases = scatter_allgather_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .automatic = true,
};

const struct dl_algorithm dl_reduce_binomial = {
    .name = "binomial",
    .doc = "pairs add up, then pairs of pairs, until rank 0 has the sum",
    .op = DL_REDUCE,
    .blocks = dl_one_block,
    .phases = reduce_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .automatic = true,
};

const struct dl_algorithm dl_gather_binomial = {
    .name = "binomial",
    .doc = "each rank passes on what it and those below it have",
    .op = DL_GATHER,
    .blocks = dl_block_per_rank,
    .phases = gather_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .automatic = true,
};

const struct dl_algorithm dl_scatter_binomial = {
    .name = "binomial",
    .doc = "each rank is sent what it and those below it need",
    .op = DL_SCATTER,
    .blocks = dl_block_per_rank,
    .phases = scatter_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .automatic = true,
};
