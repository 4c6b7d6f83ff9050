#include "sim/session/inputs.h"

#include <string.h>
#include <unistd.h>

#include "sim/collective/collective.h"
#include "topologies/placement.h"

/* Of the sign in front of a path that adds or takes out. */
static size_t sign_length(const char *assignment) { return *assignment == '+' || *assignment == '-'; }

/* "topo.node.devices=4" is for the document "topo", as is "-topo.network". */
static const char *meant_for(const char *assignment, const char *prefix)
{
    const size_t length = strlen(prefix);
    const char *const path = assignment + sign_length(assignment);
    return strncmp(path, prefix, length) == 0 && path[length] == '.' ? path + length + 1 : NULL;
}

/* A path without one of these words in front is the strategy's. */
static const char *const prefixes[] = {"strategy", "workload", "topo", "device", "software", "transport"};

/* Its path without sign and prefix; NULL: it is for another document. */
static const char *path_for(const char *assignment, const char *prefix)
{
    const char *const rest = meant_for(assignment, prefix);
    if (rest || strcmp(prefix, "strategy")) return rest;
    for (size_t i = 0; i < DL_COUNT(prefixes); i++)
        if (meant_for(assignment, prefixes[i])) return NULL;
    return assignment + sign_length(assignment);
}

const char *dl_place_of_name(const char *given, struct dl_json doc, const char *key, struct dl_arena *arena)
{
    return given ? NULL : dl_json_member(doc, key, arena).where;
}

struct dl_input dl_given_or(struct dl_input given, struct dl_json doc, const char *name)
{
    return given.name ? given : (struct dl_input){.name = name, .file = doc.file};
}

/* The option for which there is such a name, where it was given to another; or NULL. */
static const char *option_for(const char *name, struct dl_arena *arena)
{
    static const struct {
        const char *folder, *option;
    } shipped[] = {{DL_SYSTEMS, "--topo"},
                   {DL_STRATEGIES, "--strategy"},
                   {DL_WORKLOADS, "--workload"},
                   {DL_SOFTWARE, "--software"},
                   {DL_TRANSPORTS, "--transport"}};
    for (size_t i = 0; i < DL_COUNT(shipped) && !strchr(name, '/'); i++)
        if (access(dl_arena_format(arena, "%s/%s.json", dl_shipped(shipped[i].folder, arena), name), F_OK) == 0)
            return shipped[i].option;
    return NULL;
}

enum dl_status dl_find_named(const struct dl_sought *sought, struct dl_arena *arena, const char **path,
                             struct dl_error *err)
{
    struct dl_error missing = {0};
    if (!dl_find_sought(sought, arena, path, &missing)) return DL_OK;
    const char *const option = option_for(dl_without_json(sought->name, arena), arena);
    if (option)
        return dl_fail(err, missing.status, sought->name, "no such %s; it is a name for %s", sought->what, option);
    return dl_fail(err, missing.status, NULL, "%s", missing.text);
}

enum dl_status dl_find_wanted(const struct dl_want *want, struct dl_arena *arena, const char **path,
                              struct dl_error *err)
{
    struct dl_error missing = {0};
    const struct dl_sought sought = {
        .folder = want->folder, .what = want->what, .name = want->input.name, .file = want->input.file};
    if (!dl_find_named(&sought, arena, path, &missing)) return DL_OK;
    return dl_fail(err, missing.status, want->where, "%s", missing.text);
}

static enum dl_status load(const struct dl_want *want, struct dl_arena *arena, struct dl_json *doc,
                           struct dl_error *err)
{
    const struct dl_input *const in = &want->input;
    const char *path;
    if (in->text) {
        if (dl_json_parse(in->text, strlen(in->text), in->name, arena, doc, err)) return err->status;
        doc->file = in->file;
        return DL_OK;
    }
    return dl_find_wanted(want, arena, &path, err) || dl_json_load(path, arena, doc, err) ? err->status : DL_OK;
}

enum dl_status dl_load_document(const struct dl_want *want, const struct dl_texts *set, struct dl_arena *arena,
                                struct dl_json *doc, struct dl_error *err)
{
    struct dl_lineage unused;
    return dl_load_with_lineage(want, set, arena, doc, &unused, err);
}

enum dl_status dl_load_with_lineage(const struct dl_want *want, const struct dl_texts *set, struct dl_arena *arena,
                                    struct dl_json *doc, struct dl_lineage *lineage, struct dl_error *err)
{
    if (load(want, arena, doc, err) || dl_json_inherit_from(*doc, want->folder, want->what, arena, lineage, err))
        return err->status;
    for (size_t i = 0; i < set->n; i++) {
        const char *const item = set->items[i], *const path = path_for(item, want->prefix);
        if (path && dl_json_set(*doc, dl_arena_format(arena, "%.*s%s", (int)sign_length(item), item, path), arena, err))
            return err->status;
    }
    return DL_OK;
}

