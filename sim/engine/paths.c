#include "sim/engine/paths.h"

#include <math.h>

#include "sim/core/memory.h"

enum { nothing = 0xffffffffu };

struct path {
    const struct dl_hop *hops;
    size_t n_hops;
    double cap, alone;     /* alone: its rate if nobody else were there */
    double narrow_cap;     /* its cap on the hops that are left */
    uint32_t first_narrow; /* of these, among those of all paths */
    uint32_t n_narrow, narrow_room;
    double rate;             /* of its flow, as it was told */
    uint32_t flow;           /* in the sharing; nothing: there is none */
    uint32_t marked;         /* by the link of this number + 1 */
    uint32_t first_crossing; /* of its hops, which follow one another */
    uint32_t other;          /* path over the same way with another cap, + 1; 0: none */
};

/* A way on a link. */
struct crossing {
    uint32_t path, next;
};

/* A link that ways cross. */
struct crossed {
    double wanted;        /* by all of its ways together, if each were alone */
    uint32_t link, first; /* crossing */
    uint32_t n_paths;     /* ways that cross it */
    uint32_t number;      /* in the sharing; nothing: it has none */
    uint32_t covered_by;  /* link + 1, that holds up all of its ways at least as much; 0: none was found */
    bool is_narrow;       /* it is left */
};

struct dl_paths {
    const struct dl_engine_link *links;
    size_t n_links;
    struct path *paths;
    size_t n_paths, paths_capacity;
    struct crossing *crossings;
    size_t n_crossings, crossings_capacity;
    struct crossed *crossed;
    size_t n_crossed, crossed_capacity;
    uint32_t *crossed_of;                /* by link, + 1; 0: no way crosses it */
    size_t n_asked;                      /* how often one was looked for since all were looked at */
    size_t n_narrowed;                   /* paths that were there then */
    struct dl_engine_link *narrow_links; /* those that are left, one after the other */
    uint32_t n_narrow_links;
    struct dl_hop *narrow; /* the hops that are left of all paths, path by path */
    size_t n_narrow, narrow_capacity;
    struct dl_sharing *sharing; /* of these */
    uint32_t *path_of_flow;
    size_t n_path_of_flow, path_of_flow_capacity;
    size_t n_live;
};

struct dl_paths *dl_paths_new(const struct dl_engine_link *links, size_t n_links)
{
    struct dl_paths *const p = dl_alloc(sizeof *p);
    p->links = links;
    p->n_links = n_links;
    p->narrow_links = dl_alloc(n_links * sizeof *p->narrow_links);
    p->sharing = dl_sharing_new(p->narrow_links, n_links);
    p->crossed_of = dl_alloc(n_links * sizeof *p->crossed_of);
    return p;
}

void dl_paths_free(struct dl_paths *p)
{
    if (!p) return;
    dl_sharing_free(p->sharing);
    void *const blocks[] = {p->paths,        p->crossings, p->crossed,     p->crossed_of,
                            p->narrow_links, p->narrow,    p->path_of_flow};
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
    dl_free(p);
}

const struct dl_hop *dl_paths_hops(const struct dl_paths *p, uint32_t path, size_t *n_hops)
{
    *n_hops = p->paths[path].n_hops;
    return p->paths[path].hops;
}

size_t dl_paths_n_live(const struct dl_paths *p) { return p->n_live; }

/* Of the way on its link. */
static double weight_of(const struct dl_paths *p, uint32_t crossing)
{
    const struct path *const path = &p->paths[p->crossings[crossing].path];
    return path->hops[crossing - path->first_crossing].weight;
}

static uint32_t first_on(const struct dl_paths *p, uint32_t link)
{
    return p->crossed_of[link] ? p->crossed[p->crossed_of[link] - 1].first : nothing;
}

uint32_t dl_paths_on(const struct dl_paths *p, uint32_t link)
{
    for (uint32_t c = first_on(p, link); c != nothing; c = p->crossings[c].next)
        if (p->paths[p->crossings[c].path].flow != nothing) return p->crossings[c].path;
    return DL_NO_PATH;
}

