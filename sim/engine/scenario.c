#include "sim/engine/scenario.h"

#include "sim/core/memory.h"

struct options {
    struct dl_json links;
};
static const struct dl_field fields[] = {
    {"links", DL_LIST, offsetof(struct options, links), 0, 0, false, NULL, "links that change"},
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

static enum dl_status read_change(struct dl_json from, const struct dl_topology *t, struct dl_arena *arena,
                                  struct dl_link_change *out, struct dl_error *err)
{
    struct change_options o;
    if (dl_read(from, change_fields, DL_COUNT(change_fields), &o, arena, err)) return err->status;
    *out = (struct dl_link_change){
        .link = dl_topology_find_link(t, o.link), .at_s = o.at_s, .bandwidth_fraction = o.bandwidth_fraction};
    if (out->link != UINT32_MAX) return DL_OK;
    return dl_fail(
        err, DL_NOT_FOUND, dl_json_member(from, "link", arena).where,
        "%s has no link '%.100s'; names are such as limiting_link gives them, or `dlsim export --format dot`", t->name,
        o.link);
}

enum dl_status dl_scenario_read(struct dl_json doc, const struct dl_topology *t, struct dl_arena *arena,
                                struct dl_scenario *out, struct dl_error *err)
{
    struct options o = {0};
    if (dl_read_document(doc, "scenario", fields, DL_COUNT(fields), &o, arena, err)) return err->status;
    out->n_changes = json_array_size(o.links.value);
    out->changes = dl_arena_alloc(arena, out->n_changes * sizeof *out->changes);
    for (size_t i = 0; i < out->n_changes; i++)
        if (read_change(dl_json_element(o.links, i, arena), t, arena, &out->changes[i], err)) return err->status;
    return DL_OK;
}

static void apply(void *user, uint32_t index)
{
    const struct dl_scenario *const s = user;
    const struct dl_link_change *const c = &s->changes[index];
    s->engine->kind->set_bandwidth(s->engine, c->link, s->links[c->link].bandwidth_bytes_per_s * c->bandwidth_fraction);
}

void dl_scenario_start(struct dl_scenario *s, struct dl_engine *engine, const struct dl_engine_link *links)
{
    s->engine = engine;
    s->links = links;
    for (size_t i = 0; i < s->n_changes; i++) engine->kind->timer(engine, s->changes[i].at_s, apply, s, (uint32_t)i);
}
