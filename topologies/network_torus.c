/* network_torus.c - tori and meshes of any dimensions, with dimension-order routing the shorter way round.
 *
 * A switch has coordinates (x0, x1, ...), x0 varying fastest with its number, and a link to each neighbour. Of two ways
 * round that are equally long each carries half. With one endpoint per switch the endpoint is the switch itself; with
 * more, each has a link of the same kind to and from its switch. A twist t (Camara et al., Twisted torus topologies,
 * IEEE TPDS 21, 2010) joins the ends of dimension 0 with a shift: one step from (d0 - 1, x1) leads to (0, x1 + t). */
#include "topologies/network_parts.h"

#include <stdio.h>
#include <string.h>

#include "topologies/topology.h"

enum { max_dimensions = DL_MAX_DIMENSIONS, max_size = 1 << 14, no_link = -1 };

struct options {
    struct dl_cable cable;
    struct dl_int_list dimensions;
    struct dl_json wrap, slices;
    int64_t twist, endpoints_per_switch;
};
static const struct options defaults = {.endpoints_per_switch = 1};
static const struct dl_field fields[] = {
    DL_CABLE_FIELDS(struct options, cable),
    {"dimensions", DL_INT_LIST, offsetof(struct options, dimensions), 1, max_size, false, NULL,
     "switches along each dimension"},
    {"wrap", DL_LIST, offsetof(struct options, wrap), 0, 0, true, NULL,
     "for each dimension, true: a ring, false: a line; all true if absent"},
    {"twist", DL_INT, offsetof(struct options, twist), 0, max_size, true, NULL,
     "going once around dimension 0 shifts dimension 1 by this; 0 if absent"},
    {"slices", DL_LIST, offsetof(struct options, slices), 0, 0, true, NULL,
     "parts of the torus that jobs get; the whole torus if absent"},
    {"endpoints_per_switch", DL_INT, offsetof(struct options, endpoints_per_switch), 1, max_size, true, NULL,
     "endpoints on each switch; 1 if absent"},
};

/* A direction is 2 * dimension, + 1 for downwards. */
struct torus {
    size_t n_dimensions;
    int64_t size[max_dimensions], twist, endpoints_per_switch;
    int64_t sizes_with_endpoints[max_dimensions + 1];
    bool wrap[max_dimensions];
    uint32_t n_switches, first_link; /* before it: two links for each endpoint, if it has its own */
    int32_t *link;                   /* [switch * n_directions + direction]; no_link beyond the end of a line */
    uint32_t *origin;                /* link - first_link -> switch * n_directions + direction */
};

struct point {
    int64_t x[max_dimensions];
};

static size_t n_directions(const struct torus *t) { return 2 * t->n_dimensions; }

static struct point point_of(const struct torus *t, uint32_t index)
{
    struct point p = {{0}};
    for (size_t d = 0; d < t->n_dimensions; d++) {
        p.x[d] = index % t->size[d];
        index /= (uint32_t)t->size[d];
    }
    return p;
}

static uint32_t index_of(const struct torus *t, const struct point *p)
{
    int64_t index = 0;
    for (size_t d = t->n_dimensions; d-- > 0;) index = index * t->size[d] + p->x[d];
    return (uint32_t)index;
}

static int64_t modulo(int64_t a, int64_t n) { return (a % n + n) % n; }

static bool crosses_end(const struct torus *t, const struct point *p, size_t direction)
{
    const size_t d = direction / 2;
    return p->x[d] == (direction % 2 ? 0 : t->size[d] - 1);
}

static bool has_link(const struct torus *t, const struct point *p, size_t direction)
{
    const size_t d = direction / 2;
    return t->size[d] > 1 && (t->wrap[d] || !crosses_end(t, p, direction));
}

static void step(const struct torus *t, struct point *p, size_t direction)
{
    const size_t d = direction / 2;
    const int64_t sign = direction % 2 ? -1 : 1;
    const bool twisted = d == 0 && t->twist && crosses_end(t, p, direction);
    if (twisted) p->x[1] = modulo(p->x[1] + sign * t->twist, t->size[1]);
    p->x[d] = modulo(p->x[d] + sign, t->size[d]);
}

