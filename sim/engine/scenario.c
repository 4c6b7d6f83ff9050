#include "sim/engine/scenario.h"

#include "sim/core/memory.h"

struct options {
    struct dl_json links, replicas, crews, jitter;
};
static const struct dl_field fields[] = {
    {"links", DL_LIST, offsetof(struct options, links), 0, 0, true, NULL, "links that change"},
    {"replicas", DL_LIST, offsetof(struct options, replicas), 0, 0, true, NULL, "replicas and stages that are slow"},
    {"crews", DL_LIST, offsetof(struct options, crews), 0, 0, true, NULL, "the old name of replicas"},
    {"jitter", DL_OBJECT, offsetof(struct options, jitter), 0, 0, true, NULL, "work takes more or less long by chance"},
};

struct change_options {
    const char *link;
    double at_s, bandwidth_fraction;
};
static const struct dl_field change_fields[] = {
    {"link", DL_TEXT, offsetof(struct change_options, link), 0, 0, false, NULL, "name as reports give it"},
    {"at_s", DL_NUMBER, offsetof(struct change_options, at_s), 0, 1e9, false, NULL, "when"},
    {"bandwidth_fraction", DL_NUMBER, offsetof(struct change_options, bandwidth_fraction), 0, 100, false, NULL,
     "of what the link has by its file; 0: it fails"},
};

struct slow_options {
    int64_t stage, replica;
    double slowdown;
};
static const struct slow_options everyone = {.stage = -1, .replica = -1};
static const struct dl_field slow_fields[] = {
    {"stage", DL_INT, offsetof(struct slow_options, stage), 0, INT32_MAX, true, NULL, "pipeline stage; absent: every"},
    {"replica", DL_INT, offsetof(struct slow_options, replica), 0, INT32_MAX, true, NULL, "absent: every"},
    {"slowdown", DL_NUMBER, offsetof(struct slow_options, slowdown), 0.01, 1000, false, NULL,
     "its work takes so many times as long"},
};

struct jitter_options {
    double fraction;
};
static const struct dl_field jitter_fields[] = {
    {"fraction", DL_NUMBER, offsetof(struct jitter_options, fraction), 0, 1, false, NULL,
     "standard deviation over mean"},
};

static enum dl_status read_change(struct dl_json from, const struct dl_topology *t, struct dl_arena *arena,
                                  struct dl_link_change *out, struct dl_error *err)
{
    struct change_options o;
    if (dl_read(from, change_fields, DL_COUNT(change_fields), &o, arena, err)) return err->status;
    *out = (struct dl_link_change){.link = t ? dl_topology_find_link(t, o.link) : UINT32_MAX,
                                   .at_s = o.at_s,
                                   .bandwidth_fraction = o.bandwidth_fraction};
    if (out->link != UINT32_MAX || !t) return DL_OK;
    return dl_fail(
        err, DL_NOT_FOUND, dl_json_member(from, "link", arena).where,
        "%s has no link '%.100s'; names are as limiting_link gives them, or the ids in `dlsim export --format dot`",
        t->name, o.link);
}

static enum dl_status check_below(struct dl_json from, const char *key, int64_t value, uint32_t n,
                                  struct dl_arena *arena, struct dl_error *err)
{
    if (value < (int64_t)n) return DL_OK;
    return dl_fail(err, DL_RANGE, dl_json_member(from, key, arena).where, "must be in [0, %u], got %jd", n - 1,
                   (intmax_t)value);
}

static enum dl_status read_slow(struct dl_json from, const struct dl_scenario_scope *scope, struct dl_arena *arena,
                                struct dl_slow_replica *out, struct dl_error *err)
{
    struct slow_options o = everyone;
    if (dl_read(from, slow_fields, DL_COUNT(slow_fields), &o, arena, err) ||
        (scope && (check_below(from, "stage", o.stage, scope->n_stages, arena, err) ||
                   check_below(from, "replica", o.replica, scope->n_replicas, arena, err))))
        return err->status;
    *out = (struct dl_slow_replica){.stage = o.stage < 0 ? DL_EVERY : (uint32_t)o.stage,
                                    .replica = o.replica < 0 ? DL_EVERY : (uint32_t)o.replica,
                                    .slowdown = o.slowdown};
    return DL_OK;
}

