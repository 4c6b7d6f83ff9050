/* memory_picture.c - bytes on a device of each stage over the step, by what they hold. */
#include <math.h>

#include "sim/draw/blocks.h"
#include "sim/draw/pictures.h"
#include "sim/report/memory_curve.h"
#include "sim/report/units.h"

enum { most_stages = 8, plot_height = 72, row_gap = 14 };

static const double least_width = 2; /* spans that are narrower are drawn as the fullest of their neighbours */

/* From the bottom up: first what stays. */
static const struct layer {
    const char *name, *colour;
} layers[] = {{"parameters", DL_BLUE},
              {"optimizer", DL_PURPLE},
              {"gradients", DL_GREEN},
              {"activations", DL_ORANGE},
              {"buffers and workspace", DL_YELLOW}};
enum { n_layers = sizeof layers / sizeof *layers };

struct plot {
    struct dl_svg *svg;
    struct dl_time_axis axis;
    double most_bytes, capacity_bytes;
};

static double up_to(const struct dl_memory_use *u, int layer)
{
    const double parts[n_layers] = {u->parameters, u->optimizer, u->gradients, u->activations,
                                    u->buffers + u->workspace};
    double sum = 0;
    for (int i = 0; i <= layer; i++) sum += parts[i];
    return sum;
}

static double y_of(const struct plot *p, double y, double bytes)
{
    return y + plot_height * (1 - bytes / p->most_bytes);
}

/* To the eye. */
static bool are_alike(const struct plot *p, const struct dl_memory_use *a, const struct dl_memory_use *b)
{
    const double least_bytes = 0.2 / plot_height * p->most_bytes;
    for (int i = 0; i < n_layers; i++)
        if (fabs(up_to(a, i) - up_to(b, i)) > least_bytes) return false;
    return true;
}

/* Spans that can be seen, each the fullest of those within it. */
static size_t thin_out(const struct plot *p, const struct dl_memory_curve *c, struct dl_memory_span *out)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct dl_memory_span *const s = &c->spans[i];
        struct dl_memory_span *const last = n ? &out[n - 1] : NULL;
        if (last && (dl_time_x(&p->axis, last->to_s) - dl_time_x(&p->axis, last->from_s) < least_width ||
                     are_alike(p, &last->use, &s->use))) {
            last->to_s = s->to_s;
            if (s->use.peak > last->use.peak) last->use = s->use;
        } else {
            out[n++] = *s;
        }
    }
    return n;
}

/* Each layer covers what is below it; the one on top is drawn first. */
static void draw_layers(const struct plot *p, const struct dl_memory_span *spans, size_t n, double y)
{
    for (int layer = n_layers; layer-- > 0;) {
        dl_svg_area_begin(p->svg, (struct dl_look){.fill = layers[layer].colour});
        dl_svg_area_point(p->svg, p->axis.left, y + plot_height);
        for (size_t i = 0; i < n; i++) {
            const double level = y_of(p, y, up_to(&spans[i].use, layer));
            dl_svg_area_point(p->svg, dl_time_x(&p->axis, spans[i].from_s), level);
            dl_svg_area_point(p->svg, dl_time_x(&p->axis, spans[i].to_s), level);
        }
        dl_svg_area_point(p->svg, p->axis.left + p->axis.width, y + plot_height);
        dl_svg_area_end(p->svg);
    }
}

static void draw_stage(const struct plot *p, uint32_t stage, const struct dl_memory_curve *c, double peak_bytes,
                       double y)
{
    struct dl_memory_span *const spans = dl_alloc(c->n * sizeof *spans);
    char text[DL_QUANTITY];
    draw_layers(p, spans, thin_out(p, c, spans), y);
    dl_svg_format(p->svg, p->axis.left - 8, y + plot_height / 2.0, "end", "stage %u", stage);
    dl_svg_text(p->svg, p->axis.left - 8, y + plot_height / 2.0 + 14, "end small faint",
                dl_format_bytes(peak_bytes, text));
    if (p->capacity_bytes <= p->most_bytes) {
        const double line_y = y_of(p, y, p->capacity_bytes);
        dl_svg_line(p->svg, &(struct dl_drawn_line){p->axis.left, line_y, p->axis.left + p->axis.width, line_y, 1.2,
                                                    .colour = DL_VERMILION, .title = "memory of a device"});
    }
    dl_free(spans);
}

double dl_draw_memory(struct dl_svg *svg, double y, const struct dl_run_picture *picture)
{
    const struct dl_run_report *const r = picture->report;
    const double peak_bytes = r->memory[dl_run_fullest_stage(r)].peak, too_far = 1.7;
    if (peak_bytes == 0)
        return dl_draw_caption(svg, dl_draw_heading(svg, y, "Memory of a device over the step"),
                               "Not known: the program allocates nothing.") +
               12;
    const uint32_t n = dl_n_stages(&r->job->setting), stride = dl_stage_stride(n, most_stages);
    struct plot p = {.svg = svg, .axis = dl_time_axis_of(&r->result), .capacity_bytes = r->device->memory_bytes};
    struct dl_memory_curve *const curves = dl_memory_curves(picture->timeline, p.axis.from_s, p.axis.to_s);
    char a[DL_QUANTITY], b[DL_QUANTITY], text[300];
    p.most_bytes = 1.04 * (p.capacity_bytes < too_far * peak_bytes ? fmax(peak_bytes, p.capacity_bytes) : peak_bytes);
    double x = p.axis.left + p.axis.width;
    for (int i = n_layers; i-- > 0;) x = dl_draw_key(svg, x, y, layers[i].colour, layers[i].name);
    const double top = y = dl_draw_heading(svg, y, "Memory of a device over the step");
    for (uint32_t stage = 0; stage < n; stage += stride, y += plot_height + row_gap)
        draw_stage(&p, stage, &curves[stage], r->memory[stage].peak, y);
    dl_draw_time_axis(svg, &p.axis, top, y - row_gap - top);
    snprintf(text, sizeof text,
             "Each item at its fullest moment. Below the name of a stage: its peak. The fullest has %s; %s%s.%s",
             dl_format_bytes(peak_bytes, a),
             p.capacity_bytes <= p.most_bytes ? "the line is at the memory of a device, " : "a device has ",
             dl_format_bytes(p.capacity_bytes, b), stride > 1 ? " Not all stages are drawn." : "");
    dl_memory_curves_free(curves, n);
    return dl_draw_caption(svg, y + 14, text) + 12;
}
