/* run_page.h - the page of a run: its answer as --json gives it, the timeline, memory over the step, what links
 * carried, and the sources of all numbers. */
#ifndef DL_DRAW_RUN_PAGE_H
#define DL_DRAW_RUN_PAGE_H

#include "sim/draw/pictures.h"

enum { DL_PAGE_WIDTH = 1000 }; /* that the machine is laid out for; the page scales it */

struct dl_run_page {
    struct dl_run_picture picture;
    json_t *answer;             /* is released */
    const struct dl_json *docs; /* of all files whose numbers went in */
    size_t n_docs;
    struct dl_arena *arena;
};

enum dl_status dl_run_page_write(const char *path, const struct dl_run_page *page, struct dl_error *err);

/* Columns of numbers, slice by slice, and which step to show; page/slices.js reads them. */
json_t *dl_page_timeline(const struct dl_timeline *t, const struct dl_time_axis *step);

/* Boxes and links of the picture of the machine, and the busiest links by name; page/machine.js draws them. */
json_t *dl_page_machine(const struct dl_machine_load *load);

#endif