/* The shape that the file says, or that of the slice which the job gets. */
static enum dl_status read_shape(struct dl_network *net, const struct options *o, struct dl_pod_slice *shape,
                                 struct dl_arena *arena, struct dl_error *err)
{
    *shape = (struct dl_pod_slice){.n_dimensions = o->dimensions.n, .n_devices = net->topology->n_whole_devices};
    for (size_t d = 0; d < shape->n_dimensions; d++) {
        shape->size[d] = o->dimensions.items[d];
        shape->wrap[d] = true;
    }
    if (o->wrap.value && dl_wrap_read(o->wrap, shape->n_dimensions, shape->wrap, arena, err)) return err->status;
    if (!o->slices.value) return DL_OK;
    if (o->endpoints_per_switch > 1 || net->topology->node.n_nics || o->twist)
        return dl_fail(err, DL_IMPOSSIBLE, o->slices.where,
                       "slices are for devices that are the torus themselves, without NICs, twist or other switches");
    if (dl_slices_read(o->slices, shape, net->endpoints_per_node, arena, &net->slices, err)) return err->status;
    if (net->slice) *shape = *net->slice;
    net->shape = *shape;
    return DL_OK;
}

static enum dl_status check_twist(const struct dl_network *net, const struct torus *t, struct dl_error *err)
{
    if (!t->twist) return DL_OK;
    if (t->n_dimensions < 2 || t->size[0] < 2 || !t->wrap[0] || !t->wrap[1])
        return dl_fail(err, DL_IMPOSSIBLE, net->where.where, "'twist' needs two dimensions of at least 2 that wrap");
    if (t->twist >= t->size[1])
        return dl_fail(err, DL_RANGE, net->where.where, "'twist' must be less than dimension 1, %lld, got %lld",
                       (long long)t->size[1], (long long)t->twist);
    return DL_OK;
}

static enum dl_status check_size(const struct dl_network *net, struct torus *t, struct dl_error *err)
{
    double n_switches = 1;
    for (size_t d = 0; d < t->n_dimensions; d++) n_switches *= (double)t->size[d];
    const double n_places = n_switches * (double)t->endpoints_per_switch;
    if (dl_network_check_places(net, n_places, net->n_endpoints, "'dimensions'", err) ||
        dl_network_check_links(net, n_switches * (double)n_directions(t) + 2.0 * net->n_endpoints, err))
        return err->status;
    t->n_switches = (uint32_t)n_switches;
    return DL_OK;
}

static void add_links(struct dl_network *net, struct torus *t, const struct dl_cable *cable, struct dl_arena *arena)
{
    const struct dl_link_spec spec = {cable->bandwidth_bytes_per_s, cable->latency_s, cable->link_kind};
    if (t->endpoints_per_switch > 1) dl_network_add_links(net, &spec, 2 * (size_t)net->n_endpoints);
    t->first_link = net->n_links;
    const size_t n = n_directions(t);
    t->link = dl_arena_alloc(arena, t->n_switches * n * sizeof *t->link);
    t->origin = dl_arena_alloc(arena, t->n_switches * n * sizeof *t->origin);
    for (uint32_t s = 0; s < t->n_switches; s++) {
        const struct point p = point_of(t, s);
        for (size_t direction = 0; direction < n; direction++) {
            const size_t slot = s * n + direction;
            t->link[slot] = no_link;
            if (!has_link(t, &p, direction)) continue;
            const uint32_t link = dl_network_add_link(net, &spec);
            t->link[slot] = (int32_t)link;
            t->origin[link - t->first_link] = (uint32_t)slot;
        }
    }
}

