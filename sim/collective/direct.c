/* direct.c - everybody sends to everybody at once, beginning with the next rank so that the load is spread.
 *
 * As MPI libraries that post all sends and receives, and as NCCL does with sends and receives of one group: messages do
 * not wait for each other but share the links, so that the time is that of the most loaded link, and one latency. A
 * rank has dl_most_posted under way: all, or in large groups some, and the rest follow. */
#include "sim/collective/algorithms.h"
#include "sim/collective/phase.h"

static uint32_t other_ranks(uint32_t size) { return size - 1; }

static uint32_t ahead(uint32_t size, uint32_t member, uint32_t round) { return (member + 1 + round) % size; }

static uint32_t behind(uint32_t size, uint32_t member, uint32_t round) { return (member + size - 1 - round) % size; }

static bool send_part_of_receiver(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out)
{
    const uint32_t to = ahead(size, member, round);
    *out = (struct dl_message){.to = to, .parts = {to, 1, 1}, .first = member, .merged = 1};
    return true;
}

static bool send_own_part(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out)
{
    *out = (struct dl_message){.to = ahead(size, member, round), .parts = {member, 1, 1}};
    return true;
}

static const struct dl_pattern direct_reduce_scatter = {
    .rhythm = DL_BURST, .reduce = true, .rounds = other_ranks, .send = send_part_of_receiver, .source = behind};

static const struct dl_pattern direct_allgather = {
    .rhythm = DL_BURST, .rounds = other_ranks, .send = send_own_part, .source = behind};

static const struct dl_phase reduce_scatter_phases[] = {{&direct_reduce_scatter, DL_ALL_RANKS}, {0}};
static const struct dl_phase allgather_phases[] = {{&direct_allgather, DL_ALL_RANKS}, {0}};
static const struct dl_phase allreduce_phases[] = {
    {&direct_reduce_scatter, DL_ALL_RANKS}, {&direct_allgather, DL_ALL_RANKS}, {0}};
static const struct dl_phase ring_phases[] = {
    {&direct_reduce_scatter, DL_ALL_RANKS}, {&dl_ring_allgather, DL_ALL_RANKS}, {0}};

const struct dl_algorithm dl_allreduce_direct = {
    .name = "direct",
    .doc = "rank i gets part i from all, adds, and sends the sum to all",
    .op = DL_ALLREDUCE,
    .blocks = dl_block_per_rank,
    .phases = allreduce_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .queue = DL_QUEUE_POSTED,
    .fold = DL_FOLD_SOURCES,
    .automatic = true,
};

/* What is sent is packed, the sums are packed again by who has added them, and go to all as the library gathers (1-bit
 * Adam, Tang et al. 2021, arXiv 2102.02888, section 5; DeepSpeed, runtime/comm/nccl.py, compressed_allreduce). */
const struct dl_algorithm dl_allreduce_direct_ring = {
    .name = "direct_ring",
    .doc = "rank i gets part i from all and adds; sums go round, as DeepSpeed exchanges what it compresses",
    .op = DL_ALLREDUCE,
    .blocks = dl_block_per_rank,
    .phases = ring_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .queue = DL_QUEUE_POSTED,
};

const struct dl_algorithm dl_allgather_direct = {
    .name = "direct",
    .doc = "each rank sends its part to all others",
    .op = DL_ALLGATHER,
    .blocks = dl_block_per_rank,
    .phases = allgather_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .queue = DL_QUEUE_POSTED,
    .fold = DL_FOLD_SOURCES,
    .automatic = true,
};

const struct dl_algorithm dl_reducescatter_direct = {
    .name = "direct",
    .doc = "rank i gets part i from all others and adds",
    .op = DL_REDUCESCATTER,
    .blocks = dl_block_per_rank,
    .phases = reduce_scatter_phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .queue = DL_QUEUE_POSTED,
    .fold = DL_FOLD_SOURCES,
    .automatic = true,
};
