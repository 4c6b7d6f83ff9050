/* algorithms.c - the only list of algorithms; a new one is one struct in a file and one line here. */
#include "sim/collective/algorithms.h"

#include <stdio.h>
#include <string.h>

static const struct dl_algorithm *const algorithms[] = {
    &dl_allreduce_ring,
    &dl_allreduce_rings,
    &dl_allreduce_node_tree,
    &dl_allreduce_nvls,
    &dl_allreduce_nvls_tree,
    &dl_allreduce_sharp,
    &dl_allreduce_tree,
    &dl_allreduce_double_binary_tree,
    &dl_allreduce_recursive_doubling,
    &dl_allreduce_rabenseifner,
    &dl_allreduce_hierarchical,
    &dl_allreduce_torus,
    &dl_allreduce_torus_rings,
    &dl_allreduce_direct,
    &dl_allreduce_direct_ring,
    &dl_allreduce_parameter_server,
    &dl_allreduce_parameter_server_serial,
    &dl_allgather_ring,
    &dl_allgather_rings,
    &dl_allgather_recursive,
    &dl_allgather_torus,
    &dl_allgather_direct,
    &dl_allgather_hierarchical,
    &dl_reducescatter_ring,
    &dl_reducescatter_rings,
    &dl_reducescatter_recursive,
    &dl_reducescatter_torus,
    &dl_reducescatter_direct,
    &dl_reducescatter_hierarchical,
    &dl_alltoall_direct,
    &dl_alltoall_pairwise,
    &dl_alltoall_recursive,
    &dl_alltoall_hierarchical,
    &dl_broadcast_binomial,
    &dl_broadcast_chain,
    &dl_broadcast_chains,
    &dl_broadcast_scatter_allgather,
    &dl_reduce_binomial,
    &dl_reduce_chain,
    &dl_reduce_chains,
    &dl_gather_binomial,
    &dl_gather_direct,
    &dl_scatter_binomial,
    &dl_scatter_direct,
    &dl_barrier_dissemination,
    &dl_sendrecv_direct,
    &dl_shift_direct,
    &dl_halo_direct,
};

size_t dl_algorithm_count(void) { return DL_COUNT(algorithms); }

const struct dl_algorithm *dl_algorithm_get(size_t index) { return algorithms[index]; }

enum dl_status dl_algorithm_find(enum dl_op op, const char *name, const struct dl_algorithm **out, struct dl_error *err)
{
    char hint[DL_HINT];
    const char *names[DL_COUNT(algorithms)];
    size_t n = 0;
    for (size_t i = 0; i < DL_COUNT(algorithms); i++) {
        if (algorithms[i]->op != op) continue;
        if (strcmp(algorithms[i]->name, name) == 0) {
            *out = algorithms[i];
            return DL_OK;
        }
        names[n++] = algorithms[i]->name;
    }
    if (*dl_suggestion(name, names, n, hint))
        return dl_fail(err, DL_NOT_FOUND, "--algo", "%s has no algorithm '%.60s'%s", dl_op_name(op), name, hint);
    return dl_fail(err, DL_NOT_FOUND, "--algo", "%s has no algorithm '%.60s'; it has %s", dl_op_name(op), name,
                   dl_joined(names, n, hint));
}

static bool is_known(const struct dl_transport *alone)
{
    for (size_t i = 0; i < DL_COUNT(algorithms); i++)
        if (dl_transport_has(alone, dl_op_name(algorithms[i]->op), algorithms[i]->name)) return true;
    return false;
}

enum dl_status dl_check_algorithms(struct dl_json transport_doc, const struct dl_transport *transport,
                                   struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_json list = dl_json_member(transport_doc, "algorithms", arena);
    for (size_t i = 0; i < transport->n_algorithms; i++) {
        const struct dl_transport alone = {.algorithms = &transport->algorithms[i], .n_algorithms = 1};
        if (!is_known(&alone))
            return dl_fail(err, DL_NOT_FOUND, dl_json_element(list, i, arena).where,
                           "no algorithm '%.60s'; see `dlsim list collectives`, as NAME or OPERATION.NAME",
                           transport->algorithms[i]);
    }
    return DL_OK;
}
