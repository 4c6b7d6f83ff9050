/* filling.h - max-min fair rates of a set of flows by progressive filling, on the data of sharing.h. */
#ifndef DL_ENGINE_FILLING_H
#define DL_ENGINE_FILLING_H

#include "sim/core/memory.h"
#include "sim/engine/sharing.h"

enum { nobody = 0xffffffffu };

struct link {
    double capacity, whole_capacity;
    double limit;                  /* full: rate of its fastest flow; else INFINITY */
    double wanted;                 /* what its flows would take if each were alone */
    double remaining, weight_left; /* while solving, as is n_open: its flows whose rate is not yet known */
    uint32_t n_open;
    uint32_t first;   /* member */
    uint32_t touched; /* epoch in which it belongs to the solved part */
    bool fatpipe, dirty;
};

/* A flow on a link, which is told by its number among those that were crossed: element of the link's list and of the
 * flow's run of hops. */
struct member {
    uint32_t flow, link;
    uint32_t previous, next; /* on the link */
    double weight;
};

struct flow {
    double rate, solved_rate;
    double limit; /* its own: rate cap and fatpipes */
    double cap;
    double alone; /* its rate if nobody else were there */
    double whole; /* the same if its links were as in the beginning; its part of that */
    double part;  /* of what its source sends at a time */
    uint32_t first_member, n_members;
    uint32_t size_class; /* its run of members holds 2^size_class */
    uint32_t next_free;
    uint32_t solved;     /* epoch in which it is in the solved set */
    uint32_t bottleneck; /* the link of it that was found to be one last */
    bool fresh, live;
};

/* A solved flow with a limit of its own. */
struct capped {
    double limit;
    uint32_t flow;
};

/* A link in the heap, by its level: remaining / weight_left, or less if that has grown meanwhile. */
struct rung {
    double level;
    uint32_t link;
};

/* Of many that come and go: `rest` is what adding them rounded off. */
struct sum {
    double all, rest;
};

enum { n_classes = 32 };

struct dl_sharing {
    const struct dl_engine_link *given; /* what the links are at first */
    size_t n_given;
    uint32_t *number_of; /* by given link: its place among those that were crossed or changed, + 1; 0: it was not */
    uint32_t *given_of;  /* the reverse */
    struct link *links;  /* those that were: few of a large machine's */
    size_t n_links, links_capacity, given_of_capacity;
    struct flow *flows;
    size_t n_flows, flows_capacity;
    struct member *members;
    size_t n_members, members_capacity;
    uint32_t free_flow[n_classes];
    uint32_t epoch;
    uint32_t *fresh, *dirty, *set, *part; /* flows, links, flows, links */
    struct rung *heap;
    struct capped *capped;
    struct sum *wanted_of_whole; /* by link; NULL: nobody has asked yet */
    size_t n_live;               /* flows that have joined and not left */
    bool has_all;                /* the set is all of them */
    size_t n_open;               /* flows of the set whose rate is not yet known */
    size_t n_fresh, n_dirty, n_set, n_part, n_heap, n_capped;
    size_t fresh_capacity, dirty_capacity, set_capacity, part_capacity, heap_capacity, capped_capacity;
};

/* It cannot become anybody's bottleneck, whoever of its flows runs how fast: the solver need not look at it. The slack
 * is far above what rounding makes of a sum that flows join and leave. */
static inline bool is_slack(const struct link *l)
{
    const double slack = 1e-6;
    return l->fatpipe || l->wanted < l->capacity * (1 - slack);
}

static inline bool in_set(const struct dl_sharing *s, const struct flow *f) { return f->solved == s->epoch; }

/* Give every flow of the set its max-min rate, into solved_rate, while all others keep theirs. */
void dl_fill(struct dl_sharing *s);

#endif
