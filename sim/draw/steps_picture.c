/* steps_picture.c - who sends to whom in which step of a collective: a circle of ranks for every step that differs from
 * the one before it. */
#include <math.h>

#include "sim/draw/pictures.h"
#include "sim/report/units.h"

enum { most_panels = 20, panels_across = 5, panel_width = 218, panel_height = 252, most_lanes = 4, most_ranks = 16 };

static const double radius = 78;

static const char *const lane_colours[most_lanes] = {DL_BLUE, DL_VERMILION, DL_GREEN, DL_PURPLE};

struct plot {
    struct dl_svg *svg;
    const struct dl_collective *c;
    uint32_t n_ranks, n_lanes; /* that are drawn: the first ones */
    uint32_t n_panels, n_left_out;
    double n_steps;
    uint64_t n_arrows;
};

struct spot {
    double x, y;
};

static struct spot spot_of(const struct plot *p, struct spot middle, uint32_t rank)
{
    const double angle = 2 * acos(-1) * rank / p->n_ranks - acos(-1) / 2;
    return (struct spot){middle.x + radius * cos(angle), middle.y + radius * sin(angle)};
}

/* Panels stand in rows, below y. */
static struct spot middle_of(uint32_t panel, double y)
{
    return (struct spot){DL_SHEET_LEFT / 2.0 + (panel % panels_across + 0.5) * panel_width,
                         y + (double)(panel / panels_across) * panel_height + panel_height / 2.0 + 18};
}

/* To a rank that is not drawn: a short arrow out of the circle. */
static void draw_arrow(struct plot *p, struct spot middle, uint32_t from, uint32_t to, const char *colour)
{
    const double dot = 9, out = 1.3;
    const bool stays = to < p->n_ranks;
    const struct spot a = spot_of(p, middle, from);
    const struct spot far = {middle.x + out * (a.x - middle.x), middle.y + out * (a.y - middle.y)};
    const struct spot b = stays ? spot_of(p, middle, to) : far;
    const double length = hypot(b.x - a.x, b.y - a.y);
    if (!(length > 0)) return;
    const double ux = (b.x - a.x) / length, uy = (b.y - a.y) / length, room = fmin(dot, length / 3);
    const double end = stays ? room : 0;
    char title[60];
    snprintf(title, sizeof title, "rank %u to rank %u", from, to);
    dl_svg_arrow(p->svg,
                 &(struct dl_drawn_line){a.x + room * ux, a.y + room * uy, b.x - end * ux, b.y - end * uy, .width = 1.2,
                                         .colour = colour, .title = title},
                 stays ? 0.12 : 0);
    p->n_arrows++;
}

static bool has_arrows(const struct plot *p, uint32_t k)
{
    for (uint32_t lane = 0; lane < p->n_lanes; lane++)
        for (uint32_t rank = 0; rank < p->n_ranks; rank++)
            if (p->c->algorithm->peer(p->c, lane, k, rank) != DL_NOBODY) return true;
    return false;
}

static void draw_round(struct plot *p, struct spot middle, uint32_t lane, uint32_t k)
{
    for (uint32_t rank = 0; rank < p->n_ranks; rank++) {
        const uint32_t peer = p->c->algorithm->peer(p->c, lane, k, rank);
        if (peer != DL_NOBODY) draw_arrow(p, middle, rank, peer, lane_colours[lane]);
    }
}

/* Dots of one node have one colour, those of the next another. */
static void draw_ranks(const struct plot *p, struct spot middle)
{
    for (uint32_t rank = 0; rank < p->n_ranks; rank++) {
        const struct spot at = spot_of(p, middle, rank);
        const bool is_server = rank >= p->c->group->n;
        const char *const fill = is_server ? DL_YELLOW : p->c->group->node[rank] % 2 ? "#d8d8d8" : "#fff";
        dl_svg_circle(p->svg, at.x, at.y, 8, (struct dl_look){.fill = fill, .style = "box"});
        dl_svg_format(p->svg, at.x, at.y + 3.5, "middle small", "%u", rank);
    }
}

