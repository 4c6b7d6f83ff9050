/* sheet.c - one picture or several on a sheet with a title. */
#include <string.h>

#include "sim/draw/pictures.h"
#include "sim/report/units.h"

static double draw_load_of_run(struct dl_svg *svg, double y, const struct dl_run_picture *p)
{
    return dl_draw_topology(svg, y, &p->load);
}

/* The only list: a new picture of a run is a name and a function here. */
const char *const dl_run_pictures[] = {"all", "timeline", "memory", "causes", "topology", NULL};
static double (*const draw_run[])(struct dl_svg *, double, const struct dl_run_picture *) = {
    dl_draw_timeline, dl_draw_memory, dl_draw_causes, draw_load_of_run};
_Static_assert(DL_COUNT(dl_run_pictures) == DL_COUNT(draw_run) + 2, "a function for every name but all and the end");

const char *const dl_collective_pictures[] = {"all", "steps", "topology", NULL};

struct dl_time_axis dl_time_axis_of(const struct dl_training_result *result)
{
    return (struct dl_time_axis){.left = DL_SHEET_LEFT,
                                 .width = DL_SHEET_WIDTH - DL_SHEET_LEFT - DL_SHEET_RIGHT,
                                 .from_s = result->end_s - result->step_s,
                                 .to_s = result->end_s};
}

double dl_draw_heading(struct dl_svg *svg, double y, const char *text)
{
    dl_svg_text(svg, 16, y + 11, "bold", text);
    return y + 26;
}

double dl_draw_key(struct dl_svg *svg, double right, double y, const char *colour, const char *name)
{
    const double left = right - dl_svg_text_width(name) - 18;
    dl_svg_rect(svg, (struct dl_box){left, y + 1, 12, 12}, (struct dl_look){.fill = colour, .style = "cell"});
    dl_svg_text(svg, left + 16, y + 11, NULL, name);
    return left - 8;
}

double dl_draw_caption(struct dl_svg *svg, double y, const char *text)
{
    enum { most_bytes = 190 };
    char line[most_bytes + 1];
    while (*text) {
        size_t n = strlen(text);
        if (n > most_bytes)
            for (n = most_bytes; n > 1 && text[n - 1] != ' ';) n--;
        snprintf(line, sizeof line, "%.*s", (int)n, text);
        dl_svg_text(svg, DL_SHEET_LEFT, y + 10, "small faint", line);
        text += n;
        y += 14;
    }
    return y + 2;
}

enum dl_status dl_draw_run(const struct dl_run_picture *p, const char *which, const char *path, struct dl_error *err)
{
    const struct dl_asked *const asked = p->report->asked;
    char time[DL_QUANTITY], count[DL_QUANTITY];
    struct dl_svg svg;
    double y = 44;
    dl_svg_begin(&svg, DL_SHEET_WIDTH);
    dl_svg_format(&svg, 16, 26, "title", "%.60s with %.60s on %s device%s of %.60s: a step of %s", asked->workload,
                  asked->strategy, dl_format_count(p->report->job->n_devices, count),
                  p->report->job->n_devices == 1 ? "" : "s", asked->topology,
                  dl_format_seconds(p->report->result.step_s, time));
    for (size_t i = 0; i < DL_COUNT(draw_run); i++)
        if (which == dl_run_pictures[0] || which == dl_run_pictures[i + 1]) y = draw_run[i](&svg, y, p);
    return dl_svg_end(&svg, y, path, err);
}

enum dl_status dl_draw_collective(const struct dl_collective_picture *p, const char *which, const char *path,
                                  struct dl_error *err)
{
    const struct dl_collective *const c = &p->report->choice->collective;
    char time[DL_QUANTITY], bytes[DL_QUANTITY], count[DL_QUANTITY];
    struct dl_svg svg;
    double y = 44;
    dl_svg_begin(&svg, DL_SHEET_WIDTH);
    dl_svg_format(&svg, 16, 26, "title", "%s of %s by %s on %s device%s of %.60s: %s", dl_op_name(c->op),
                  dl_format_bytes(c->bytes, bytes), c->algorithm->name, dl_format_count(c->group->n, count),
                  c->group->n == 1 ? "" : "s", p->report->topology->name,
                  dl_format_seconds(p->report->result.time_s, time));
    if (which == dl_collective_pictures[0] || which == dl_collective_pictures[1]) y = dl_draw_steps(&svg, y, c);
    if (which == dl_collective_pictures[0] || which == dl_collective_pictures[2])
        y = dl_draw_topology(&svg, y, &p->load);
    return dl_svg_end(&svg, y, path, err);
}
