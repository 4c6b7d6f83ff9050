#include "sim/app/shown.h"

#include <assert.h>
#include <string.h>

#include "sim/app/deprecated.h"
#include "sim/collective/collective.h"
#include "sim/session/whole_job.h"

static void add(struct dl_shown *s, const char *key, double value)
{
    assert(s->n_figures < DL_MOST_FIGURES);
    s->figures[s->n_figures++] = (struct dl_figure_shown){.key = key, .value = value};
}

static void add_text(struct dl_shown *s, const char *key, const char *text)
{
    assert(s->n_figures < DL_MOST_FIGURES);
    s->figures[s->n_figures++] = (struct dl_figure_shown){.key = key, .text = text};
}

/* Returns whether there is such a file. */
static bool refer(struct dl_shown *s, enum dl_file_kind_index index, const char *name, struct dl_json place)
{
    const struct dl_file_kind *const kind = dl_file_kind_get(index);
    struct dl_error missing = {0};
    const struct dl_sought sought = {.folder = kind->folder, .what = kind->name, .name = name, .file = s->doc.file};
    struct dl_reference *const r = &s->references[s->n_references++];
    assert(s->n_references <= DL_MOST_REFERENCES);
    *r = (struct dl_reference){.kind = kind->name, .name = name, .place = strstr(place.where, ":/") + 1};
    if (dl_find_sought(&sought, s->arena, &r->path, &missing)) r->path = NULL;
    return r->path != NULL;
}

/* ---- devices ---- */

/* Of so many devices. */
static void add_peaks(struct dl_shown *s, const struct dl_device *d, double n_devices)
{
    for (int p = 0; p < DL_N_PRECISIONS; p++)
        if (dl_device_supports(d, (enum dl_precision)p))
            add(s, dl_arena_format(s->arena, "peak_%s_flop_per_s", dl_precision_name((enum dl_precision)p)),
                n_devices * d->peak_flop_per_s[p]);
}

static enum dl_status derive_device(struct dl_shown *s, struct dl_error *err)
{
    struct dl_device d;
    if (dl_device_read(s->doc, s->arena, &d, err)) return err->status;
    const char *const libraries = dl_device_libraries(&d);
    add_text(s, "model", d.model->name);
    add(s, "memory_bytes", d.memory_bytes);
    add(s, "memory_bytes_per_s", d.memory_bytes_per_s);
    add_peaks(s, &d, 1);
    if (*libraries) add_text(s, "timed_libraries", libraries);
    return DL_OK;
}

/* ---- topologies ---- */

static double sum_of_edges(const struct dl_node *node, bool (*counts)(const struct dl_node *, const struct dl_edge *))
{
    double sum = 0;
    for (size_t e = 0; e < node->n_edges; e++)
        if (counts(node, &node->edges[e])) sum += node->edges[e].bandwidth_bytes_per_s;
    return sum;
}

static bool is_of_first_device(const struct dl_node *node, const struct dl_edge *e)
{
    (void)node;
    return e->reach == DL_REACH_DIRECT && (e->a == 0 || e->b == 0);
}

static bool is_of_nic(const struct dl_node *node, const struct dl_edge *e)
{
    return node->vertices[e->a].kind == DL_NIC || node->vertices[e->b].kind == DL_NIC;
}

static enum dl_status add_devices(struct dl_shown *s, const struct dl_topology *t, struct dl_error *err)
{
    const struct dl_want want = {.folder = DL_DEVICES,
                                 .what = "device",
                                 .input = {.name = t->node.device, .file = s->doc.file},
                                 .prefix = "device"};
    const struct dl_texts nothing = {0};
    struct dl_json doc = {0};
    struct dl_device d;
    if (!dl_load_document(&want, &nothing, s->arena, &doc, err) && !dl_device_read(doc, s->arena, &d, err)) {
        add(s, "device_memory_bytes", d.memory_bytes);
        add(s, "device_memory_bytes_per_s", d.memory_bytes_per_s);
        add(s, "memory_bytes", t->n_devices * d.memory_bytes);
        add_peaks(s, &d, t->n_devices);
    }
    json_decref(doc.value);
    return err->status;
}

static enum dl_status derive_topology(struct dl_shown *s, struct dl_error *err)
{
    struct dl_topology *t = NULL;
    if (dl_topology_read(s->doc, s->arena, &t, err)) return err->status;
    const struct dl_json node = dl_json_member(s->doc, "node", s->arena);
    const bool has_device = refer(s, DL_FILE_DEVICE, t->node.device, dl_json_member(node, "device", s->arena));
    refer(s, DL_FILE_TRANSPORT, t->transport, dl_json_member(s->doc, "transport", s->arena));
    add(s, "nodes", t->n_nodes);
    add(s, "devices", t->n_devices);
    add(s, "links", t->first_storage_link);
    if (t->network.kind) add_text(s, "network", t->network.kind->name);
    if (t->node.n_nics) add(s, "node_network_bytes_per_s", sum_of_edges(&t->node, is_of_nic));
    add(s, "device_links_bytes_per_s", sum_of_edges(&t->node, is_of_first_device));
    if (has_device) add_devices(s, t, err);
    dl_topology_free(t);
    return err->status;
}

/* ---- workloads ---- */

static double sum_of_experts(const struct dl_model *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n_layers; i++) sum += m->layers[i].expert_parameters;
    return sum;
}

