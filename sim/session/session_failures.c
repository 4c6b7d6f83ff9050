/* session_failures.c - the failures of the whole training run that the step of a session is one of. */
#include <math.h>

#include "sim/session/session.h"
#include "topologies/copy_paths.h"

/* That at least one rank or server is on. */
static uint32_t count_nodes(const struct dl_session *s)
{
    const struct dl_topology *const t = s->machine.topology;
    const uint32_t n = s->job.n_devices + s->job.setting.servers;
    bool *const is_used = dl_alloc(t->n_nodes * sizeof *is_used);
    uint32_t n_used = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool *const node = &is_used[dl_topology_node_of(t, s->device_of_rank[i])];
        n_used += !*node;
        *node = true;
    }
    dl_free(is_used);
    return n_used;
}

/* Of a device to its host, when all of its node copy; 0: nothing is said of a way. */
static double copy_bytes_per_s(const struct dl_session *s, uint32_t n_nodes)
{
    const uint32_t n = s->job.n_devices;
    const struct dl_copy_wish wish = {.n_devices = n, .n_on_node = (n + n_nodes - 1) / n_nodes};
    struct dl_copy_rate link = {0};
    if (!dl_copy_rate(s->machine.topology, &wish, s->machine.bytes_per_s, &link)) return 0;
    return link.memory_bytes_per_s > 0 ? fmin(link.bytes_per_s, link.memory_bytes_per_s) : link.bytes_per_s;
}

/* Of a checkpoint, on the device that holds most of it. */
static double copied_bytes(const struct dl_session *s)
{
    double most = 0;
    for (uint32_t i = 0; i < dl_n_stages(&s->job.setting); i++)
        most = fmax(most, s->memory[i].parameters + s->memory[i].optimizer);
    return most;
}

enum dl_status dl_session_check_checkpoints(struct dl_session *s, const struct dl_checkpoints *asked)
{
    const struct dl_topology *const t = s->machine.topology;
    const char *const option = asked->steps ? "--checkpoint-steps" : "--checkpoint-async";
    if (s->err.status || (!asked->steps && !asked->asynchronous)) return s->err.status;
    if (!dl_reliability_is_given(&t->reliability))
        return dl_fail(
            &s->err, DL_IMPOSSIBLE, option,
            "%s does not say how often parts fail; state it, as in --set 'topo.reliability={\"node_mtbf_hours\": 2000, "
            "\"detect_s\": 600, \"restart_s\": 300}'",
            t->name);
    if (t->storage.write_bytes_per_s == 0)
        return dl_fail(&s->err, DL_IMPOSSIBLE, option,
                       "%s does not say how fast checkpoints are written; state it, as in --set "
                       "'topo.storage={\"write_bytes_per_s\": 100e9}'",
                       t->name);
    if (asked->asynchronous && copy_bytes_per_s(s, count_nodes(s)) == 0)
        return dl_fail(&s->err, DL_IMPOSSIBLE, "--checkpoint-async",
                       "%s says nothing of its host; its node needs \"host\" with \"link_bandwidth_bytes_per_s\"",
                       t->name);
    return DL_OK;
}

enum dl_status dl_session_failures(struct dl_session *s, const struct dl_checkpoints *asked)
{
    if (!s->report.campaign) return DL_OK;
    const uint32_t n_nodes = count_nodes(s);
    s->failing = dl_failing_run(
        &(struct dl_failing_run_request){.topology = s->machine.topology,
                                         .checkpoints = *asked,
                                         .n_devices = s->job.n_devices + s->job.setting.servers,
                                         .n_nodes = n_nodes,
                                         .checkpoint_bytes = dl_memory_of_checkpoint(&s->job.setting, &s->model),
                                         .copied_bytes = copied_bytes(s),
                                         .copy_bytes_per_s = copy_bytes_per_s(s, n_nodes),
                                         .step_s = s->report.result.step_s,
                                         .n_steps = s->campaign.n_steps,
                                         .energy = &s->campaign.energy,
                                         .site = &s->campaign.site,
                                         .seed = s->request.seed});
    s->report.failing = &s->failing;
    dl_sources_add(&s->report.failing_sources, s->machine.system_doc, "reliability", s->arena);
    dl_sources_add(&s->report.failing_sources, s->machine.system_doc, "storage", s->arena);
    if (s->failing.status != DL_TOO_OFTEN) return DL_OK;
    return dl_fail(&s->err, DL_IMPOSSIBLE, "--checkpoint-steps",
                   "a checkpoint would begin while the one before is still being written, which takes %.3g s; at least "
                   "%.0f steps must lie between them",
                   s->failing.write_s, s->failing.steps.between);
}
