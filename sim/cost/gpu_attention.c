/* gpu_attention.c - fused attention: a unit takes a block of queries and goes through their keys, or backward a block
 * of keys and goes through their queries. A block that is not full takes as long as a full one; a causal row is half as
 * long on average, and units that end early wait for the last. Rows that are all as long go in waves. In windows a
 * block goes through all that one of its rows sees: a window, and as much more as the block is long. Some kernels leave
 * all blocks of a head to one unit. */
#include <math.h>

#include "sim/cost/gpu.h"

/* A random number for each score, which backward draws again instead of reading it. */
static double random_s(const struct dl_gpu *o, const struct dl_kernel *k)
{
    const double per_s = k->backward ? o->attention_backward_randoms_per_s : o->attention_randoms_per_s;
    return k->drops && per_s > 0 ? 1 / per_s : 0;
}

double dl_gpu_attention_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const struct dl_gpu *const o = d->options;
    const double fraction = k->backward ? o->attention_backward_fraction : o->attention_fraction;
    const double block = k->backward ? o->attention_backward_rows : o->attention_rows, needed = k->causal ? 0.5 : 1;
    const double block_s = k->backward ? o->attention_backward_block_s : o->attention_block_s;
    const double tail = k->backward ? o->attention_backward_tail : o->attention_tail;
    const bool in_windows = k->window > 0;
    const double length = k->backward && !in_windows ? k->n : k->m;
    const double row = in_windows ? fmin(k->window + block - 1, k->m) : k->backward ? k->m : k->n;
    const double filled = ceil(k->k / o->attention_head_multiple) * o->attention_head_multiple / k->k;
    const double flop_per_score = filled * dl_kernel_flop(k) / (k->batch * k->m * k->n * needed);
    const double score_s =
        flop_per_score / (d->peak_flop_per_s[precision] * fraction) + 1 / o->exponentials_per_s + random_s(o, k);
    const double n_blocks = k->batch * ceil(length / block), longest_s = block * row * score_s * o->units + block_s;
    const double busy_s = n_blocks * (block * row * needed * score_s + block_s / o->units);
    const double rows_s = k->by_whole_heads ? ceil(k->batch / o->units) * busy_s / k->batch * o->units
                          : k->causal       ? fmax(busy_s + tail * longest_s, longest_s)
                                            : ceil(n_blocks / o->units) * longest_s;
    return o->ramp_s + fmax(rows_s, dl_gpu_memory_s(d, dl_kernel_bytes(k, precision)));
}