double dl_paths_wanted(const struct dl_paths *p, uint32_t link)
{
    double wanted = 0;
    for (uint32_t c = first_on(p, link); c != nothing; c = p->crossings[c].next) {
        const struct path *const path = &p->paths[p->crossings[c].path];
        if (path->flow != nothing) wanted += path->alone * weight_of(p, c);
    }
    return wanted;
}

/* ---- flows ---- */

static void share(struct dl_paths *p, uint32_t id)
{
    struct path *const path = &p->paths[id];
    path->flow = dl_sharing_join(p->sharing, &p->narrow[path->first_narrow], path->n_narrow, path->narrow_cap);
    while (p->n_path_of_flow <= path->flow) {
        DL_GROW(p->path_of_flow, p->n_path_of_flow, p->path_of_flow_capacity);
        p->path_of_flow[p->n_path_of_flow++] = nothing;
    }
    p->path_of_flow[path->flow] = id;
}

void dl_paths_join(struct dl_paths *p, uint32_t path)
{
    p->paths[path].rate = 0;
    p->n_live++;
    share(p, path);
}

void dl_paths_leave(struct dl_paths *p, uint32_t path)
{
    dl_sharing_leave(p->sharing, p->paths[path].flow);
    p->paths[path].flow = nothing;
    p->n_live--;
}

void dl_paths_fetch(const struct dl_paths *p, uint32_t path, size_t n_before)
{
    const struct path *const at = &p->paths[path];
    if (n_before == 3)
        dl_fetch(at, sizeof *at);
    else if (at->flow == nothing)
        dl_sharing_fetch_to_join(p->sharing, &p->narrow[at->first_narrow], at->n_narrow, n_before);
    else
        dl_sharing_fetch_to_leave(p->sharing, at->flow, n_before);
}

struct telling {
    struct dl_paths *p;
    dl_rate_fn changed;
    void *user;
};

/* A flow whose narrow hops are others now may have the rate that it had. */
static void tell(void *user, uint32_t flow, double rate)
{
    const double tolerance = 1e-12; /* as in sharing.c */
    const struct telling *const t = user;
    const uint32_t id = t->p->path_of_flow[flow];
    struct path *const path = &t->p->paths[id];
    if (fabs(rate - path->rate) <= tolerance * path->rate) return;
    path->rate = rate;
    t->changed(t->user, id, rate);
}

void dl_paths_settle(struct dl_paths *p, dl_rate_fn changed, void *user)
{
    dl_sharing_settle(p->sharing, tell, &(struct telling){p, changed, user});
}

/* ---- which links are left ---- */

static double bytes_per_s(const struct dl_paths *p, const struct crossed *at)
{
    return p->links[at->link].bandwidth_bytes_per_s;
}

/* Whether all of its ways together could fill it. */
static bool is_scarce(const struct dl_paths *p, const struct crossed *at)
{
    const double slack = 1e-6; /* far above what rounding makes of a sum */
    return !p->links[at->link].fatpipe && at->wanted >= bytes_per_s(p, at) * (1 - slack);
}

static void use_link(struct dl_paths *p, struct crossed *at)
{
    at->is_narrow = true;
    if (at->number != nothing) return;
    at->number = p->n_narrow_links++;
    p->narrow_links[at->number] = p->links[at->link];
}

/* For so many hops, behind those of all others. */
static void make_room(struct dl_paths *p, struct path *path, uint32_t n)
{
    const size_t first = p->n_narrow;
    p->narrow = dl_reserve(p->narrow, first + n, &p->narrow_capacity, sizeof *p->narrow);
    for (uint32_t i = 0; i < path->n_narrow; i++) p->narrow[first + i] = p->narrow[path->first_narrow + i];
    path->first_narrow = (uint32_t)first;
    path->narrow_room = n;
    p->n_narrow += n;
}

