#include "sim/program/peers.h"

#include <assert.h>
#include <gsl/gsl_randist.h>

#include "sim/core/memory.h"
#include "sim/core/random.h"

/* Two that come after each other in a random order are partners. */
void dl_peers_draw(uint32_t n, uint32_t iteration, uint64_t seed, uint32_t *peer)
{
    assert(n % 2 == 0);
    uint32_t *const order = dl_alloc(n * sizeof *order);
    gsl_rng *const rng = dl_random_new(seed, "peers", iteration);
    for (uint32_t i = 0; i < n; i++) order[i] = i;
    gsl_ran_shuffle(rng, order, n, sizeof *order);
    for (uint32_t i = 0; i < n; i++) peer[order[i]] = order[i ^ 1u];
    gsl_rng_free(rng);
    dl_free(order);
}

void dl_peers_pairs(uint32_t n, const uint32_t *peer, uint32_t (*pairs)[2])
{
    uint32_t n_pairs = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (peer[i] < i) continue;
        pairs[n_pairs][0] = i;
        pairs[n_pairs++][1] = peer[i];
    }
}
