/* alltoall_recursive.c - all-to-all in few rounds: blocks go on from rank to rank, one digit of their way at a time.
 *
 * Ranks are written in digits by the prime factors of their number. For each digit a rank sends those that differ from
 * it in this digit only all that it holds for ranks with theirs: its own blocks, and those of the ranks that differ
 * from it in the digits before, which it got from them. Where ranks are a power of two these are log2 p rounds of half
 * of the buffer each (the index algorithm of Bruck et al., TPDS 1997, at radix 2; of other radices where they are not).
 */
#include "sim/collective/algorithms.h"
#include "sim/collective/alltoall.h"
#include "sim/collective/phase.h"

static enum dl_status prepare(struct dl_collective *c, struct dl_arena *arena, struct dl_error *err)
{
    (void)arena;
    return dl_alltoall_check(c, err);
}

static uint32_t smallest_factor(uint32_t n)
{
    for (uint32_t factor = 2; factor * factor <= n; factor++)
        if (n % factor == 0) return factor;
    return n;
}

/* Messages of a digit: one to each other value of it. */
static uint32_t rounds_of(uint32_t size)
{
    uint32_t rounds = 0;
    for (uint32_t rest = size; rest > 1; rest /= smallest_factor(rest)) rounds += smallest_factor(rest) - 1;
    return rounds;
}

struct digit {
    uint32_t unit, radix; /* it counts units, up to radix - 1 */
    uint32_t further;     /* how much further on the partner's is */
};

static struct digit digit_of(uint32_t size, uint32_t round)
{
    struct digit d = {.unit = 1, .radix = smallest_factor(size), .further = round + 1};
    while (d.further >= d.radix) {
        d.further -= d.radix - 1;
        d.unit *= d.radix;
        d.radix = smallest_factor(size / d.unit);
    }
    return d;
}

static uint32_t change(struct digit d, uint32_t member, uint32_t further)
{
    const uint32_t value = member / d.unit % d.radix, changed = (value + further) % d.radix;
    return member - value * d.unit + changed * d.unit;
}

/* From all that differ from it in lower digits, for all that agree with the partner in this one and those below. */
static bool send(uint32_t size, uint32_t member, uint32_t round, struct dl_message *out)
{
    const struct digit d = digit_of(size, round);
    const uint32_t to = change(d, member, d.further), stride = d.unit * d.radix;
    const uint32_t first_source = member - member % d.unit;
    *out = (struct dl_message){.to = to, .parts = {first_source * size + to % stride, size / d.radix, stride}};
    return true;
}

static uint32_t source(uint32_t size, uint32_t member, uint32_t round)
{
    const struct digit d = digit_of(size, round);
    return change(d, member, d.radix - d.further);
}

static const struct dl_pattern recursive = {.rhythm = DL_EVERY, .rounds = rounds_of, .send = send, .source = source};

static const struct dl_phase phases[] = {{&recursive, DL_ALL_RANKS}, {0}};

const struct dl_algorithm dl_alltoall_recursive = {
    .name = "recursive",
    .doc = "one digit of the way after the other, in few rounds: Bruck's where the ranks are a power of two",
    .op = DL_ALLTOALL,
    .prepare = prepare,
    .blocks = dl_alltoall_blocks,
    .phases = phases,
    .next = dl_phases_next,
    .round = dl_phases_round,
    .peer = dl_phases_peer,
    .automatic = true,
};
