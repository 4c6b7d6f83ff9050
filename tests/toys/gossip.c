/* gossip.c - replicas that never all meet: after a step each sums its gradients with one other (Blot et al., arXiv
 * 1611.09726), at a distance that doubles from step to step and begins again, or drawn. */
#include "tests/toys/toys.h"

struct options {
    int64_t partners;
};
enum { in_turns, drawn };
static const struct options defaults = {.partners = in_turns};
static const char *const partners[] = {"turns", "drawn", NULL};
static const struct dl_field fields[] = {
    {"partners", DL_CHOICE, offsetof(struct options, partners), 0, 0, true, partners, "by a rule if absent, or drawn"},
};

static bool are_drawn(const void *options) { return ((const struct options *)options)->partners == drawn; }

/* A bit of the replica's number for each distance. */
static uint32_t split_replicas(const void *options, uint32_t replicas, uint32_t *parts)
{
    uint32_t n = 0;
    if (are_drawn(options)) return 0;
    for (; replicas > 1 && replicas % 2 == 0 && n < DL_MOST_PEERS; replicas /= 2) parts[n++] = 2;
    return replicas == 1 ? n : 0;
}

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const uint32_t replicas = dl_n_replicas(what->setting);
    if (what->setting->n_peers || replicas == 1 || (are_drawn(options) && replicas % 2 == 0)) return DL_OK;
    if (are_drawn(options))
        return dl_fail(err, DL_IMPOSSIBLE, what->where, "pairs replicas, which must be an even number; got %u",
                       replicas);
    return dl_fail(err, DL_IMPOSSIBLE, what->where, "pairs replicas, which must be a power of 2, at most %u; got %u",
                   1u << DL_MOST_PEERS, replicas);
}

static enum dl_status sum(const struct dl_event *ev, struct dl_event how, struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    how.kind = DL_EV_COLLECTIVE;
    how.pass = DL_GRADIENT;
    how.cause = DL_CAUSE_DATA;
    how.op = DL_ALLREDUCE;
    how.bytes = dl_parameters_in(ev, s, false) * dl_gradient_bytes(s);
    how.handle = DL_EVERY_CALL;
    return dl_emit(below, &how, err);
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    if (dl_emit(below, ev, err) || ev->kind != DL_EV_GRADIENT || dl_n_replicas(s) == 1) return err->status;
    if (are_drawn(options))
        return sum(ev, (struct dl_event){.members = {.digits = dl_along_replicas(s), .are_drawn = true}}, below, err);
    for (uint32_t i = 0; i < s->n_peers && !err->status; i++)
        sum(ev, (struct dl_event){.members.digits = dl_along_peer(s, i), .every = s->n_peers, .turn = i}, below, err);
    return err->status;
}

const struct dl_strategy dl_toy_gossip = {
    .name = "gossip",
    .doc = "each replica sums its gradients with one other, which changes from step to step",
    .sums_gradients = true,
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .split_replicas = split_replicas,
    .check = check,
    .rewrite = rewrite,
};
