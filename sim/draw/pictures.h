/* pictures.h - what can be drawn of a run or a collective. A sheet has one of them or several below each other.
 *
 * Every picture draws from y downwards and returns where the next may begin. */
#ifndef DL_DRAW_PICTURES_H
#define DL_DRAW_PICTURES_H

#include "sim/draw/time_axis.h"
#include "sim/report/collective_report.h"
#include "sim/report/run_report.h"
#include "sim/report/timeline.h"

/* What links carried, and which devices took part. */
struct dl_machine_load {
    const struct dl_topology *topology;
    const uint32_t *devices;
    uint32_t n_devices;
    const struct dl_link_load *links; /* those that carried something */
    size_t n_links;
    double seconds;      /* that they were simulated for; 0: loads are not known */
    const char *unknown; /* why not; NULL: they are */
};

struct dl_run_picture {
    const struct dl_run_report *report;
    const struct dl_timeline *timeline;
    struct dl_machine_load load;
};

struct dl_collective_picture {
    const struct dl_collective_report *report;
    struct dl_machine_load load;
};

enum { DL_SHEET_WIDTH = 1200, DL_SHEET_LEFT = 92, DL_SHEET_RIGHT = 24 };

double dl_draw_timeline(struct dl_svg *svg, double y, const struct dl_run_picture *p);
double dl_draw_memory(struct dl_svg *svg, double y, const struct dl_run_picture *p);
double dl_draw_causes(struct dl_svg *svg, double y, const struct dl_run_picture *p);
double dl_draw_steps(struct dl_svg *svg, double y, const struct dl_collective *c);
double dl_draw_topology(struct dl_svg *svg, double y, const struct dl_machine_load *load);

/* The heading of one, and the coloured squares of its legend, from right to left. */
double dl_draw_heading(struct dl_svg *svg, double y, const char *text);
double dl_draw_key(struct dl_svg *svg, double right, double y, const char *colour, const char *name);
double dl_draw_caption(struct dl_svg *svg, double y, const char *text);

/* The last step that was simulated. */
struct dl_time_axis dl_time_axis_of(const struct dl_training_result *result);

/* Names of the pictures, which end with NULL; the first is all of them. */
extern const char *const dl_run_pictures[];
extern const char *const dl_collective_pictures[];
enum dl_status dl_draw_run(const struct dl_run_picture *p, const char *which, const char *path, struct dl_error *err);
enum dl_status dl_draw_collective(const struct dl_collective_picture *p, const char *which, const char *path,
                                  struct dl_error *err);

#endif
