/* algorithms.h - every algorithm by name, for the table in algorithms.c. */
#ifndef DL_COLLECTIVE_ALGORITHMS_H
#define DL_COLLECTIVE_ALGORITHMS_H

#include "sim/collective/collective.h"

extern const struct dl_algorithm dl_allreduce_ring, dl_allreduce_tree, dl_allreduce_double_binary_tree;
extern const struct dl_algorithm dl_allreduce_rings, dl_allgather_rings, dl_reducescatter_rings, dl_allreduce_node_tree;
extern const struct dl_algorithm dl_allreduce_nvls, dl_allreduce_nvls_tree, dl_allreduce_sharp;
extern const struct dl_algorithm dl_allreduce_recursive_doubling, dl_allreduce_rabenseifner, dl_allreduce_hierarchical;
extern const struct dl_algorithm dl_allreduce_torus, dl_allreduce_torus_rings, dl_allreduce_direct,
    dl_allreduce_direct_ring;
extern const struct dl_algorithm dl_allreduce_parameter_server, dl_allreduce_parameter_server_serial;
extern const struct dl_algorithm dl_allgather_ring, dl_allgather_recursive, dl_allgather_direct;
extern const struct dl_algorithm dl_allgather_hierarchical, dl_allgather_torus;
extern const struct dl_algorithm dl_reducescatter_ring, dl_reducescatter_recursive, dl_reducescatter_direct;
extern const struct dl_algorithm dl_reducescatter_hierarchical, dl_reducescatter_torus;
extern const struct dl_algorithm dl_alltoall_direct, dl_alltoall_pairwise, dl_alltoall_recursive,
    dl_alltoall_hierarchical;
extern const struct dl_algorithm dl_broadcast_binomial, dl_broadcast_chain, dl_broadcast_scatter_allgather;
extern const struct dl_algorithm dl_reduce_binomial, dl_reduce_chain, dl_broadcast_chains, dl_reduce_chains;
extern const struct dl_algorithm dl_gather_binomial, dl_gather_direct;
extern const struct dl_algorithm dl_scatter_binomial, dl_scatter_direct;
extern const struct dl_algorithm dl_barrier_dissemination;
extern const struct dl_algorithm dl_sendrecv_direct, dl_shift_direct, dl_halo_direct;

#endif
