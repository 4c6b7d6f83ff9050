/* timeline_picture.c - the schedule of the pipeline stages: what each stage does over the step, and below it, thin,
 * what it sends and its collectives over replicas. */
#include <math.h>
#include <string.h>

#include "sim/draw/blocks.h"
#include "sim/draw/pictures.h"
#include "sim/report/units.h"

enum { most_stages = 64, thin_tracks = 2 };

static const double least_width = 2;   /* what is narrower is drawn together with its neighbours */
static const double least_crumb = 0.8; /* that can be seen */
static const double least_wait = 3;    /* shorter waits inside of an item are drawn as part of it */

struct plot {
    struct dl_svg *svg;
    const struct dl_run_picture *picture;
    struct dl_time_axis axis;
    double row_height, thin_height, gap;
    double crumbs_width;             /* of what is drawn together */
    bool has_sends, has_collectives; /* in the step that is drawn */
    bool seen[DL_N_BLOCKS];
    uint64_t n_together, n_hidden; /* what is drawn together, and what has no track */
};

/* A block that grows while the next slice is part of it, and a run of blocks that are too narrow to be seen. */
struct block {
    const struct dl_slice *first;
    double from_s, to_s;
};
struct crumbs {
    double from_s, to_s, by_block[DL_N_BLOCKS];
    uint64_t n;
};

struct band {
    double y, height;
};

static const char *colour_of(const struct plot *p, const struct dl_slice *s, char colour[DL_COLOUR])
{
    const char *const own = dl_block_look(dl_block_of(s))->colour;
    const uint32_t chunks = p->picture->report->job->setting.chunks;
    if (s->kind != DL_SLICE_WORK || !s->item || chunks < 2) return own;
    return dl_tint(own, 0.55 * s->item->chunk / (chunks - 1), colour);
}

static void put_block(struct plot *p, const struct block *b, struct band band)
{
    const double x = dl_time_x(&p->axis, b->from_s), width = dl_time_x(&p->axis, b->to_s) - x;
    char name[DL_SLICE_NAME], from[DL_QUANTITY], to[DL_QUANTITY], title[200], colour[DL_COLOUR], micro[16];
    snprintf(title, sizeof title, "%s: %s to %s", dl_slice_name(p->picture->timeline, b->first, name),
             dl_format_seconds(b->from_s - p->axis.from_s, from), dl_format_seconds(b->to_s - p->axis.from_s, to));
    dl_svg_rect(
        p->svg, (struct dl_box){x, band.y, width, band.height},
        (struct dl_look){.fill = colour_of(p, b->first, colour), .style = width > 4 ? "edge" : NULL, .title = title});
    if (b->first->kind != DL_SLICE_WORK || !b->first->item || band.height < 11) return;
    snprintf(micro, sizeof micro, "%u", b->first->item->micro);
    if (dl_svg_text_width(micro) <= width)
        dl_svg_text(p->svg, x + width / 2, band.y + band.height / 2 + 3.5, "middle small", micro);
}

/* As wide as they last together, cut into bands that are as high as each kind has a share of it. */
static void put_crumbs(struct plot *p, struct crumbs *c, struct band band)
{
    const double x = dl_time_x(&p->axis, c->from_s), width = fmax(dl_time_x(&p->axis, c->to_s) - x, least_crumb);
    double y = band.y;
    for (int i = 0; i < DL_N_BLOCKS && c->n > 0; i++) {
        const double height = band.height * c->by_block[i] / (c->to_s - c->from_s);
        if (!(height > 0)) continue;
        dl_svg_area_begin(p->svg,
                          (struct dl_look){.fill = dl_block_look((enum dl_block_kind)i)->colour, .style = "crisp"});
        dl_svg_area_box(p->svg, (struct dl_box){x, y, width, height});
        dl_svg_area_end(p->svg);
        y += height;
    }
    p->n_together += c->n > 1 ? c->n : 0;
    *c = (struct crumbs){0};
}