/* The cap says what the links that are not left give it, unless one that is left says as much. */
static void add_narrow(struct dl_paths *p, struct path *path, const struct crossed *at, double weight)
{
    if (path->n_narrow == path->narrow_room) make_room(p, path, 2 * path->n_narrow + 1);
    p->narrow[path->first_narrow + path->n_narrow++] = (struct dl_hop){.link = at->number, .weight = weight};
    if (bytes_per_s(p, at) / weight <= path->alone) path->narrow_cap = path->cap;
}

/* All of its ways take it up, also those that have a flow. */
static void make_narrow(struct dl_paths *p, struct crossed *at)
{
    use_link(p, at);
    for (uint32_t c = at->first; c != nothing; c = p->crossings[c].next) {
        const uint32_t id = p->crossings[c].path;
        const bool is_live = p->paths[id].flow != nothing;
        if (is_live) dl_sharing_leave(p->sharing, p->paths[id].flow);
        add_narrow(p, &p->paths[id], at, weight_of(p, c));
        if (is_live) share(p, id);
    }
}

/* Whether each of its ways crosses that other link, which has marked them, and takes at least as large a part of it. */
static bool is_covered(const struct dl_paths *p, const struct crossed *at, const struct crossed *by, const double *part)
{
    for (uint32_t c = at->first; c != nothing; c = p->crossings[c].next) {
        const uint32_t id = p->crossings[c].path;
        const struct path *const path = &p->paths[id];
        if (path->marked != by->link + 1 || weight_of(p, c) / bytes_per_s(p, at) > part[id]) return false;
    }
    return true;
}

static struct crossed *crossed_at(const struct dl_paths *p, uint32_t link)
{
    return &p->crossed[p->crossed_of[link] - 1];
}

/* Drop what is covered by this link, of the links of its first way. part: by path, scratch. */
static void cover(struct dl_paths *p, const struct crossed *by, double *part)
{
    for (uint32_t c = by->first; c != nothing; c = p->crossings[c].next) {
        const uint32_t id = p->crossings[c].path;
        p->paths[id].marked = by->link + 1;
        part[id] = weight_of(p, c) / bytes_per_s(p, by);
    }
    const struct path *const first = &p->paths[p->crossings[by->first].path];
    for (size_t i = 0; i < first->n_hops; i++) {
        struct crossed *const at = crossed_at(p, first->hops[i].link);
        if (at == by || !at->is_narrow || at->n_paths > by->n_paths || !is_covered(p, at, by, part)) continue;
        at->is_narrow = false;
        at->covered_by = by->link + 1;
    }
}

static void find_narrow_links(struct dl_paths *p)
{
    double *const part = dl_alloc(p->n_paths * sizeof *part);
    for (size_t i = 0; i < p->n_paths; i++) p->paths[i].marked = 0;
    for (size_t i = 0; i < p->n_crossed; i++) {
        p->crossed[i].is_narrow = is_scarce(p, &p->crossed[i]);
        p->crossed[i].covered_by = 0;
    }
    for (size_t i = 0; i < p->n_crossed; i++)
        if (p->crossed[i].is_narrow) cover(p, &p->crossed[i], part);
    dl_free(part);
}

static void narrow(struct dl_paths *p, struct path *path)
{
    uint32_t n = 0;
    for (size_t i = 0; i < path->n_hops; i++) n += crossed_at(p, path->hops[i].link)->is_narrow;
    path->n_narrow = 0;
    path->narrow_cap = path->alone;
    make_room(p, path, n);
    for (size_t i = 0; i < path->n_hops; i++) {
        struct crossed *const at = crossed_at(p, path->hops[i].link);
        if (!at->is_narrow) continue;
        use_link(p, at);
        add_narrow(p, path, at, path->hops[i].weight);
    }
}

/* All are looked at, so seldom: the more of them are new, the sooner. */
static bool is_due(const struct dl_paths *p)
{
    if (p->n_paths == p->n_narrowed) return false;
    const double n_new = (double)(p->n_paths - p->n_narrowed), n_paths = (double)p->n_paths;
    return 4 * n_new * (double)p->n_asked >= n_paths * n_paths;
}