static void label(struct plot *p, struct spot middle, const struct dl_round *r)
{
    const double first = p->n_steps + 1, last = p->n_steps + r->repeat, y = middle.y - radius - 42;
    const double bytes = dl_collective_block_bytes(p->c, 0) * r->blocks;
    char text[DL_QUANTITY];
    if (last > first)
        dl_svg_format(p->svg, middle.x, y, "middle bold", "steps %.0f to %.0f", first, last);
    else
        dl_svg_format(p->svg, middle.x, y, "middle bold", "step %.0f", first);
    if (p->c->bytes > 0)
        dl_svg_format(p->svg, middle.x, y + 14, "middle small faint", "%s a message%s", dl_format_bytes(bytes, text),
                      r->reduce ? ", added" : "");
}

static void draw_panel(struct plot *p, uint32_t k, const struct dl_round *r, double y)
{
    const struct spot middle = middle_of(p->n_panels, y);
    struct dl_round other;
    label(p, middle, r);
    for (uint32_t lane = 0; lane < p->n_lanes; lane++)
        if (p->c->algorithm->round(p->c, lane, k, &other)) draw_round(p, middle, lane, k);
    draw_ranks(p, middle);
}

/* A round at the same time as the one before it is drawn into the same panel. */
static void draw_panels(struct plot *p, double y)
{
    struct dl_round r;
    for (uint32_t k = 0; p->c->algorithm->round(p->c, 0, k, &r); k++) {
        if (r.together && p->n_panels) {
            if (!p->n_left_out) draw_round(p, middle_of(p->n_panels - 1, y), 0, k);
            continue;
        }
        if (p->n_panels == most_panels || !has_arrows(p, k)) {
            p->n_left_out++;
        } else {
            draw_panel(p, k, &r, y);
            p->n_panels++;
        }
        p->n_steps += r.repeat;
    }
}

static double tell(const struct plot *p, double y)
{
    const uint32_t lanes = dl_collective_lanes(p->c);
    char text[400];
    size_t n = (size_t)snprintf(text, sizeof text, "%.0f step%s. White and grey: ranks of one node and of the next.",
                                p->n_steps, p->n_steps == 1 ? "" : "s");
    if (lanes > 1)
        n += (size_t)snprintf(text + n, sizeof text - n, " %u lanes split the bytes and run side by side%s.", lanes,
                              lanes > most_lanes ? "; the first four are drawn, one colour each" : ", one colour each");
    if (p->c->chunks > 1)
        n += (size_t)snprintf(text + n, sizeof text - n, " %u pieces follow each other.", p->c->chunks);
    if (p->n_left_out) n += (size_t)snprintf(text + n, sizeof text - n, " %u steps are left out.", p->n_left_out);
    if (dl_collective_ranks(p->c) > p->n_ranks)
        snprintf(text + n, sizeof text - n, " The first %u of %u ranks; arrows to others lead out of the circle.",
                 p->n_ranks, dl_collective_ranks(p->c));
    return dl_draw_caption(
        p->svg, y, p->n_arrows ? text : "Switches add up what ranks send: there are no messages between ranks.");
}

double dl_draw_steps(struct dl_svg *svg, double y, const struct dl_collective *c)
{
    const uint32_t lanes = dl_collective_lanes(c), ranks = dl_collective_ranks(c);
    struct plot p = {.svg = svg,
                     .c = c,
                     .n_ranks = ranks < most_ranks ? ranks : most_ranks,
                     .n_lanes = lanes < most_lanes ? lanes : most_lanes};
    y = dl_draw_heading(svg, y, "Who sends to whom");
    draw_panels(&p, y);
    const uint32_t rows = (p.n_panels + panels_across - 1) / panels_across;
    return tell(&p, y + rows * panel_height + 4) + 12;
}
