/* figures.h - the constants that a session rests on, found in its files: every number of its system, device,
 * transport and software whose unit, at the end of its key or of the nearest key above, is a time or a rate; and
 * factors without a unit that are no whole numbers, such as efficiencies. Tables of measured times are one constant.
 * What only power rests on is none: it does not change the step. */
#ifndef DL_STUDY_FIGURES_H
#define DL_STUDY_FIGURES_H

#include "sim/report/sensitivity.h"
#include "sim/session/session.h"

struct dl_figure {
    struct dl_effect effect; /* but for elasticities */
    const json_t *tables;    /* of times, whose value is 1; NULL: a number */
    enum dl_figure_of { DL_OF_SYSTEM, DL_OF_DEVICE, DL_OF_TRANSPORT, DL_OF_SOFTWARE } of;
};

struct dl_figures {
    struct dl_figure *items;
    size_t n, capacity;
};

/* Of a session that was opened; they live in its arena and documents. Release with dl_free(figures->items). */
void dl_figures_find(const struct dl_session *s, struct dl_figures *out);

/* As for --set, with the value times the factor. */
const char *dl_figure_changed(const struct dl_figure *c, double factor, struct dl_arena *arena);

#endif
