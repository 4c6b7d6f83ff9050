/* target.c - every reader of outside text, for libFuzzer and for the replay of its corpus.
 *
 * The first byte chooses the reader, the rest is its text. A reader may refuse what it gets, with one line that says
 * why; it may not crash, hang, leak or eat memory. What it accepts must then work: routes, names, placements. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "sim/calibrate/timings.h"
#include "sim/collective/payload.h"
#include "sim/import/import.h"
#include "topologies/placement.h"
#include "topologies/transport.h"

#include "tests/fuzz/readers.h"
#include "tests/fuzz/target.h"

static const char small_system[] =
    "{\"schema\": \"dlsim/system/1\", \"source\": \"made up\", \"nodes\": 4, \"transport\": \"ideal\","
    " \"node\": {\"device\": \"any\", \"devices\": 2, \"parts\": [{\"kind\": \"switch\", \"link\": \"nvlink3\","
    "   \"bandwidth_bytes_per_s\": 3e11, \"latency_s\": 1e-7}]},"
    " \"network\": {\"kind\": \"crossbar\", \"link\": \"ib-hdr\", \"bandwidth_bytes_per_s\": 25e9, \"latency_s\": "
    "1e-6}}";

/* Devices with nothing in the node to join them. */
static const char bare_system[] =
    "{\"schema\": \"dlsim/system/1\", \"source\": \"made up\", \"nodes\": 3, \"transport\": \"ideal\","
    " \"node\": {\"device\": \"any\", \"devices\": 1, \"parts\": []},"
    " \"network\": {\"kind\": \"full_mesh\", \"link\": \"ici\", \"bandwidth_bytes_per_s\": 25e9, \"latency_s\": 1e-6}}";

static void check_refusal(const struct dl_error *err)
{
    assert(err->status != DL_OK && err->text[0] && !strpbrk(err->text, "\n\r"));
}

static struct dl_topology *open_system(struct input *in, const char *text, struct dl_json *doc)
{
    struct dl_topology *t = NULL;
    if (dl_json_parse(text, strlen(text), "own.json", in->arena, doc, &in->err) ||
        dl_topology_read(*doc, in->arena, &t, &in->err))
        assert(!"the systems above are valid");
    return t;
}

struct dl_topology *open_small_system(struct input *in, struct dl_json *doc)
{
    return open_system(in, small_system, doc);
}

/* Sizes between those that are built at once and those that a reader must refuse: valid, but slow to try. */
static bool has_slow_size(const json_t *value)
{
    enum { quick = 64, refused = 1000000000 };
    if (json_is_number(value)) return json_number_value(value) > quick && json_number_value(value) < refused;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (has_slow_size(json_array_get(value, i))) return true;
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)value, key, member)
    {
        if (!strstr(key, "_per_s") && has_slow_size(member)) return true;
    }
    return false;
}

static void use_route(const struct dl_topology *t, uint32_t from, uint32_t to, struct dl_route *route)
{
    struct dl_error err = {0};
    if (dl_topology_route(t, from, to, from, NULL, route, &err)) {
        check_refusal(&err);
        return;
    }
    assert(isfinite(route->latency_s) && route->latency_s >= 0);
    for (size_t i = 0; i < route->n_hops; i++) assert(route->hops[i].link < t->n_links && route->hops[i].weight > 0);
}

static void use_topology(const struct dl_topology *t)
{
    enum { some = 12 };
    struct dl_route route = {0};
    const uint32_t n = t->n_devices < some ? t->n_devices : some;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++)
            if (i != j) use_route(t, i, t->n_devices - n + j == i ? j : t->n_devices - n + j, &route);
    dl_route_release(&route);
    for (size_t link = 0; link < t->n_links; link += 1 + t->n_links / some) {
        char name[256];
        dl_topology_link_name(t, (uint32_t)link, name, sizeof name);
        assert(name[0]);
    }
}

static void read_system(struct input *in)
{
    struct dl_json doc;
    struct dl_topology *t = NULL;
    if (dl_json_parse(in->text, in->bytes, "input.json", in->arena, &doc, &in->err)) return;
    if (!has_slow_size(doc.value) && !dl_topology_read(doc, in->arena, &t, &in->err)) use_topology(t);
    dl_topology_free(t);
    json_decref(doc.value);
}

static void use_transport(const struct dl_transport *transport)
{
    assert(transport->n_protocols > 0);
    for (size_t i = 0; i < transport->n_protocols; i++)
        for (int family = 0; family < DL_N_FAMILIES; family++)
            if (transport->protocols[i].has_family[family])
                assert(transport->protocols[i].pump_bytes_per_s[family] > 0);
    dl_transport_has(transport, "allreduce", "ring"); /* what it names must outlive the document */
}

