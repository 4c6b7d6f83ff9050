/* choose.h - which algorithm and protocol: the requested one, or the one with the least estimated time.
 *
 * Where a library's tuner is imitated, the library's own estimate (presumed_s) decides, which may be far above the
 * real time: then the choice also knows which one is estimated to be faster. */
#ifndef DL_COLLECTIVE_CHOOSE_H
#define DL_COLLECTIVE_CHOOSE_H

#include "sim/collective/estimate.h"

struct dl_wish {
    enum dl_op op;
    const char *algorithm; /* a name or "auto" */
    const char *protocol;  /* a name or "auto" */
    const struct dl_group *group;
    double bytes;
    double back_fraction; /* DL_HALO: see comm.h */
    uint32_t chunks;      /* 0: as the transport does it */
    struct dl_payload payload;
    uint32_t n_alike; /* groups of which each will be chosen for; 0 is 1 */
    uint32_t servers; /* entries of group->device beyond n, which algorithms with servers need */
};

enum dl_chosen_by { DL_BY_REQUEST, DL_BY_LEAST_ESTIMATE, DL_BY_TUNER };

struct dl_choice {
    struct dl_collective collective;
    struct dl_estimate estimate;
    enum dl_chosen_by by; /* what decided, by estimate.presumed_s */
    struct dl_faster faster;
};

/* Whether a name leaves the choice to dl_choose. */
bool dl_is_auto(const char *name);

enum dl_status dl_choose(struct dl_estimator *e, const struct dl_wish *wish, struct dl_arena *arena,
                         struct dl_choice *out, struct dl_error *err);

/* Of a choice that was made before: the estimator knows it as if it had been made again. */
void dl_note_choice(struct dl_estimator *e, const struct dl_choice *choice);

/* The algorithms of the wish's operation, in the order of their table, that the transport has, that can be done by this
 * group, and that do not take longer to price than is sensible; automatic or not. `out` has room for
 * dl_algorithm_count(). Returns how many. */
size_t dl_possible_algorithms(const struct dl_estimator *e, const struct dl_wish *wish, struct dl_arena *arena,
                              const struct dl_algorithm **out);

/* How long these take that begin at the same time and share links. */
enum dl_status dl_choices_together_s(struct dl_estimator *e, const struct dl_choice *choices, uint32_t n, double *out,
                                     struct dl_error *err);

#endif
