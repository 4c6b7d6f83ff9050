/* interior_switch.c - every device on one non-blocking hub: NVSwitch. */
#include <string.h>

#include "topologies/interiors.h"

struct options {
    const char *name, *link;
    double bandwidth_bytes_per_s, latency_s;
    int64_t lanes;
    bool reduces;
};
static const struct options defaults = {.name = "nvswitch", .lanes = 1};
static const struct dl_field fields[] = {
    {"name", DL_TEXT, offsetof(struct options, name), 0, 0, true, NULL,
     "of the hub, followed by its number; nvswitch if absent"},
    {"bandwidth_bytes_per_s", DL_NUMBER, offsetof(struct options, bandwidth_bytes_per_s), 1, 1e18, false, NULL,
     "of a device to the hub, all lanes, per direction"},
    {"latency_s", DL_NUMBER, offsetof(struct options, latency_s), 0, 1, false, NULL, "of a device's link"},
    {"link", DL_TEXT, offsetof(struct options, link), 0, 0, false, NULL, "kind of link, as transport files name it"},
    {"lanes", DL_INT, offsetof(struct options, lanes), 1, 1024, true, NULL,
     "links of a device to the hub; 1 if absent"},
    {"reduces", DL_BOOL, offsetof(struct options, reduces), 0, 0, true, NULL,
     "the hub can add (NVLS); false if absent"},
};

static enum dl_status build(const void *options, struct dl_json part, struct dl_node *node, struct dl_arena *arena,
                            struct dl_error *err)
{
    const struct options *const o = options;
    if (!*o->name || !strcmp(o->name, "device") || !strcmp(o->name, "nic"))
        return dl_fail(err, DL_RANGE, dl_json_member(part, "name", arena).where,
                       "'%s' cannot name a hub: use a word such as nvswitch", o->name);
    const uint32_t hub = dl_interior_add_hub(node, o->name, o->reduces, arena);
    for (uint32_t device = 0; device < node->n_devices; device++)
        dl_node_add_edge(node, (struct dl_edge){.a = device,
                                                .b = hub,
                                                .lanes = (uint32_t)o->lanes,
                                                .bandwidth_bytes_per_s = o->bandwidth_bytes_per_s,
                                                .latency_s = o->latency_s,
                                                .link_kind = o->link,
                                                .reach = DL_REACH_DIRECT});
    return DL_OK;
}

const struct dl_interior dl_interior_switch = {
    .name = "switch",
    .doc = "a non-blocking hub with a link from each device (NVSwitch)",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .build = build,
};