static void add_model(struct dl_shown *s, const struct dl_model *m)
{
    const double full = m->model_flop_per_sample[DL_FLOP_FULL], causal = m->model_flop_per_sample[DL_FLOP_CAUSAL];
    add(s, "parameters", dl_model_parameters(m));
    if (m->routing.experts > 0) {
        add(s, "expert_parameters", sum_of_experts(m));
        add(s, "experts", m->routing.experts);
        add(s, "experts_per_token", m->routing.top_k);
    }
    add(s, "layers", (double)m->n_layers);
    add(s, "flop_per_sample", full);
    if (m->tokens_per_sample == 0) return;
    add(s, "tokens_per_sample", m->tokens_per_sample);
    add(s, "flop_per_token", full / m->tokens_per_sample);
    if (causal < full) add(s, "causal_flop_per_token", causal / m->tokens_per_sample);
}

static enum dl_status derive_workload(struct dl_shown *s, struct dl_error *err)
{
    struct dl_model model;
    if (dl_workload_read(s->doc, 1, (struct dl_model_code){.attention = "flash"}, s->arena, &model, err))
        return err->status;
    add_model(s, &model);
    return DL_OK;
}

/* ---- strategies and software ---- */

static enum dl_status derive_strategy(struct dl_shown *s, struct dl_error *err)
{
    static const struct dl_session_request nothing;
    struct dl_whole_job whole;
    if (dl_whole_job_read(s->doc, &nothing, s->arena, &whole, err)) return err->status;
    const struct dl_setting *const set = &whole.job.setting;
    refer(s, DL_FILE_WORKLOAD, whole.job.workload, dl_json_member(s->doc, "workload", s->arena));
    refer(s, DL_FILE_SOFTWARE, whole.job.software, dl_json_member(s->doc, "software", s->arena));
    add(s, "devices", whole.job.n_devices);
    for (uint32_t i = 0; i < dl_n_axes(set); i++) {
        const enum dl_axis axis = dl_axis_by_default(set, i);
        add(s, dl_arena_format(s->arena, "%s_ways", dl_axis_name(set, axis)), set->ways[axis]);
    }
    add(s, "expert_ways", dl_n_expert_ranks(set));
    add(s, "zero_stage", set->zero_stage);
    add(s, "global_batch", set->global_batch);
    add(s, "microbatch", set->microbatch);
    add(s, "microbatches", set->micros);
    if (dl_n_stages(set) > 1) add_text(s, "schedule", set->schedule);
    add_text(s, "precision", dl_precision_name(set->precision));
    add_text(s, "optimizer", set->optimizer);
    add_model(s, &whole.model);
    add(s, "flop_per_step", set->global_batch * whole.model.model_flop_per_sample[DL_FLOP_FULL]);
    return DL_OK;
}

static enum dl_status derive_software(struct dl_shown *s, struct dl_error *err)
{
    struct dl_software software;
    if (dl_software_read(s->doc, s->arena, &software, err)) return err->status;
    add(s, "host_s_per_launch", software.host_s_per_launch);
    add(s, "launches_per_kernel", software.launches_per_kernel);
    add_text(s, "attention", software.code.attention);
    add(s, "kernel_rules", (double)software.kernels.n);
    add(s, "operand_rules", (double)software.operands.n);
    return DL_OK;
}

/* ---- transports and scenarios ---- */

static enum dl_status derive_transport(struct dl_shown *s, struct dl_error *err)
{
    const struct dl_topology nowhere = {.arena = s->arena}; /* no links: whatever is said of them is only read */
    struct dl_transport transport;
    const char *protocols = "";
    if (dl_transport_read(s->doc, &nowhere, 1, s->arena, &transport, err) ||
        dl_check_algorithms(s->doc, &transport, s->arena, err))
        return err->status;
    for (size_t i = 0; i < transport.n_protocols; i++)
        protocols = dl_arena_format(s->arena, "%s%s%s", protocols, i ? ", " : "", transport.protocols[i].name);
    add_text(s, "protocols", protocols);
    if (transport.algorithms)
        add(s, "algorithms", (double)transport.n_algorithms);
    else
        add_text(s, "algorithms", "all");
    if (transport.tuner) add_text(s, "tuner", transport.tuner);
    return DL_OK;
}

static enum dl_status derive_scenario(struct dl_shown *s, struct dl_error *err)
{
    struct dl_scenario scenario;
    if (dl_scenario_read(s->doc, NULL, s->arena, &scenario, err)) return err->status;
    dl_tell_old_key(&scenario);
    add(s, "link_changes", (double)scenario.n_changes);
    add(s, "slow_replicas", (double)scenario.n_slow);
    add(s, "jitter_fraction", scenario.jitter_fraction);
    return DL_OK;
}

enum dl_status dl_shown_derive(struct dl_shown *s, struct dl_error *err)
{
    static enum dl_status (*const derive[DL_N_FILE_KINDS])(struct dl_shown * s, struct dl_error * err) = {
        [DL_FILE_TOPOLOGY] = derive_topology,   [DL_FILE_DEVICE] = derive_device,
        [DL_FILE_TRANSPORT] = derive_transport, [DL_FILE_WORKLOAD] = derive_workload,
        [DL_FILE_STRATEGY] = derive_strategy,   [DL_FILE_SOFTWARE] = derive_software,
        [DL_FILE_SCENARIO] = derive_scenario,
    };
    return derive[s->kind->index](s, err);
}

static void take(void *user, const struct dl_fact *fact)
{
    struct dl_shown *const s = user;
    DL_GROW(s->facts, s->n_facts, s->facts_capacity);
    s->facts[s->n_facts++] = *fact;
}

void dl_shown_list_facts(struct dl_shown *s) { dl_json_facts(s->doc, s->arena, take, s); }