static void narrow_all(struct dl_paths *p)
{
    find_narrow_links(p);
    dl_sharing_free(p->sharing);
    p->sharing = dl_sharing_new(p->narrow_links, p->n_links);
    p->n_narrow_links = 0;
    p->n_narrow = 0;
    for (size_t i = 0; i < p->n_crossed; i++) p->crossed[i].number = nothing;
    for (uint32_t id = 0; id < p->n_paths; id++) {
        narrow(p, &p->paths[id]);
        if (p->paths[id].flow != nothing) share(p, id);
    }
    p->n_narrowed = p->n_paths;
    p->n_asked = 0;
}

/* ---- new ways ---- */

static struct crossed *cross(struct dl_paths *p, uint32_t link)
{
    if (!p->crossed_of[link]) {
        DL_GROW(p->crossed, p->n_crossed, p->crossed_capacity);
        p->crossed[p->n_crossed++] = (struct crossed){.link = link, .first = nothing, .number = nothing};
        p->crossed_of[link] = (uint32_t)p->n_crossed;
    }
    return crossed_at(p, link);
}

static double alone_on(const struct dl_paths *p, const struct dl_hop *hops, size_t n_hops, double cap)
{
    double alone = cap;
    for (size_t i = 0; i < n_hops; i++)
        alone = fmin(alone, p->links[hops[i].link].bandwidth_bytes_per_s / hops[i].weight);
    return alone;
}

static void cross_links(struct dl_paths *p, uint32_t id)
{
    struct path *const path = &p->paths[id];
    path->first_crossing = (uint32_t)p->n_crossings;
    for (size_t i = 0; i < path->n_hops; i++) {
        struct crossed *const at = cross(p, path->hops[i].link);
        DL_GROW(p->crossings, p->n_crossings, p->crossings_capacity);
        p->crossings[p->n_crossings] = (struct crossing){id, at->first};
        at->first = (uint32_t)p->n_crossings++;
        at->wanted += path->alone * path->hops[i].weight;
        at->n_paths++;
    }
}

/* Whether the link that covers another does so for this way, too. */
static bool covers(const struct dl_paths *p, const struct path *path, const struct crossed *at, double weight)
{
    const double part = weight / bytes_per_s(p, at);
    for (size_t i = 0; at->covered_by && i < path->n_hops; i++)
        if (path->hops[i].link + 1 == at->covered_by)
            return part <= path->hops[i].weight / p->links[path->hops[i].link].bandwidth_bytes_per_s;
    return false;
}

static uint32_t add_path(struct dl_paths *p, const struct dl_hop *hops, size_t n_hops, double cap)
{
    const uint32_t id = (uint32_t)p->n_paths;
    const double alone = alone_on(p, hops, n_hops, cap);
    DL_GROW(p->paths, p->n_paths, p->paths_capacity);
    p->paths[p->n_paths++] =
        (struct path){.hops = hops, .n_hops = n_hops, .cap = cap, .alone = alone, .narrow_cap = alone, .flow = nothing};
    cross_links(p, id);
    for (size_t i = 0; i < n_hops; i++) {
        struct crossed *const at = crossed_at(p, hops[i].link);
        if (at->is_narrow)
            add_narrow(p, &p->paths[id], at, hops[i].weight);
        else if (is_scarce(p, at) && !covers(p, &p->paths[id], at, hops[i].weight))
            make_narrow(p, at);
    }
    return id;
}

/* Where the number of the path stands, + 1. */
static uint32_t *place_of(struct dl_paths *p, uint32_t *way, double cap)
{
    while (*way && p->paths[*way - 1].cap != cap) way = &p->paths[*way - 1].other;
    return way;
}

uint32_t dl_paths_find(struct dl_paths *p, uint32_t *way, const struct dl_hop *hops, size_t n_hops, double rate_cap)
{
    p->n_asked++;
    if (is_due(p)) narrow_all(p);
    uint32_t path = *place_of(p, way, rate_cap);
    if (!path) {
        path = 1 + add_path(p, hops, n_hops, rate_cap);
        *place_of(p, way, rate_cap) = path;
    }
    return p->paths[path - 1].flow == nothing ? path - 1 : DL_NO_PATH;
}