static enum dl_status read_links(struct dl_json list, const struct dl_topology *t, struct dl_arena *arena,
                                 struct dl_scenario *out, struct dl_error *err)
{
    out->n_changes = json_array_size(list.value);
    out->changes = dl_arena_alloc(arena, out->n_changes * sizeof *out->changes);
    const size_t told = err->n_told;
    for (size_t i = 0; i < out->n_changes; i++)
        if (read_change(dl_json_element(list, i, arena), t, arena, &out->changes[i], err) && !dl_go_on(err)) break;
    return dl_stop_if_told(err, told);
}

static enum dl_status read_replicas(struct dl_json list, const struct dl_scenario_scope *scope, struct dl_arena *arena,
                                    struct dl_scenario *out, struct dl_error *err)
{
    out->n_slow = json_array_size(list.value);
    out->slow = dl_arena_alloc(arena, out->n_slow * sizeof *out->slow);
    const size_t told = err->n_told;
    for (size_t i = 0; i < out->n_slow; i++)
        if (read_slow(dl_json_element(list, i, arena), scope, arena, &out->slow[i], err) && !dl_go_on(err)) break;
    return dl_stop_if_told(err, told);
}

/* Each is in its range; all that name a stage of a replica may be beyond what a number can hold. */
static enum dl_status check_together(const struct dl_scenario *s, const struct dl_scenario_scope *scope,
                                     const char *where, struct dl_error *err)
{
    const double least = 1e-6, most = 1e6;
    for (uint32_t stage = 0; stage < scope->n_stages; stage++)
        for (uint32_t replica = 0; replica < scope->n_replicas; replica++) {
            const double slowdown = dl_scenario_slowdown(s, stage, replica);
            if (!(slowdown >= least && slowdown <= most))
                return dl_fail(err, DL_RANGE, where,
                               "together slow down stage %u of replica %u by a factor of %g; must be in [%g, %g]",
                               stage, replica, slowdown, least, most);
        }
    return DL_OK;
}

static enum dl_status read_jitter(struct dl_json from, struct dl_arena *arena, struct dl_scenario *out,
                                  struct dl_error *err)
{
    struct jitter_options o = {0};
    if (from.value && dl_read(from, jitter_fields, DL_COUNT(jitter_fields), &o, arena, err)) return err->status;
    out->jitter_fraction = o.fraction;
    return DL_OK;
}

/* ---- machines that are cut in two ---- */

/* Of two of the same date the one that the file has later comes later. */
static bool comes_after(const struct dl_link_change *a, const struct dl_link_change *b)
{
    return a->at_s > b->at_s || (a->at_s == b->at_s && a > b);
}

/* The last change of a link stays. */
static bool is_last_of_link(const struct dl_scenario *s, const struct dl_link_change *change)
{
    for (size_t k = 0; k < s->n_changes; k++)
        if (s->changes[k].link == change->link && comes_after(&s->changes[k], change)) return false;
    return true;
}

static enum dl_status check_way(const struct dl_scenario_scope *scope, uint32_t from, uint32_t to, struct dl_json links,
                                struct dl_route *route, struct dl_error *err)
{
    const struct dl_topology *const t = scope->topology;
    if (from == to || dl_topology_route(t, from, to, 0, NULL, route, err)) return err->status;
    if (!dl_crosses_failed(t->condition, route)) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, links.where,
                   "cuts %s in two: with the links that fail and do not come back there is no way from device %u to "
                   "device %u; let one of them come back, or leave one whole",
                   t->name, from, to);
}

