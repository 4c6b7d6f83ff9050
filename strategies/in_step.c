#include "strategies/in_step.h"

uint32_t dl_in_step_n_groups(const struct dl_setting *s, dl_digits along)
{
    return dl_ranks_count(&s->ranks, dl_in_lockstep(s) & ~along);
}

/* Parts of a line, if they are several of its digits. */
static size_t add_new(dl_digits kinds[DL_MOST_IN_STEP], size_t n, dl_digits along)
{
    bool is_new = along;
    for (size_t i = 0; i < n; i++) is_new &= kinds[i] != along;
    if (is_new) kinds[n++] = along;
    return n;
}

size_t dl_in_step_kinds(const struct dl_setting *s, dl_digits kinds[DL_MOST_IN_STEP])
{
    const dl_digits usual[] = {DL_ALONG_TENSOR, DL_ALONG_CONTEXT, dl_along_experts(s),
                               DL_ALONG_X,      DL_ALONG_Y,       DL_ALONG_Z};
    size_t n = 0;
    for (; n < DL_COUNT(usual); n++) kinds[n] = usual[n];
    n = add_new(kinds, n, s->along_copies);
    n = add_new(kinds, n, dl_along_expert_tensor(s));
    for (uint32_t i = 0; i < s->n_brought; i++) kinds[n++] = dl_along_own(s, s->brought[i]);
    return n;
}

/* Ranks that are looked at, and those of them that go in lockstep. */
struct in_step {
    struct dl_seats seats;
    dl_digits in_lockstep;
};

static struct dl_group *groups_from(const struct in_step *of, dl_digits along, uint32_t rank, struct dl_arena *arena)
{
    return dl_seats_groups(&of->seats, &(struct dl_members){.digits = along}, of->in_lockstep & ~along, rank, arena);
}

/* Over how many nodes the groups reach, in sum. */
static uint32_t reach(const struct in_step *of, dl_digits along, uint32_t rank)
{
    struct dl_arena *const arena = dl_arena_new();
    const struct dl_group *const groups = groups_from(of, along, rank, arena);
    uint32_t n_nodes = 0;
    for (uint32_t i = 0; i < dl_ranks_count(of->seats.ranks, of->in_lockstep & ~along); i++)
        n_nodes += groups[i].n_nodes;
    dl_arena_free(arena);
    return n_nodes;
}

/* The first rank of those whose groups reach over the most nodes: with 6 tensor ways on nodes of 8 devices the second
 * group does, the first does not. Those that begin at the same place of a node are taken to sit alike. */
static uint32_t farthest(const struct in_step *of, dl_digits along)
{
    const struct dl_seats *const seats = &of->seats;
    const struct dl_ranks *const ranks = seats->ranks;
    const dl_digits beside = dl_ranks_all(ranks) & ~(along | of->in_lockstep);
    const uint32_t n_first = dl_ranks_count(ranks, beside), per_node = seats->topology->node.n_devices;
    uint32_t found = 0, most = 0;
    if (dl_ranks_count(ranks, along) == 1) return found;
    uint32_t *const firsts = dl_alloc(per_node * sizeof *firsts); /* by place, the first rank + 1; 0: none */
    for (uint32_t i = 0; i < n_first; i++) {
        const uint32_t rank = dl_ranks_offset(ranks, beside, i);
        uint32_t *const first = &firsts[seats->device_of_rank[rank] % per_node];
        if (!*first || rank + 1 < *first) *first = rank + 1;
    }
    for (uint32_t slot = 0; slot < per_node; slot++) {
        if (!firsts[slot]) continue;
        const uint32_t rank = firsts[slot] - 1, n_nodes = reach(of, along, rank);
        if (n_nodes < most || (n_nodes == most && rank > found)) continue;
        found = rank;
        most = n_nodes;
    }
    dl_free(firsts);
    return found;
}

struct dl_group *dl_in_step_groups(const struct dl_setting *s, dl_digits along, const struct dl_topology *topology,
                                   const uint32_t *device_of_rank, struct dl_arena *arena)
{
    const struct in_step of = {
        .seats = {.ranks = &s->ranks, .device_of_rank = device_of_rank, .n_servers = s->servers, .topology = topology},
        .in_lockstep = dl_in_lockstep(s)};
    return groups_from(&of, along, farthest(&of, along), arena);
}
