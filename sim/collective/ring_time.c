#include "sim/collective/ring_time.h"

#include <math.h>
#include <stdbool.h>

#include "sim/core/memory.h"

/* Whether lanes that share links are in the same step all the time. */
enum lanes { IN_STEP, OUT_OF_STEP };

/* Until a message is where the next hop passes it on. */
static double pass_s(const struct dl_ring_hop *hop, enum lanes lanes)
{
    return hop->latency_s + (lanes == IN_STEP ? hop->move_s : hop->alone_s);
}

/* The piece that meets the slowest stretch of n_steps hops. */
static double slowest_stretch(const struct dl_ring_hop *hops, uint32_t n, double n_steps, enum lanes lanes)
{
    double all = 0, window = 0;
    for (uint32_t i = 0; i < n; i++) all += pass_s(&hops[i], lanes);
    const double turns = floor(n_steps / n);
    const uint32_t rest = (uint32_t)(n_steps - turns * n);
    for (uint32_t i = 0; i < rest; i++) window += pass_s(&hops[i], lanes);
    double slowest = window;
    for (uint32_t i = 0; i < n; i++) {
        window += pass_s(&hops[(i + rest) % n], lanes) - pass_s(&hops[i], lanes);
        slowest = fmax(slowest, window);
    }
    return turns * all + slowest;
}

static uint32_t slowest_hop(const struct dl_ring_hop *hops, uint32_t n)
{
    uint32_t slowest = 0;
    for (uint32_t i = 1; i < n; i++)
        if (hops[i].move_s > hops[slowest].move_s) slowest = i;
    return slowest;
}

/* gain[i]: what the best of 0 to i hops behind `from`, or before it, add to a chain that else stays there. */
static void find_gains(const struct dl_ring_hop *hops, uint32_t n, uint32_t from, bool behind, enum lanes lanes,
                       uint32_t most, double *gain)
{
    double sum = 0;
    uint32_t at = from;
    gain[0] = 0;
    for (uint32_t i = 1; i <= most; i++) {
        at = (at + (behind ? 1 : n - 1)) % n;
        sum += pass_s(&hops[at], lanes) - hops[from].move_s;
        gain[i] = fmax(gain[i - 1], sum);
    }
}

/* The chain that stays at the slowest hop, but for some steps on the way to it and from it. */
static double time_at_slowest(const struct dl_ring_hop *hops, uint32_t n, double n_steps, enum lanes lanes)
{
    const uint32_t slowest = slowest_hop(hops, n), others = (uint32_t)n_steps - 1;
    double *const behind = dl_alloc((others + 1) * sizeof *behind), most = 0;
    double *const before = dl_alloc((others + 1) * sizeof *before);
    find_gains(hops, n, slowest, true, lanes, others, behind);
    find_gains(hops, n, slowest, false, lanes, others, before);
    for (uint32_t i = 0; i <= others; i++) most = fmax(most, behind[i] + before[others - i]);
    dl_free(behind);
    dl_free(before);
    return n_steps * hops[slowest].move_s + hops[slowest].latency_s + most;
}

static double slowest_chain_s(const struct dl_ring_hop *hops, uint32_t n, double n_steps, enum lanes lanes)
{
    return fmax(slowest_stretch(hops, n, n_steps, lanes), time_at_slowest(hops, n, n_steps, lanes));
}

double dl_ring_time_s(const struct dl_ring_hop *hops, uint32_t n, double n_steps)
{
    return (slowest_chain_s(hops, n, n_steps, IN_STEP) + slowest_chain_s(hops, n, n_steps, OUT_OF_STEP)) / 2;
}