/* Whoever reaches the first and the last device, and is reached by them, reaches all: switches pass everything on. */
static enum dl_status check_ways(const struct dl_scenario_scope *scope, struct dl_json links, struct dl_error *err)
{
    const uint32_t ends[] = {scope->devices[0], scope->devices[scope->n_devices - 1]};
    struct dl_route route = {0};
    for (uint32_t i = 0; i < scope->n_devices && !err->status; i++)
        for (size_t k = 0; k < DL_COUNT(ends) && !err->status; k++)
            if (!check_way(scope, scope->devices[i], ends[k], links, &route, err))
                check_way(scope, ends[k], scope->devices[i], links, &route, err);
    dl_route_release(&route);
    return err->status;
}

/* Links that come back later do not matter: what needs them waits until then. */
static enum dl_status check_cut(const struct dl_scenario *s, const struct dl_scenario_scope *scope,
                                struct dl_json links, struct dl_error *err)
{
    struct dl_condition *const condition = scope->topology->condition;
    for (size_t i = 0; i < s->n_changes; i++)
        if (s->changes[i].bandwidth_fraction == 0 && is_last_of_link(s, &s->changes[i]))
            dl_condition_set(condition, scope->topology, s->changes[i].link, 0);
    if (condition->n_failed) check_ways(scope, links, err);
    dl_condition_reset(condition);
    return err->status;
}

static enum dl_status read_options(struct dl_json doc, struct options *o, struct dl_scenario *out,
                                   struct dl_arena *arena, struct dl_error *err)
{
    if (dl_read_document(doc, "scenario", fields, DL_COUNT(fields), o, arena, err) || !o->crews.value)
        return err->status;
    if (o->replicas.value)
        return dl_fail(err, DL_KEY, o->crews.where, "is the old name of 'replicas', which is there too; say it once");
    out->old_key = o->crews.where;
    o->replicas = o->crews;
    return DL_OK;
}

enum dl_status dl_scenario_read(struct dl_json doc, const struct dl_scenario_scope *scope, struct dl_arena *arena,
                                struct dl_scenario *out, struct dl_error *err)
{
    struct options o = {0};
    const size_t told = err->n_told;
    *out = (struct dl_scenario){0};
    if (read_options(doc, &o, out, arena, err) && !dl_go_on(err)) return err->status;
    const struct dl_json of_steps = o.replicas.value ? o.replicas : o.jitter;
    if (of_steps.value && scope && !scope->n_stages)
        return dl_fail(err, DL_KEY, of_steps.where, "is for training steps (`dlsim run`); here only links can change");
    if ((read_links(o.links, scope ? scope->topology : NULL, arena, out, err) && !dl_go_on(err)) ||
        (read_replicas(o.replicas, scope, arena, out, err) && !dl_go_on(err)) ||
        (read_jitter(o.jitter, arena, out, err) && !dl_go_on(err)) || dl_stop_if_told(err, told))
        return err->status;
    if (out->n_slow && scope && check_together(out, scope, o.replicas.where, err)) return err->status;
    return scope && scope->n_devices ? check_cut(out, scope, o.links, err) : DL_OK;
}

double dl_scenario_slowdown(const struct dl_scenario *s, uint32_t stage, uint32_t replica)
{
    double slowdown = 1;
    for (size_t i = 0; i < s->n_slow; i++) {
        const struct dl_slow_replica *const c = &s->slow[i];
        if ((c->stage == stage || c->stage == DL_EVERY) && (c->replica == replica || c->replica == DL_EVERY))
            slowdown *= c->slowdown;
    }
    return slowdown;
}

static void apply(void *user, uint32_t index)
{
    const struct dl_scenario *const s = user;
    dl_wire_change_link(s->wire, s->changes[index].link, s->changes[index].bandwidth_fraction);
}

void dl_scenario_start(struct dl_scenario *s, struct dl_wire *wire)
{
    struct dl_engine *const engine = dl_wire_engine(wire);
    s->wire = wire;
    if (s->n_changes) dl_wire_expect_changes(wire);
    for (size_t i = 0; i < s->n_changes; i++) engine->kind->timer(engine, s->changes[i].at_s, apply, s, (uint32_t)i);
}
