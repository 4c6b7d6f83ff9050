/* gossip.c - replicas that never all meet: after a step each sums its gradients with one other, in even steps with its
 * neighbour and in odd ones with the replica two places away (Blot et al., arXiv 1611.09726, with a rule in place of
 * draws). */
#include "tests/toys/toys.h"

enum { partners = 2 };

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    (void)options, (void)entry, (void)err;
    setting->shard_ways = partners;
    return DL_OK;
}

/* Groups are those of digits of a rank, and replicas have two of them. */
static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    (void)options;
    const uint32_t replicas = what->setting->ways[DL_AXIS_DATA];
    if (replicas == partners || replicas == partners * partners) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, what->where, "pairs %d or %d replicas, got %u", partners, partners * partners,
                   replicas);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    (void)options;
    static const dl_digits along[] = {DL_ALONG_SHARDS, DL_ALONG_COPIES};
    const struct dl_setting *const s = dl_stack_setting(below);
    if (dl_emit(below, ev, err) || ev->kind != DL_EV_GRADIENT) return err->status;
    for (uint32_t i = 0; i < DL_COUNT(along); i++) {
        const struct dl_event sum = {.kind = DL_EV_COLLECTIVE,
                                     .pass = DL_GRADIENT,
                                     .cause = DL_CAUSE_DATA,
                                     .op = DL_ALLREDUCE,
                                     .members.digits = along[i],
                                     .every = DL_COUNT(along),
                                     .turn = i,
                                     .bytes = dl_parameters_in(ev, s, false) * dl_gradient_bytes(s),
                                     .handle = DL_EVERY_CALL};
        if (dl_ranks_count(&s->ranks, along[i]) > 1 && dl_emit(below, &sum, err)) return err->status;
    }
    return DL_OK;
}

const struct dl_strategy dl_toy_gossip = {
    .name = "gossip",
    .doc = "each replica sums its gradients with one other, which changes from step to step",
    .sums_gradients = true,
    .claim = claim,
    .check = check,
    .rewrite = rewrite,
};
