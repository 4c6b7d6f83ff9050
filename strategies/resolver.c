#include "strategies/resolver.h"

#include <assert.h>

#define EVERY_DIMENSION (~(dl_dimensions)0)

/* The digits that change, by how they do. */
struct changes {
    dl_digits sliced, scattered, summed, exchanged, gathered;
};

static struct changes compare(const struct dl_layout *has, const struct dl_layout *needs)
{
    const dl_digits before = dl_layout_cuts(has, EVERY_DIMENSION), after = dl_layout_cuts(needs, EVERY_DIMENSION);
    const dl_digits added = has->partial & ~needs->partial;
    dl_digits kept = 0;
    for (int d = 0; d < DL_N_DIMENSIONS; d++) kept |= has->cut[d] & needs->cut[d];
    return (struct changes){.sliced = after & ~before & ~added,
                            .scattered = after & added,
                            .summed = added & ~after,
                            .exchanged = before & after & ~kept,
                            .gathered = before & ~after};
}

/* Digits only come or only go in a dimension, and count faster than those that stay. */
static bool is_within(const struct dl_ranks *ranks, const struct dl_layout *before, const struct dl_layout *after)
{
    for (int d = 0; d < DL_N_DIMENSIONS; d++) {
        const dl_digits come = after->cut[d] & ~before->cut[d], go = before->cut[d] & ~after->cut[d];
        bool changes_above = false;
        if (before->cut[d] == after->cut[d]) continue;
        if (dl_ranks_count(ranks, come) > 1 && dl_ranks_count(ranks, go) > 1) return false;
        for (uint32_t i = ranks->n_digits; i-- > 0;) {
            if (ranks->digits[i].n == 1) continue;
            if ((before->cut[d] & after->cut[d]) >> i & 1 && changes_above) return false;
            changes_above |= (come | go) >> i & 1;
        }
    }
    return true;
}

/* The layout with these digits as it is needed, and the others as they are. */
static struct dl_layout changed(const struct dl_layout *has, const struct dl_layout *needs, dl_digits digits)
{
    struct dl_layout mixed = {.partial = (has->partial & ~digits) | (needs->partial & digits)};
    for (int d = 0; d < DL_N_DIMENSIONS; d++) mixed.cut[d] = (has->cut[d] & ~digits) | (needs->cut[d] & digits);
    return mixed;
}

size_t dl_resolve(const struct dl_ranks *ranks, const struct dl_layout *has, const struct dl_layout *needs,
                  double elements, struct dl_move moves[DL_MOST_MOVES])
{
    const struct changes by = compare(has, needs);
    const struct {
        enum dl_op op;
        dl_digits along;
        bool ends_larger; /* its elements are those after it */
    } rules[DL_MOST_MOVES] = {{DL_REDUCESCATTER, by.scattered, false},
                              {DL_ALLREDUCE, by.summed, false},
                              {DL_ALLTOALL, by.exchanged, false},
                              {DL_ALLGATHER, by.gathered, true}};
    size_t n = 0;
    struct dl_layout at = changed(has, needs, by.sliced);
    assert(!(needs->partial & ~has->partial) && is_within(ranks, has, &at));
    for (size_t i = 0; i < DL_MOST_MOVES; i++) {
        if (dl_ranks_count(ranks, rules[i].along) == 1) continue;
        const struct dl_layout after = changed(&at, needs, rules[i].along);
        assert(is_within(ranks, &at, &after));
        const uint32_t parts = dl_layout_parts(rules[i].ends_larger ? &after : &at, EVERY_DIMENSION, ranks);
        moves[n++] = (struct dl_move){rules[i].op, rules[i].along, elements / parts, after};
        at = after;
    }
    return n;
}