bool dl_set_is_for(const char *assignment, const char *prefix) { return path_for(assignment, prefix) != NULL; }

enum dl_status dl_only_machine_set(const struct dl_texts *set, struct dl_error *err)
{
    for (size_t i = 0; i < set->n; i++)
        if (!meant_for(set->items[i], "topo") && !meant_for(set->items[i], "transport"))
            return dl_fail(err, DL_KEY, "--set", "'%.200s' must begin with topo. or transport.", set->items[i]);
    return DL_OK;
}

enum dl_status dl_machine_open(struct dl_input topo, const struct dl_texts *set, struct dl_arena *arena,
                               struct dl_machine *m, struct dl_error *err)
{
    const struct dl_want want = {DL_SYSTEMS, "topology", topo, "topo", NULL};
    if (dl_load_document(&want, set, arena, &m->system_doc, err)) return err->status;
    if (m->keeper) return dl_machines_take(m->keeper, m->system_doc, DL_WHOLE_MACHINE, &m->topology, err);
    return dl_topology_read(m->system_doc, arena, &m->topology, err);
}

enum dl_status dl_machine_open_as(struct dl_machine *m, const struct dl_machine *other, struct dl_error *err)
{
    m->system_doc = dl_json_shared(other->system_doc);
    return dl_machines_take(m->keeper, m->system_doc, DL_WHOLE_MACHINE, &m->topology, err);
}

void dl_machine_borrow(struct dl_machine *m, const struct dl_machine *other)
{
    *m = *other;
    m->keeper = NULL;
    m->is_borrowed = true;
    m->system_doc = dl_json_shared(other->system_doc);
    m->transport_doc = dl_json_shared(other->transport_doc);
}

static void free_topology(struct dl_machine *m)
{
    if (m->keeper)
        dl_machines_give_back(m->keeper, m->topology);
    else
        dl_topology_free(m->topology);
}

enum dl_status dl_machine_slice(struct dl_machine *m, uint32_t n_devices, const char *placement, struct dl_error *err)
{
    struct dl_topology *slice = NULL;
    if (placement && dl_placement_is_list(placement)) return DL_OK;
    const uint32_t n = dl_topology_slice_devices(m->topology, n_devices);
    if (n == m->topology->n_devices) return DL_OK;
    if (m->keeper ? dl_machines_take(m->keeper, m->system_doc, n, &slice, err)
                  : dl_topology_slice(m->topology, n_devices, &slice, err))
        return err->status;
    free_topology(m);
    m->topology = slice;
    return DL_OK;
}

enum dl_status dl_machine_use_transport(struct dl_machine *m, const char *transport, uint32_t n_nodes,
                                        const struct dl_texts *set, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_topology *const t = m->topology;
    const struct dl_want want = {DL_TRANSPORTS, "transport",
                                 dl_given_or((struct dl_input){.name = transport}, m->system_doc, t->transport),
                                 "transport", dl_place_of_name(transport, m->system_doc, "transport", arena)};
    if (dl_load_document(&want, set, arena, &m->transport_doc, err) ||
        dl_transport_read(m->transport_doc, t, n_nodes, arena, &m->transport, err) ||
        dl_check_algorithms(m->transport_doc, &m->transport, arena, err))
        return err->status;
    m->bytes_per_s = m->keeper ? dl_machines_rates(m->keeper, t, &m->transport) : dl_transport_rates(&m->transport, t);
    return DL_OK;
}

void dl_machine_use_transport_of(struct dl_machine *m, const struct dl_machine *other)
{
    m->transport_doc = dl_json_shared(other->transport_doc);
    m->transport = other->transport;
    m->bytes_per_s = dl_machines_rates(m->keeper, m->topology, &m->transport);
}

void dl_machine_fingerprint(const struct dl_machine *m, struct dl_fingerprint *f)
{
    static const char *const names[] = {"transport", "node.device", NULL};
    dl_fingerprint_text(f, "topology", m->topology->name);
    dl_fingerprint_document(f, "topology", m->system_doc.value, names);
    dl_fingerprint_json(f, "transport", m->transport_doc.value);
}

void dl_machine_list_files(const struct dl_machine *m, struct dl_arena *arena, struct dl_files_read *out)
{
    dl_files_read_add(out, "topology", DL_SYSTEMS, m->system_doc, arena);
    dl_files_read_add(out, "transport", DL_TRANSPORTS, m->transport_doc, arena);
}

struct dl_engine_link *dl_machine_links(const struct dl_machine *m)
{
    return dl_engine_links(m->bytes_per_s, m->topology->n_links);
}

void dl_machine_close(struct dl_machine *m)
{
    if (!m->is_borrowed) free_topology(m);
    if (!m->is_borrowed && !m->keeper) dl_free(m->bytes_per_s);
    json_decref(m->system_doc.value);
    json_decref(m->transport_doc.value);
}
