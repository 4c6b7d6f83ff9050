/* search_axes.h - the axes of a search: their values, and rules that refuse a value beside those of axes before it.
 *
 * The rule to remember: an axis that is not searched unless asked for (--also) has its first value, 0, everywhere. */
#ifndef DL_STUDY_SEARCH_AXES_H
#define DL_STUDY_SEARCH_AXES_H

#include "sim/study/search_space.h"

struct dl_space_axis_kind {
    const char *key; /* of --fix; of --also if it is searched only then */
    void (*values)(struct dl_space *s, enum dl_space_axis axis);
    /* OPTIONAL. Why the value of its axis cannot be, or would be the same as another; uses only axes before it. */
    const char *(*refuse)(const struct dl_space *s, const struct dl_space_point *p);
    const char *(*name)(int64_t value); /* of a value, NULL after the last; NULL: they are numbers */
    bool if_asked;
};
/* Give an axis one more value. */
void dl_space_add(struct dl_space *s, enum dl_space_axis axis, int64_t value);

extern const struct dl_space_axis_kind dl_space_axes[DL_N_SPACE_AXES];

#endif