static void put(struct plot *p, const struct block *b, struct crumbs *c, struct band band)
{
    const double from_s = fmax(b->from_s, p->axis.from_s), to_s = fmin(b->to_s, p->axis.to_s);
    const struct block seen = {b->first, from_s, to_s};
    if (!b->first || to_s <= from_s) return;
    p->seen[dl_block_of(b->first)] = true;
    const bool is_wide = dl_time_x(&p->axis, to_s) - dl_time_x(&p->axis, from_s) >= least_width;
    const bool is_far = c->n && dl_time_x(&p->axis, from_s) - dl_time_x(&p->axis, c->to_s) >= least_width;
    if (is_wide || is_far) put_crumbs(p, c, band);
    if (is_wide) {
        put_block(p, &seen, band);
        return;
    }
    if (!c->n) c->from_s = from_s;
    c->n++;
    c->to_s = to_s;
    c->by_block[dl_block_of(b->first)] += to_s - from_s;
    if (dl_time_x(&p->axis, c->to_s) - dl_time_x(&p->axis, c->from_s) >= p->crumbs_width) put_crumbs(p, c, band);
}

/* Parts of one item, waiting for one cause, or a short wait between two parts of an item. */
static bool goes_on(const struct plot *p, const struct block *b, const struct dl_slice *s)
{
    if (!b->first || s->from_s != b->to_s) return false;
    if (dl_same_block(b->first, s)) return true;
    return b->first->kind == DL_SLICE_WORK && s->kind == DL_SLICE_WAIT && s->item == b->first->item &&
           dl_time_x(&p->axis, s->to_s) - dl_time_x(&p->axis, s->from_s) < least_wait;
}

static void draw_track(struct plot *p, struct dl_row row, uint32_t track, struct band band)
{
    struct block now = {0};
    struct crumbs crumbs = {0};
    for (size_t i = 0; i < row.n; i++) {
        const struct dl_slice *const s = &row.slices[i];
        if (row.track[i] != track) continue;
        if (goes_on(p, &now, s)) {
            now.to_s = s->to_s;
            continue;
        }
        put(p, &now, &crumbs, band);
        now = (struct block){s, s->from_s, s->to_s};
    }
    put(p, &now, &crumbs, band);
    put_crumbs(p, &crumbs, band);
}

static bool is_in(const struct plot *p, const struct dl_slice *s)
{
    return s->to_s > p->axis.from_s && s->from_s < p->axis.to_s;
}

/* As many tracks as there is room for, the first ones. */
static double draw_thin(struct plot *p, uint32_t stage, enum dl_track_group group, double y)
{
    const struct dl_row row = dl_row_of(p->picture->timeline, stage, group);
    const uint32_t first = (uint32_t)group * DL_TIMELINE_TRACKS + 1;
    for (size_t i = 0; i < row.n; i++) p->n_hidden += row.track[i] >= first + thin_tracks && is_in(p, &row.slices[i]);
    for (uint32_t i = 0; i < thin_tracks; i++)
        draw_track(p, row, first + i, (struct band){y + i * p->thin_height, p->thin_height});
    return y + thin_tracks * p->thin_height;
}

static double draw_stage(struct plot *p, uint32_t stage, double y)
{
    const struct dl_row work = dl_row_of(p->picture->timeline, stage, DL_TRACK_WORK);
    dl_svg_format(p->svg, p->axis.left - 8, y + p->row_height / 2 + 4, p->row_height < 14 ? "end small" : "end",
                  "stage %u", stage);
    draw_track(p, work, 1, (struct band){y, p->row_height});
    y += p->row_height;
    if (p->has_sends) y = draw_thin(p, stage, DL_TRACK_SENDS, y);
    if (p->has_collectives) y = draw_thin(p, stage, DL_TRACK_EXCHANGES, y);
    return y + p->gap;
}

static bool has_any(const struct plot *p, enum dl_track_group group)
{
    const struct dl_timeline *const t = p->picture->timeline;
    for (size_t i = 0; i < t->n_slices; i++)
        if (dl_slice_group(&t->slices[i]) == group && is_in(p, &t->slices[i])) return true;
    return false;
}

