/* sink_dispatch.c - tokens that go once to each node where they have experts, and there once to each rank.
 *
 *   between nodes   rank s of a node -> rank s of another: the tokens that have any expert there
 *   inside a node   rank s -> rank t: of the tokens of rank s of all nodes, those that have any expert at t
 *
 * (DeepEP, github.com/deepseek-ai/DeepEP; HybridEP of Megatron-Core). It goes in small pieces, so that both go on at
 * once and the slower one counts. Results come back the same way, summed where tokens were forwarded. */
#include <math.h>

#include "strategies/sink.h"

/* Ranks of the experts' group that exchange among themselves, and how many such sets there are side by side. */
struct set {
    uint32_t n, n_beside;
    bool between; /* nodes, one rank of each; else the ranks of one node */
};

static uint32_t member(const struct dl_group *g, const struct set *set, uint32_t beside, uint32_t i)
{
    const uint32_t node = set->between ? i : g->largest_node, slot = set->between ? beside : i;
    const uint32_t n_slots = g->node_first[node + 1] - g->node_first[node];
    return g->node_ranks[g->node_first[node] + slot % n_slots];
}

/* All sets: those beside each other, of all tensor and context ranks. */
static struct dl_group *open_groups(struct dl_sink *s, const struct set *set, uint32_t *n)
{
    const struct dl_setting *const setting = &s->request->job->setting;
    const struct dl_group *const experts = dl_sink_groups(s, dl_along_experts(setting))->all;
    *n = dl_in_step_n_groups(setting, dl_along_experts(setting)) * set->n_beside;
    struct dl_group *const groups = dl_arena_alloc(s->arena, *n * sizeof *groups);
    for (uint32_t i = 0; i < *n; i++) {
        uint32_t *const device = dl_arena_alloc(s->arena, set->n * sizeof *device);
        for (uint32_t k = 0; k < set->n; k++)
            device[k] = experts[i / set->n_beside].device[member(experts, set, i % set->n_beside, k)];
        dl_group_init(&groups[i], s->request->estimator->topology, device, set->n, s->arena);
    }
    return groups;
}

/* `bytes` as of an all-to-all: what a rank has for all members, itself among them. */
static enum dl_status time_set(struct dl_sink *s, const struct set *set, double bytes, double *seconds,
                               struct dl_error *err)
{
    struct dl_choice choice;
    uint32_t n_groups;
    double crowding;
    *seconds = 0;
    if (set->n < 2) return DL_OK;
    const struct dl_group *const groups = open_groups(s, set, &n_groups);
    const struct dl_wish wish = {
        .op = DL_ALLTOALL, .algorithm = "auto", .protocol = "auto", .group = groups, .bytes = bytes};
    if (dl_estimator_crowding(s->request->estimator, groups, n_groups, &crowding, err)) return err->status;
    return dl_sink_time(s, &wish, crowding, &choice, seconds, err);
}

/* Nodes that hold unequally many ranks count as equal. */
enum dl_status dl_sink_dispatch(struct dl_sink *s, const struct dl_event *ev, double *seconds, struct dl_error *err)
{
    const struct dl_routing *const routing = &s->request->model->routing;
    const struct dl_group *const g = dl_sink_groups(s, dl_along_experts(&s->request->job->setting))->all;
    const uint32_t in_node = g->node_first[g->largest_node + 1] - g->node_first[g->largest_node];
    const struct set between = {.n = g->n_nodes, .n_beside = in_node, .between = true};
    const struct set inside = {.n = in_node, .n_beside = 1};
    const double part = ev->part > 0 ? ev->part : 1, weighed = 1 + ev->weights / g->n_nodes;
    const double once = weighed * ev->bytes / routing->top_k;
    double between_s, inside_s;
    if (time_set(s, &between, once * dl_routing_visits(routing, g->n_nodes), &between_s, err) ||
        time_set(s, &inside, once * dl_routing_visits(routing, g->n), &inside_s, err))
        return err->status;
    const struct dl_software *const software = s->request->job->setting.software;
    *seconds = part * (software->dispatch_s + (g->n_nodes > 1 ? software->dispatch_between_s : 0)) +
               fmax(between_s, inside_s / software->dispatch_fraction);
    return DL_OK;
}
