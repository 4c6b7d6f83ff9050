/* gossip.c - replicas that never all meet: after a step each sums its gradients with one other, at a distance that
 * doubles from step to step and begins again (Blot et al., arXiv 1611.09726, with a rule in place of draws). */
#include "tests/toys/toys.h"

/* A bit of the replica's number for each distance. */
static uint32_t split_replicas(const void *options, uint32_t replicas, uint32_t *parts)
{
    uint32_t n = 0;
    (void)options;
    for (; replicas > 1 && replicas % 2 == 0 && n < DL_MOST_PEERS; replicas /= 2) parts[n++] = 2;
    return replicas == 1 ? n : 0;
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    (void)options;
    const uint32_t replicas = dl_n_replicas(what->setting);
    if (what->setting->n_peers || replicas == 1) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, what->where, "pairs replicas, which must be a power of 2, at most %u; got %u",
                   1u << DL_MOST_PEERS, replicas);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    (void)options;
    const struct dl_setting *const s = dl_stack_setting(below);
    if (dl_emit(below, ev, err) || ev->kind != DL_EV_GRADIENT) return err->status;
    for (uint32_t i = 0; i < s->n_peers; i++) {
        const struct dl_event sum = {.kind = DL_EV_COLLECTIVE,
                                     .pass = DL_GRADIENT,
                                     .cause = DL_CAUSE_DATA,
                                     .op = DL_ALLREDUCE,
                                     .members.digits = dl_along_peer(s, i),
                                     .every = s->n_peers,
                                     .turn = i,
                                     .bytes = dl_parameters_in(ev, s, false) * dl_gradient_bytes(s),
                                     .handle = DL_EVERY_CALL};
        if (dl_emit(below, &sum, err)) return err->status;
    }
    return DL_OK;
}

const struct dl_strategy dl_toy_gossip = {
    .name = "gossip",
    .doc = "each replica sums its gradients with one other, which changes from step to step",
    .sums_gradients = true,
    .split_replicas = split_replicas,
    .check = check,
    .rewrite = rewrite,
};