static void read_transport_on(struct input *in, const char *system)
{
    struct dl_json own, doc;
    struct dl_topology *const t = open_system(in, system, &own);
    struct dl_transport transport;
    for (uint32_t n_nodes = 1; n_nodes <= t->n_nodes && !in->err.status; n_nodes++) {
        if (dl_json_parse(in->text, in->bytes, "input.json", in->arena, &doc, &in->err)) break;
        dl_transport_read(doc, t, n_nodes, in->arena, &transport, &in->err);
        json_decref(doc.value);
        if (!in->err.status) use_transport(&transport);
    }
    dl_topology_free(t);
    json_decref(own.value);
}

static void read_transport(struct input *in)
{
    read_transport_on(in, small_system);
    if (!in->err.status) read_transport_on(in, bare_system);
}

static void read_assignment(struct input *in)
{
    struct dl_json small;
    dl_topology_free(open_small_system(in, &small));
    struct dl_topology *t = NULL;
    if (!dl_json_set(small, in->text, in->arena, &in->err) && !has_slow_size(small.value) &&
        !dl_topology_read(small, in->arena, &t, &in->err))
        use_topology(t);
    dl_topology_free(t);
    json_decref(small.value);
}

static void read_payload(struct input *in)
{
    struct dl_payload payload;
    if (dl_payload_parse(in->text, &payload, &in->err)) return;
    const double bytes = dl_payload_bytes(&payload, 1e6, 8);
    assert(bytes > 0 && bytes <= 2e6);
}

static void read_placement(struct input *in)
{
    enum { n_ranks = 3 };
    struct dl_json small;
    struct dl_topology *const t = open_small_system(in, &small);
    uint32_t device[n_ranks];
    if (!dl_place(t, in->text, 1, n_ranks, device, &in->err))
        for (int i = 0; i < n_ranks; i++) assert(device[i] < t->n_devices);
    dl_topology_free(t);
    json_decref(small.value);
}

static void read_timings(struct input *in)
{
    struct dl_timings t;
    if (!dl_timings_parse(in->text, "input.txt", in->arena, &t, &in->err)) assert(t.n_rows && t.rows[0].time_s > 0);
    dl_timings_release(&t);
}

/* What is made is a document of dlsim, and each thing that it leaves out is told with its reason. */
static void read_foreign(struct input *in)
{
    const struct dl_foreign file = {.text = in->text, .bytes = in->bytes, .where = "input.json"};
    const struct dl_import_format *format = NULL;
    struct dl_imported imported;
    if (!dl_import(&file, in->arena, &imported, &format, &in->err)) {
        assert(format && *imported.what && (imported.workload || imported.strategy));
        assert(!imported.workload || (isfinite(imported.parameters) && imported.parameters > 0));
        for (size_t i = 0; i < imported.n_left_out; i++)
            assert(*imported.left_out[i].key && *imported.left_out[i].why && imported.left_out[i].value);
    }
    dl_imported_release(&imported);
}

static const struct reader {
    char letter; /* the first byte, so that a corpus file can be read by people */
    void (*read)(struct input *in);
} readers[] = {
    {'s', read_system},   {'t', read_transport}, {'a', read_assignment}, {'p', read_payload},  {'l', read_placement},
    {'w', read_workload}, {'d', read_device},    {'f', read_software},   {'g', read_strategy}, {'c', read_scenario},
    {'r', read_rows},     {'m', read_steps},     {'b', read_timings},    {'i', read_foreign},  {'o', read_log},
};

static const struct reader *choose(uint8_t first)
{
    for (size_t i = 0; i < DL_COUNT(readers); i++)
        if (readers[i].letter == first) return &readers[i];
    return &readers[first % DL_COUNT(readers)];
}

static void take_no_notice(void *user, const char *text)
{
    (void)user;
    assert(*text && !strpbrk(text, "\n\r"));
}

/* Whether the input is refused: with the first error, or after all were told. */
static bool is_refused(const uint8_t *data, size_t size, bool tells_all)
{
    struct input in = {.arena = dl_arena_new(), .bytes = size - 1, .err = {.tell = tells_all ? take_no_notice : NULL}};
    char *const text = dl_arena_alloc(in.arena, size);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    in.text = text;
    choose(data[0])->read(&in);
    if (in.err.status && !in.err.n_told) check_refusal(&in.err);
    const bool refused = in.err.status || in.err.n_told;
    dl_arena_free(in.arena);
    return refused;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) return 0;
    const bool refused = is_refused(data, size, false);
    assert(is_refused(data, size, true) == refused);
    return 0;
}