static enum dl_status build(struct dl_network *net, const void *options, struct dl_arena *arena, struct dl_error *err)
{
    const struct options *const o = options;
    const size_t n = o->dimensions.n;
    if (n < 1 || n > max_dimensions)
        return dl_fail(err, DL_RANGE, net->where.where, "'dimensions' must have 1 to %d items, got %zu", max_dimensions,
                       n);
    struct torus *const t = dl_arena_alloc(arena, sizeof *t);
    *t = (struct torus){.n_dimensions = n, .twist = o->twist, .endpoints_per_switch = o->endpoints_per_switch};
    struct dl_pod_slice shape;
    if (read_shape(net, o, &shape, arena, err)) return err->status;
    memcpy(t->size, shape.size, sizeof t->size);
    memcpy(t->wrap, shape.wrap, sizeof t->wrap);
    t->sizes_with_endpoints[0] = o->endpoints_per_switch;
    memcpy(t->sizes_with_endpoints + 1, t->size, n * sizeof *t->size);
    net->state = t;
    if (check_twist(net, t, err) || check_size(net, t, err)) return err->status;
    add_links(net, t, &o->cable, arena);
    return DL_OK;
}

/* Ways that carry a part may meet others. */
static void walk(const struct dl_network *net, struct dl_route *out, struct point *p, size_t d, int64_t steps,
                 double weight)
{
    const struct torus *const t = net->state;
    const size_t direction = 2 * d + (steps < 0);
    for (int64_t i = steps < 0 ? -steps : steps; i > 0; i--) {
        const uint32_t link = (uint32_t)t->link[index_of(t, p) * n_directions(t) + direction];
        if (weight < 1)
            dl_network_share(net, out, link, weight);
        else
            dl_network_hop(net, out, link, weight);
        step(t, p, direction);
    }
}

/* The shortest ways along one dimension: one, or two of half the way round. */
static size_t shortest(const struct torus *t, size_t d, int64_t from, int64_t to, int64_t steps[2])
{
    steps[0] = to - from;
    if (!t->wrap[d]) return 1;
    const int64_t up = modulo(to - from, t->size[d]), down = t->size[d] - up;
    steps[0] = up <= down ? up : -down;
    steps[1] = -down;
    return up == down ? 2 : 1;
}

static void go_along(const struct dl_network *net, struct dl_route *out, struct point *p, size_t d, int64_t to)
{
    const struct torus *const t = net->state;
    const struct point start = *p;
    int64_t steps[2];
    const size_t n = shortest(t, d, start.x[d], to, steps);
    for (size_t i = 0; i < n; i++) {
        *p = start;
        walk(net, out, p, d, steps[i], 1.0 / (double)n);
    }
}

/* With a twist the ways along dimensions 0 and 1 depend on each other: going m more times round dimension 0 moves
 * dimension 1 by m twists. */
struct leg {
    int64_t steps0, steps1;
};
enum { max_legs = 32 };

static int64_t magnitude(int64_t a) { return a < 0 ? -a : a; }

/* The shortest legs with m crossings of the end of dimension 0 join those found so far, or replace longer ones. */
static void add_legs(const struct torus *t, const struct point *from, const struct point *to, int64_t m,
                     struct leg *legs, size_t *n_legs)
{
    int64_t steps[2];
    const int64_t steps0 = to->x[0] - from->x[0] + m * t->size[0];
    const int64_t arrival = modulo(from->x[1] + m * t->twist, t->size[1]);
    const size_t n = shortest(t, 1, arrival, to->x[1], steps);
    const int64_t length = magnitude(steps0) + magnitude(steps[0]);
    const int64_t best = *n_legs ? magnitude(legs[0].steps0) + magnitude(legs[0].steps1) : INT64_MAX;
    if (length > best) return;
    if (length < best) *n_legs = 0;
    for (size_t i = 0; i < n && *n_legs < max_legs; i++) legs[(*n_legs)++] = (struct leg){steps0, steps[i]};
}

static void go_twisted(const struct dl_network *net, struct dl_route *out, struct point *p, const struct point *to)
{
    const struct torus *const t = net->state;
    const struct point start = *p;
    struct leg legs[max_legs];
    size_t n = 0;
    add_legs(t, &start, to, 0, legs, &n);
    for (int64_t m = 1; (m - 1) * t->size[0] <= magnitude(legs[0].steps0) + magnitude(legs[0].steps1); m++) {
        add_legs(t, &start, to, m, legs, &n);
        add_legs(t, &start, to, -m, legs, &n);
    }
    for (size_t i = 0; i < n; i++) {
        *p = start;
        walk(net, out, p, 0, legs[i].steps0, 1.0 / (double)n);
        walk(net, out, p, 1, legs[i].steps1, 1.0 / (double)n);
    }
}