static void draw_legend(const struct plot *p, double y)
{
    double x = p->axis.left + p->axis.width;
    for (int i = DL_N_BLOCKS; i-- > 0;)
        if (p->seen[i])
            x = dl_draw_key(p->svg, x, y, dl_block_look((enum dl_block_kind)i)->colour,
                            dl_block_look((enum dl_block_kind)i)->name);
}

static double tell_limits(const struct plot *p, double y, uint32_t stride)
{
    const struct dl_timeline *const t = p->picture->timeline;
    const uint32_t replicas = dl_n_replicas(&p->picture->report->job->setting);
    char text[400] = "", count[DL_QUANTITY];
    size_t n = 0;
    if (replicas > 1) n += (size_t)snprintf(text + n, sizeof text - n, "The first of %u replicas. ", replicas);
    if (stride > 1) n += (size_t)snprintf(text + n, sizeof text - n, "One of %u stages. ", stride);
    if (p->n_together)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s blocks that are too narrow are drawn together. ",
                              dl_format_count((double)p->n_together, count));
    if (p->n_hidden)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s sends and collectives beside two others are not drawn. ",
                              dl_format_count((double)p->n_hidden, count));
    if (t->left_out.slices)
        snprintf(text + n, sizeof text - n, "The last %s slices are left out.",
                 dl_format_count((double)t->left_out.slices, count));
    return *text ? dl_draw_caption(p->svg, y, text) : y;
}

static double draw_plot(struct dl_svg *svg, double y, const struct dl_run_picture *picture, const char *heading,
                        struct dl_time_axis axis)
{
    const uint32_t n = dl_n_stages(&picture->report->job->setting), stride = dl_stage_stride(n, most_stages);
    const uint32_t rows = (n + stride - 1) / stride;
    struct plot p = {.svg = svg,
                     .picture = picture,
                     .axis = axis,
                     .row_height = rows <= 8    ? 24
                                   : rows <= 16 ? 18
                                                : 10,
                     .thin_height = rows <= 16 ? 3 : 1.5,
                     .gap = rows <= 16 ? 6 : 3,
                     .crumbs_width = rows <= 16 ? 6 : 12};
    p.has_sends = has_any(&p, DL_TRACK_SENDS);
    p.has_collectives = has_any(&p, DL_TRACK_EXCHANGES);
    const double title_y = y, thin = thin_tracks * p.thin_height * (p.has_sends + p.has_collectives);
    y = dl_draw_heading(svg, y, heading);
    dl_draw_time_axis(svg, &p.axis, y, rows * (p.row_height + thin + p.gap));
    for (uint32_t stage = 0; stage < n; stage += stride) y = draw_stage(&p, stage, y);
    draw_legend(&p, title_y);
    return tell_limits(&p, y + 24, stride) + 12;
}

/* Of a stage in the middle, on average: the first and the last may hold little. */
static double item_width(const struct dl_timeline *t, const struct dl_time_axis *axis)
{
    const uint32_t stage = dl_timeline_stages(t) / 2;
    const struct dl_row row = dl_row_of(t, stage, DL_TRACK_WORK);
    double work_s = 0;
    for (size_t i = 0; i < row.n; i++) {
        const struct dl_slice *const s = &row.slices[i];
        if (s->kind == DL_SLICE_WORK && s->item && s->from_s >= axis->from_s) work_s += s->to_s - s->from_s;
    }
    return axis->width * work_s / (axis->to_s - axis->from_s) / t->request.step.programs[stage].n_sequence;
}

/* Items that are too narrow for their number are drawn again, the first of them, as wide as it needs. */
double dl_draw_timeline(struct dl_svg *svg, double y, const struct dl_run_picture *picture)
{
    const bool is_pipeline = dl_n_stages(&picture->report->job->setting) > 1;
    const double readable = 24;
    struct dl_time_axis axis = dl_time_axis_of(&picture->report->result);
    const double width = item_width(picture->timeline, &axis);
    y = draw_plot(svg, y, picture, is_pipeline ? "Schedule of the stages" : "Timeline of the step", axis);
    if (!(width > 0) || width >= readable / 3) return y;
    axis.to_s = axis.from_s + (axis.to_s - axis.from_s) * width / readable;
    return draw_plot(svg, y, picture, "The beginning of it, enlarged", axis);
}
