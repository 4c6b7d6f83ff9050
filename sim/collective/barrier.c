/* barrier.c - dissemination barrier (Hensgen, Finkel, Manber 1988): in round k a rank tells the one 2^k further on. */
#include "sim/collective/algorithms.h"
#include "sim/collective/phase.h"

static bool send(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out)
{
    *out = (struct dl_message){.to = (member + (UINT32_C(1) << round)) % size};
    return true;
}

static uint32_t source(uint32_t size, uint32_t member, uint32_t round)
{
    return (member + size - (UINT32_C(1) << round)) % size;
}

static const struct dl_pattern dissemination = {
    .rhythm = DL_EVERY, .whole = true, .rounds = dl_ceil_log2, .send = send, .source = source};

static const struct dl_phase phases[] = {{&dissemination, DL_ALL_RANKS}, {0}};

const struct dl_algorithm dl_barrier_dissemination = {
    .name = "dissemination",
    .doc = "each rank tells the ones 1, 2, 4, ... further on; its messages are empty",
    .op = DL_BARRIER,
    .blocks = dl_one_block,
    .phases = phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .automatic = true,
};
