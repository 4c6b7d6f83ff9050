#include "sim/collective/ring_time.h"

#include <math.h>
#include <stdbool.h>

#include "sim/core/memory.h"

double dl_slowest_stretch_s(const double *pass_s, uint32_t n, double n_steps)
{
    double all = 0, window = 0;
    for (uint32_t i = 0; i < n; i++) all += pass_s[i];
    const double turns = floor(n_steps / n);
    const uint32_t rest = (uint32_t)(n_steps - turns * n);
    for (uint32_t i = 0; i < rest; i++) window += pass_s[i];
    double slowest = window;
    for (uint32_t i = 0; i < n; i++) {
        window += pass_s[(i + rest) % n] - pass_s[i];
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

/* A ring whose lanes share links, either all of them in the same step or each beside no other. */
struct ring {
    const struct dl_ring_hop *hops;
    const double *pass_s; /* of each hop, until a message is where the next hop passes it on */
    uint32_t n;
};

/* gain[i]: what the best of 0 to i hops behind `from`, or before it, add to a chain that else stays there. */
static void find_gains(const struct ring *r, uint32_t from, bool behind, uint32_t most, double *gain)
{
    double sum = 0;
    uint32_t at = from;
    gain[0] = 0;
    for (uint32_t i = 1; i <= most; i++) {
        at = (at + (behind ? 1 : r->n - 1)) % r->n;
        sum += r->pass_s[at] - r->hops[from].move_s;
        gain[i] = fmax(gain[i - 1], sum);
    }
}

/* The chain that stays at the slowest hop, but for some steps on the way to it and from it. */
static double time_at_slowest(const struct ring *r, double n_steps)
{
    const uint32_t slowest = slowest_hop(r->hops, r->n), others = (uint32_t)n_steps - 1;
    double *const behind = dl_alloc((others + 1) * sizeof *behind), most = 0;
    double *const before = dl_alloc((others + 1) * sizeof *before);
    find_gains(r, slowest, true, others, behind);
    find_gains(r, slowest, false, others, before);
    for (uint32_t i = 0; i <= others; i++) most = fmax(most, behind[i] + before[others - i]);
    dl_free(behind);
    dl_free(before);
    return n_steps * r->hops[slowest].move_s + r->hops[slowest].latency_s + most;
}

static double slowest_chain_s(const struct dl_ring_hop *hops, uint32_t n, double n_steps, bool in_step)
{
    double *const pass_s = dl_alloc(n * sizeof *pass_s);
    const struct ring ring = {hops, pass_s, n};
    for (uint32_t i = 0; i < n; i++) pass_s[i] = hops[i].latency_s + (in_step ? hops[i].move_s : hops[i].alone_s);
    const double slowest_s = fmax(dl_slowest_stretch_s(pass_s, n, n_steps), time_at_slowest(&ring, n_steps));
    dl_free(pass_s);
    return slowest_s;
}

double dl_ring_time_s(const struct dl_ring_hop *hops, uint32_t n, double n_steps)
{
    return (slowest_chain_s(hops, n, n_steps, true) + slowest_chain_s(hops, n, n_steps, false)) / 2;
}
