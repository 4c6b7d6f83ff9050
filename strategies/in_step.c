#include "strategies/in_step.h"

#include <assert.h>

/* ---- who they are ---- */

struct dl_line_of_ranks dl_in_step_ranks(const struct dl_setting *s, enum dl_axis axis)
{
    if (axis == DL_AXIS_EXPERT) return (struct dl_line_of_ranks){DL_AXIS_DATA, s->expert_ways, 1};
    if (axis < DL_N_AXES) return (struct dl_line_of_ranks){axis, s->ways[axis], 1};
    assert(axis >= DL_AXIS_GRID_X);
    const size_t dimension = (size_t)axis - DL_AXIS_GRID_X;
    struct dl_line_of_ranks line = {DL_AXIS_TENSOR, s->grid[dimension], 1};
    for (size_t inner = 0; inner < dimension; inner++) line.stride *= s->grid[inner];
    return line;
}

uint32_t dl_place_in_line(const struct dl_line_of_ranks *line, const uint32_t coordinate[DL_N_AXES])
{
    return coordinate[line->axis] / line->stride % line->n;
}

void dl_move_in_line(const struct dl_line_of_ranks *line, uint32_t places, uint32_t coordinate[DL_N_AXES])
{
    const uint32_t at = dl_place_in_line(line, coordinate);
    coordinate[line->axis] -= at * line->stride;
    coordinate[line->axis] += (at + places) % line->n * line->stride;
}

uint32_t dl_in_step_replicas(const struct dl_setting *s, enum dl_axis axis)
{
    return axis == DL_AXIS_EXPERT ? s->expert_ways : 1;
}

uint32_t dl_in_step_n_groups(const struct dl_setting *s, enum dl_axis axis)
{
    const uint32_t n_members = s->ways[DL_AXIS_TENSOR] * s->ways[DL_AXIS_CONTEXT];
    return n_members * dl_in_step_replicas(s, axis) / dl_in_step_ranks(s, axis).n;
}

struct dl_group *dl_in_step_groups(const struct dl_seats *seats, enum dl_axis axis, uint32_t stage, uint32_t replica,
                                   struct dl_arena *arena)
{
    const struct dl_setting *const s = seats->setting;
    const struct dl_line_of_ranks line = dl_in_step_ranks(s, axis);
    const uint32_t n_tensor = s->ways[DL_AXIS_TENSOR], n_members = n_tensor * s->ways[DL_AXIS_CONTEXT];
    struct dl_group *const groups = dl_arena_alloc(arena, dl_in_step_n_groups(s, axis) * sizeof *groups);
    for (uint32_t member = 0, n = 0; member < n_members; member++) {
        uint32_t at[DL_N_AXES] = {[DL_AXIS_TENSOR] = member % n_tensor,
                                  [DL_AXIS_CONTEXT] = member / n_tensor,
                                  [DL_AXIS_DATA] = replica,
                                  [DL_AXIS_PIPELINE] = stage};
        if (dl_place_in_line(&line, at)) continue;
        uint32_t *const device = dl_arena_alloc(arena, line.n * sizeof *device);
        for (uint32_t i = 0; i < line.n; i++) {
            device[i] = seats->device_of_rank[dl_rank_at(s, at)];
            dl_move_in_line(&line, 1, at);
        }
        dl_group_init(&groups[n++], seats->topology, device, line.n, arena);
    }
    return groups;
}

/* ---- whom they meet ---- */

struct survey {
    const struct dl_lower_request *request;
    const bool *changes; /* by link, where these are looked for; NULL: others are */
    bool *crossing;      /* by crew, where links that change are looked for */
    uint32_t *owner;     /* by link: a crew whose exchanges cross it, + 1; 0: nobody's do */
    uint32_t replicas;   /* that go in step in what is looked at; 0: none do */
    bool takes;          /* what is looked at is the exchange itself */
    bool meets;
    struct dl_route route;
    struct dl_error *err;
};

static const struct dl_setting *setting_of(const struct survey *v) { return &v->request->job->setting; }

static uint32_t crew_at(const struct survey *v, const uint32_t coordinate[DL_N_AXES])
{
    return coordinate[DL_AXIS_PIPELINE] * setting_of(v)->ways[DL_AXIS_DATA] + coordinate[DL_AXIS_DATA];
}

/* The first crew of those that go in step with it. */
static uint32_t first_with(const struct survey *v, uint32_t crew)
{
    return crew - crew % setting_of(v)->ways[DL_AXIS_DATA] % v->replicas;
}

static void look_at_owners(struct survey *v, uint32_t crew)
{
    for (size_t i = 0; i < v->route.n_hops; i++) {
        uint32_t *const owner = &v->owner[v->route.hops[i].link];
        v->meets |= *owner && (!v->replicas || first_with(v, *owner - 1) != first_with(v, crew));
        if (v->takes) *owner = crew + 1;
    }
}

static void look_at_changes(struct survey *v, uint32_t crew)
{
    const uint32_t first = first_with(v, crew);
    bool changes = false;
    for (size_t i = 0; i < v->route.n_hops; i++) changes |= v->changes[v->route.hops[i].link];
    for (uint32_t i = 0; i < v->replicas && changes; i++) v->crossing[first + i] = true;
    v->meets |= changes;
}

