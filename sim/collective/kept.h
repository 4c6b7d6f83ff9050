/* kept.h - what is chosen for groups that do the same at the same time, how long that takes, and the ways between
 * groups; kept by the estimator.
 *
 * The rule to remember: it is found by everything that choosing reads beside the topology and the transport, which an
 * estimator never changes, so that what is found is what would be chosen anew. */
#ifndef DL_COLLECTIVE_KEPT_H
#define DL_COLLECTIVE_KEPT_H

#include "sim/collective/choose.h"

struct dl_together {
    uint32_t n; /* groups */
    const struct dl_group *groups;
    const struct dl_choice *choices; /* of each */
    double time_s;                   /* of all of them, which begin at once and share links */
};

/* The wish of every group, whose own group is not read; `devices` has n_ranks + wish->servers entries for each of
 * n_groups. It lives as long as the estimator. NULL: err says why. */
const struct dl_together *dl_choose_together(struct dl_estimator *e, const struct dl_wish *wish,
                                             const uint32_t *devices, uint32_t n_ranks, uint32_t n_groups,
                                             struct dl_error *err);

/* All routes from the devices of a group to those of another, one to one. */
struct dl_ways {
    const struct dl_hop *hops;
    size_t n_hops;
    double latency_s[DL_N_REACHES]; /* of the longest route that reaches so far; below 0: there is none */
};
/* Likewise. */
const struct dl_ways *dl_find_ways(struct dl_estimator *e, const uint32_t *from, const uint32_t *to, uint32_t n,
                                   struct dl_error *err);

struct dl_kept;
struct dl_kept *dl_kept_new(void);
void dl_kept_free(struct dl_kept *kept);
size_t dl_kept_count(const struct dl_kept *kept);
/* More than is worth keeping. */
bool dl_kept_is_full(const struct dl_kept *kept);

#endif
