/* causes_picture.c - where the time of the step goes: on average, and by stage. */
#include <math.h>

#include "sim/draw/blocks.h"
#include "sim/draw/pictures.h"
#include "sim/report/units.h"

enum { most_stages = 32, bar_height = 16, row_height = 20 };

static const char *const colours[DL_N_CAUSES] = {
    [DL_CAUSE_COMPUTE] = DL_BLUE,     [DL_CAUSE_RECOMPUTE] = DL_SKY,   [DL_CAUSE_OPTIMIZER] = DL_PURPLE,
    [DL_CAUSE_TENSOR] = DL_VERMILION, [DL_CAUSE_SEQUENCE] = "#a6611a", [DL_CAUSE_CONTEXT] = "#f7b6d2",
    [DL_CAUSE_EXPERT] = "#8c6bb1",    [DL_CAUSE_PIPELINE] = DL_YELLOW, [DL_CAUSE_DATA] = DL_ORANGE,
    [DL_CAUSE_OFFLOAD] = "#7f7f7f",   [DL_CAUSE_HOST] = "#333333",     [DL_CAUSE_INTERFERENCE] = DL_GREEN,
    [DL_CAUSE_STRAGGLER] = "#b2182b", [DL_CAUSE_BUBBLE] = "#d9d9d9",   [DL_CAUSE_INPUT] = "#666633",
};

static bool is_seen(const struct dl_run_report *r, int cause)
{
    const double rounding = 1e-12;
    return r->result.exposed_s[cause] > rounding * r->result.step_s;
}

static double draw_mean(struct dl_svg *svg, double y, const struct dl_run_report *r)
{
    const double full = DL_SHEET_WIDTH - DL_SHEET_LEFT - DL_SHEET_RIGHT - 120;
    char time[DL_QUANTITY];
    for (int cause = 0; cause < DL_N_CAUSES; cause++) {
        const double share = r->result.exposed_s[cause] / r->result.step_s;
        if (!is_seen(r, cause)) continue;
        dl_svg_text(svg, DL_SHEET_LEFT - 8, y + 12, "end", dl_cause_name((enum dl_cause)cause));
        dl_svg_rect(svg, (struct dl_box){DL_SHEET_LEFT, y, fmax(share * full, 0.5), bar_height},
                    (struct dl_look){.fill = colours[cause]});
        dl_svg_format(svg, DL_SHEET_LEFT + share * full + 6, y + 12, NULL, "%s, %.1f %%",
                      dl_format_seconds(r->result.exposed_s[cause], time), 100 * share);
        y += row_height;
    }
    return y;
}

static void draw_stage(struct dl_svg *svg, double y, const struct dl_run_report *r, uint32_t stage)
{
    const double full = DL_SHEET_WIDTH - DL_SHEET_LEFT - DL_SHEET_RIGHT;
    double x = DL_SHEET_LEFT;
    char title[100], time[DL_QUANTITY];
    dl_svg_format(svg, DL_SHEET_LEFT - 8, y + 10, "end small", "stage %u", stage);
    for (int cause = 0; cause < DL_N_CAUSES; cause++) {
        const double seconds = r->stages[stage].exposed_s[cause], width = full * seconds / r->result.step_s;
        if (!(seconds > 0)) continue;
        snprintf(title, sizeof title, "%s: %s, %.1f %%", dl_cause_name((enum dl_cause)cause),
                 dl_format_seconds(seconds, time), 100 * seconds / r->result.step_s);
        dl_svg_rect(svg, (struct dl_box){x, y, width, bar_height - 3},
                    (struct dl_look){.fill = colours[cause], .title = title});
        x += width;
    }
}

double dl_draw_causes(struct dl_svg *svg, double y, const struct dl_run_picture *picture)
{
    const struct dl_run_report *const r = picture->report;
    const uint32_t n = dl_n_stages(&r->job->setting), stride = dl_stage_stride(n, most_stages);
    y = draw_mean(svg, dl_draw_heading(svg, y, "Where the time goes"), r) + 8;
    if (n > 1)
        for (uint32_t stage = 0; stage < n; stage += stride, y += bar_height) draw_stage(svg, y, r, stage);
    return dl_draw_caption(svg, y + 10,
                           n > 1 ? "Above: the mean over the stages. Below: each stage, in the same colours; the whole "
                                   "width is the step."
                                 : "Every instant of the step has one cause.") +
           12;
}
