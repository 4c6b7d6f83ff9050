#include "sim/campaign/failing_run.h"

#include <math.h>

static const double hour_s = 3600;

/* Nobody waits for a run with more, nor for its simulation. */
static const double most_failures = 1e6;

static void add_kind(struct dl_failing_run *out, const char *what, double n, double mtbf_hours)
{
    if (mtbf_hours == 0 || n == 0) return;
    out->kinds[out->n_kinds++] = (struct dl_failing){.what = what, .n = n, .mtbf_s = mtbf_hours * hour_s};
}

static void count_what_fails(const struct dl_failing_run_request *q, struct dl_failing_run *out)
{
    const struct dl_topology *const t = q->topology;
    const struct dl_reliability *const r = &t->reliability;
    const double ports = t->network.kind ? t->network.endpoints_per_node : 0;
    add_kind(out, "device", q->n_devices, r->device_mtbf_hours);
    add_kind(out, "node", q->n_nodes, r->node_mtbf_hours);
    add_kind(out, "link", q->n_nodes * ports, r->link_mtbf_hours);
    out->detect_s = r->detect_s;
    out->restart_s = r->restart_s;
}

/* No more than goes through the links of the nodes to the network, where there is one. */
static double shared_rate(const struct dl_failing_run_request *q, double bytes_per_s)
{
    const struct dl_network *const net = &q->topology->network;
    const double of_port = json_number_value(json_object_get(net->where.value, "bandwidth_bytes_per_s"));
    return of_port > 0 ? fmin(bytes_per_s, q->n_nodes * net->endpoints_per_node * of_port) : bytes_per_s;
}

static void time_checkpoint(const struct dl_failing_run_request *q, struct dl_failing_run *out)
{
    const struct dl_storage *const storage = &q->topology->storage;
    out->checkpoint_bytes = q->checkpoint_bytes;
    out->write_bytes_per_s = shared_rate(q, storage->write_bytes_per_s);
    out->read_bytes_per_s = shared_rate(q, storage->read_bytes_per_s);
    out->write_s = q->checkpoint_bytes / out->write_bytes_per_s;
    out->load_s = q->checkpoint_bytes / out->read_bytes_per_s;
}

/* False: fewer steps than can be were asked for. */
static bool choose_interval(const struct dl_failing_run_request *q, struct dl_failing_run *out)
{
    const bool asynchronous = q->checkpoints.asynchronous;
    out->asynchronous = asynchronous;
    out->restarts =
        (struct dl_restarts){.mtbf_s = dl_failing_together_s(out->kinds, out->n_kinds),
                             .recovery_s = out->detect_s + out->restart_s + out->load_s,
                             .blocking_s = asynchronous ? q->copied_bytes / q->copy_bytes_per_s : out->write_s,
                             .writing_s = asynchronous ? out->write_s : 0};
    out->steps = (struct dl_saved_steps){.step_s = q->step_s, .n = q->n_steps};
    out->steps_given = q->checkpoints.steps > 0;
    if (!out->steps_given) {
        out->steps.between = dl_restarts_best_steps(&out->restarts, q->step_s, q->n_steps);
        return true;
    }
    const double fewest = fmin(dl_restarts_fewest_steps(&out->restarts, q->step_s), q->n_steps);
    const double asked = (double)q->checkpoints.steps;
    out->steps.between = fmin(fmax(asked, fewest), q->n_steps);
    return asked >= fewest;
}

static bool ends(const struct dl_failing_run *f) { return f->failures <= most_failures; /* false also for NaN */ }

static void divide(struct dl_failing_run *out)
{
    const double n_checkpoints = ceil(out->steps.n / out->steps.between);
    out->goodput = out->steps.n * out->steps.step_s / out->seconds;
    out->checkpointing = (n_checkpoints * out->restarts.blocking_s + out->restarts.writing_s) / out->seconds;
    out->recovering = dl_restarts_recovering(&out->restarts);
    out->lost = fmax(1 - out->goodput - out->checkpointing - out->recovering, 0);
}

static void add_footprint(const struct dl_failing_run_request *q, struct dl_failing_run *out)
{
    const double idle_s = out->seconds * (out->checkpointing + out->recovering);
    out->footprint = dl_footprint_with_idle(q->energy, q->site, out->seconds - idle_s, idle_s, q->n_devices);
}

static void simulate(const struct dl_failing_run_request *q, struct dl_failing_run *out)
{
    static const double most_trials = 1000, least_trials = 10;
    out->seed = q->seed;
    out->n_trials = (uint64_t)fmin(fmax(most_failures / fmax(out->failures, 1), least_trials), most_trials);
    out->simulated = dl_failures_simulate(&(struct dl_failure_trials){.restarts = &out->restarts,
                                                                      .kinds = out->kinds,
                                                                      .n_kinds = out->n_kinds,
                                                                      .steps = out->steps,
                                                                      .seed = q->seed,
                                                                      .n_trials = out->n_trials});
}

struct dl_failing_run dl_failing_run(const struct dl_failing_run_request *q)
{
    struct dl_failing_run out = {.status = DL_NO_RELIABILITY};
    count_what_fails(q, &out);
    if (!out.n_kinds) return out;
    out.status = DL_NO_STORAGE;
    if (q->topology->storage.write_bytes_per_s == 0) return out;
    time_checkpoint(q, &out);
    out.status = DL_NO_WAY_TO_HOST;
    if (q->checkpoints.asynchronous && q->copy_bytes_per_s == 0) return out;
    out.status = DL_TOO_OFTEN;
    if (!choose_interval(q, &out)) return out;
    out.seconds = dl_restarts_whole_s(&out.restarts, &out.steps);
    out.failures = out.seconds / out.restarts.mtbf_s;
    out.device_s = out.seconds * q->n_devices;
    out.status = DL_NEVER_ENDS;
    if (!ends(&out)) return out;
    out.status = DL_FAILS;
    divide(&out);
    add_footprint(q, &out);
    simulate(q, &out);
    return out;
}
