#include "topologies/interiors.h"

#include <string.h>

#include "topologies/kinds.h"

/* The only list; a new kind of part is one file and one line here. */
static const struct dl_interior *const interiors[] = {&dl_interior_switch, &dl_interior_mesh, &dl_interior_torus,
                                                      &dl_interior_pcie};

size_t dl_interior_count(void) { return DL_COUNT(interiors); }

const struct dl_interior *dl_interior_get(size_t index) { return interiors[index]; }

struct common {
    const char *kind;
};
static const struct common common_defaults = {0};
static const struct dl_field common_fields[] = {
    {"kind", DL_TEXT, offsetof(struct common, kind), 0, 0, false, NULL, "kind of part"},
};

enum dl_status dl_interior_read(struct dl_json part, struct dl_node *node, struct dl_arena *arena, struct dl_error *err)
{
    const char *names[DL_COUNT(interiors) + 1] = {NULL};
    for (size_t i = 0; i < DL_COUNT(interiors); i++) names[i] = interiors[i]->name;
    int64_t chosen = 0;
    if (dl_read_kind(part, names, &chosen, arena, err)) return err->status;

    const struct dl_interior *const kind = interiors[chosen];
    const struct dl_options own = {kind->fields, kind->n_fields, kind->options_size, kind->defaults};
    const struct dl_options common = {common_fields, DL_COUNT(common_fields), sizeof common_defaults, &common_defaults};
    struct dl_two_options both;
    if (dl_read_two(part, &own, &common, &both, arena, err)) return err->status;
    return node ? kind->build(both.own, part, node, arena, err) : DL_OK;
}

uint32_t dl_interior_add_hub(struct dl_node *node, const char *prefix, bool reduces, struct dl_arena *arena)
{
    const size_t length = strlen(prefix);
    unsigned number = 0;
    for (size_t v = node->n_devices; v < node->n_vertices; v++)
        number += strncmp(node->vertices[v].name, prefix, length) == 0;
    const char *name = dl_arena_format(arena, "%s%u", prefix, number);
    while (dl_node_find(node, name) != UINT32_MAX) name = dl_arena_format(arena, "%s%u", prefix, ++number);
    return dl_node_add_vertex(node, (struct dl_vertex){DL_HUB, name, .forwards = true, .reduces = reduces});
}
