/* cpu.h - the figures of a processor, and the part of its model that has a file of its own: GEMMs without packing. */
#ifndef DL_COST_CPU_H
#define DL_COST_CPU_H

#include "sim/cost/device.h"

struct dl_cpu {
    double cores, matrix_fraction, bandwidth_fraction, tile_m, tile_n, k_block;
    double core_cache_bytes, core_cache_bytes_per_s, last_cache_bytes, last_cache_bytes_per_s, tile_bytes_per_s, call_s;
    double tail_fraction, pack_bytes_per_s;
    double direct_multiplications, direct_results, direct_k, direct_in_flight, direct_bytes_per_s;
};

/* Whether the library computes the product from the operands as they lie. */
bool dl_cpu_is_direct(const struct dl_cpu *o, const struct dl_kernel *k);

/* Its arithmetic: what blocks of the result in registers take. */
double dl_cpu_direct_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision);

#endif