static enum dl_status route(const struct dl_network *net, uint32_t from, uint32_t to, uint64_t key,
                            const struct dl_load *load, struct dl_route *out, struct dl_error *err)
{
    (void)key, (void)load, (void)err;
    const struct torus *const t = net->state;
    const uint32_t per_switch = (uint32_t)t->endpoints_per_switch;
    struct point p = point_of(t, from / per_switch);
    const struct point target = point_of(t, to / per_switch);
    if (per_switch > 1) dl_network_hop(net, out, 2 * from, 1);
    if (t->twist) go_twisted(net, out, &p, &target);
    for (size_t d = t->twist ? 2 : 0; d < t->n_dimensions; d++) go_along(net, out, &p, d, target.x[d]);
    if (per_switch > 1) dl_network_hop(net, out, 2 * to + 1, 1);
    return DL_OK;
}

static void name_point(const struct torus *t, const struct point *p, char *name, size_t bytes)
{
    size_t used = 0;
    for (size_t d = 0; d < t->n_dimensions && used < bytes; d++)
        used += (size_t)snprintf(name + used, bytes - used, "%s%lld", d ? "," : "(", (long long)p->x[d]);
    if (used < bytes) snprintf(name + used, bytes - used, ")");
}

/* Rings of two have two cables between the same switches: the one over the end says so. */
static void name_link(const struct dl_network *net, uint32_t link, char *name, size_t bytes)
{
    const struct torus *const t = net->state;
    char low[DL_MAX_NAME_BYTES * 2], high[DL_MAX_NAME_BYTES * 2];
    if (link < t->first_link) {
        const struct point at = point_of(t, link / 2 / (uint32_t)t->endpoints_per_switch);
        dl_network_endpoint_name(net, link / 2, low, sizeof low);
        name_point(t, &at, high, sizeof high);
        dl_network_cable_name(link % 2 ? high : low, link % 2 ? low : high, 0, 1, name, bytes);
        return;
    }
    const uint32_t slot = t->origin[link - t->first_link];
    const size_t direction = slot % n_directions(t);
    struct point p = point_of(t, slot / (uint32_t)n_directions(t));
    const bool over_end = crosses_end(t, &p, direction);
    name_point(t, &p, low, sizeof low);
    step(t, &p, direction);
    name_point(t, &p, high, sizeof high);
    snprintf(name, bytes, "%s -> %s%s", low, high, over_end ? " over the end" : "");
}

/* Vertices: the switches; those with several endpoints come after these. */
static struct dl_link_ends ends(const struct dl_network *net, uint32_t link)
{
    const struct torus *const t = net->state;
    const uint32_t first_switch = t->endpoints_per_switch > 1 ? net->n_endpoints : 0;
    if (link < t->first_link) {
        const uint32_t endpoint = link / 2, at = first_switch + endpoint / (uint32_t)t->endpoints_per_switch;
        return link % 2 ? (struct dl_link_ends){at, endpoint} : (struct dl_link_ends){endpoint, at};
    }
    const uint32_t slot = t->origin[link - t->first_link], from = slot / (uint32_t)n_directions(t);
    struct point p = point_of(t, from);
    step(t, &p, slot % n_directions(t));
    return (struct dl_link_ends){first_switch + from, first_switch + index_of(t, &p)};
}

/* Where switches have several endpoints, these are the first dimension. */
static size_t dimensions(const struct dl_network *net, const int64_t **sizes)
{
    const struct torus *const t = net->state;
    *sizes = t->endpoints_per_switch > 1 ? t->sizes_with_endpoints : t->size;
    return t->n_dimensions + (t->endpoints_per_switch > 1);
}

const struct dl_network_kind dl_network_torus = {
    .name = "torus",
    .doc = "a torus or mesh of any dimensions, dimension-order routing",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .build = build,
    .route = route,
    .name_link = name_link,
    .ends = ends,
    .endpoints_forward = true,
    .dimensions = dimensions,
};
