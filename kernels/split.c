#include "kernels/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/harness.h"

/* The best time for each number of samples, and the call that it ends with. */
struct best {
    double seconds;
    size_t last;
};

static void fill(struct best *best, const struct dl_micro *micros, size_t n, int64_t samples, double limit_bytes)
{
    best[0].seconds = 0;
    for (int64_t b = 1; b <= samples; b++) {
        best[b] = (struct best){INFINITY, n};
        for (size_t i = 0; i < n; i++) {
            const struct dl_micro *const m = &micros[i];
            if (m->samples > b || !(m->workspace_bytes <= limit_bytes)) continue;
            const double seconds = best[b - m->samples].seconds + m->seconds;
            if (seconds < best[b].seconds) best[b] = (struct best){seconds, i};
        }
    }
}

double dl_split(const struct dl_micro *micros, size_t n, int64_t samples, double limit_bytes, int64_t *calls)
{
    struct best *const best = dl_memory((size_t)(samples + 1) * sizeof *best);
    fill(best, micros, n, samples, limit_bytes);
    memset(calls, 0, n * sizeof *calls);
    const double seconds = best[samples].seconds;
    if (seconds < INFINITY)
        for (int64_t b = samples; b > 0; b -= micros[best[b].last].samples) calls[best[b].last]++;
    free(best);
    return seconds;
}

const struct dl_micro *dl_undivided(const struct dl_micro *micros, size_t n, int64_t samples, double limit_bytes)
{
    const struct dl_micro *fastest = NULL;
    for (size_t i = 0; i < n; i++)
        if (micros[i].samples == samples && micros[i].workspace_bytes <= limit_bytes &&
            (!fastest || micros[i].seconds < fastest->seconds))
            fastest = &micros[i];
    return fastest;
}