static uint32_t device_at(const struct survey *v, const uint32_t coordinate[DL_N_AXES])
{
    return v->request->device_of_rank[dl_rank_at(setting_of(v), coordinate)];
}

static void follow(struct survey *v, const struct dl_line_of_ranks *line, const uint32_t coordinate[DL_N_AXES],
                   uint32_t places)
{
    uint32_t to[DL_N_AXES];
    for (size_t i = 0; i < DL_N_AXES; i++) to[i] = coordinate[i];
    dl_move_in_line(line, places, to);
    const struct dl_topology *const t = v->request->estimator->topology;
    if (dl_topology_route(t, device_at(v, coordinate), device_at(v, to), 0, NULL, &v->route, v->err)) return;
    if (v->changes)
        look_at_changes(v, crew_at(v, coordinate));
    else
        look_at_owners(v, crew_at(v, coordinate));
}

static bool goes_on(const struct survey *v) { return (!v->meets || v->crossing) && !v->err->status; }

static void look_at(struct survey *v, struct dl_line_of_ranks line)
{
    const uint32_t *const ways = setting_of(v)->ways;
    uint32_t n_ranks = 1;
    for (size_t axis = 0; axis < DL_N_AXES; axis++) n_ranks *= ways[axis];
    for (uint32_t rank = 0; rank < n_ranks && goes_on(v); rank++) {
        uint32_t coordinate[DL_N_AXES], rest = rank;
        for (size_t axis = 0; axis < DL_N_AXES; axis++) {
            coordinate[axis] = rest % ways[axis];
            rest /= ways[axis];
        }
        for (uint32_t places = 1; places < line.n && goes_on(v); places += v->changes ? 1 : places) {
            follow(v, &line, coordinate, places);
            if (line.axis == DL_AXIS_PIPELINE && goes_on(v)) follow(v, &line, coordinate, line.n - places);
            if (line.axis == DL_AXIS_PIPELINE) break; /* there and back to the next only */
        }
    }
}

/* Those that are not of the crew, or, beside exchanges of a window, of none of its crews. */
static void look_at_others_in_step(struct survey *v, enum dl_axis axis)
{
    static const enum dl_axis others[] = {DL_AXIS_TENSOR, DL_AXIS_CONTEXT, DL_AXIS_EXPERT};
    for (size_t i = 0; i < DL_COUNT(others); i++)
        if (others[i] != axis && goes_on(v)) look_at(v, dl_in_step_ranks(setting_of(v), others[i]));
}

static void look_at_all(struct survey *v, enum dl_axis axis)
{
    const struct dl_setting *const s = setting_of(v);
    const uint32_t *const ways = s->ways;
    v->takes = true;
    v->replicas = dl_in_step_replicas(s, axis);
    look_at(v, dl_in_step_ranks(s, axis));
    v->takes = false;
    v->replicas = s->expert_ways;
    look_at_others_in_step(v, axis);
    v->replicas = 0;
    look_at(v, (struct dl_line_of_ranks){DL_AXIS_PIPELINE, ways[DL_AXIS_PIPELINE], 1});
    if (!s->exchanges_beside_work && ways[DL_AXIS_PIPELINE] == 1) return;
    look_at(v, (struct dl_line_of_ranks){DL_AXIS_DATA, ways[DL_AXIS_DATA], 1});
    look_at(v, (struct dl_line_of_ranks){DL_AXIS_CONTEXT, ways[DL_AXIS_CONTEXT], 1});
}

enum dl_status dl_in_step_meets(const struct dl_lower_request *request, enum dl_axis axis, bool *out,
                                struct dl_error *err)
{
    struct survey v = {.request = request, .err = err};
    v.owner = dl_alloc(request->estimator->topology->n_links * sizeof *v.owner);
    look_at_all(&v, axis);
    *out = v.meets;
    dl_route_release(&v.route);
    dl_free(v.owner);
    return err->status;
}

/* Where routes depend on load a way through the network that is looked at is one of many. */
static void mark_changing(const struct dl_lower_request *r, bool *changes)
{
    const struct dl_topology *const t = r->estimator->topology;
    const bool any_way = dl_network_reads_load(&t->network);
    const size_t first_of_any = any_way ? t->network.first_link : t->n_links;
    bool all_change = false;
    for (size_t i = 0; i < r->n_changing; i++) {
        changes[r->changing[i]] = true;
        all_change |= r->changing[i] >= first_of_any;
    }
    for (size_t link = first_of_any; all_change && link < t->n_links; link++) changes[link] = true;
}

enum dl_status dl_in_step_crosses(const struct dl_lower_request *request, enum dl_axis axis, bool *crews, bool *out,
                                  struct dl_error *err)
{
    bool *const changes = dl_alloc(request->estimator->topology->n_links * sizeof *changes);
    struct survey v = {.request = request,
                       .changes = changes,
                       .crossing = crews,
                       .replicas = dl_in_step_replicas(&request->job->setting, DL_AXIS_EXPERT),
                       .err = err};
    mark_changing(request, changes);
    look_at(&v, dl_in_step_ranks(&request->job->setting, axis));
    *out = v.meets;
    dl_route_release(&v.route);
    dl_free(changes);
    return err->status;
}
