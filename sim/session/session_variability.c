/* session_variability.c - how slow each rank is by the variability of its machine, and the last of their hosts. */
#include "sim/session/session.h"

/* Software that runs without slow nodes has only what devices spread. */
static struct dl_variability variability_of(const struct dl_session *s)
{
    struct dl_variability v = s->machine.topology->variability;
    if (s->software.evicts_slow_nodes) v.slow_node_fraction = 0;
    return v;
}

static uint32_t node_of(const struct dl_session *s, uint32_t rank)
{
    return s->device_of_rank[rank] / s->machine.topology->node.n_devices;
}

static void add_times(const struct dl_segment *s, struct dl_alike *sum)
{
    sum->work_s += s->seconds - s->network_s;
    sum->network_s += s->network_s;
}

static struct dl_alike times_of(const struct dl_program *p)
{
    struct dl_alike sum = {0};
    add_times(&p->end.total, &sum);
    for (uint32_t i = 0; i < p->n_sequence; i++) add_times(&dl_item_block(p, &p->sequence[i])->total, &sum);
    return sum;
}

/* Stages that share a node have as much of it as of the ranks there. */
static void count_stages(const struct dl_session *s, const struct dl_step *step, struct dl_alike *stages)
{
    double *const share = dl_alloc(s->machine.topology->n_nodes * sizeof *share);
    for (uint32_t rank = 0; rank < s->job.n_devices; rank++) share[node_of(s, rank)]++;
    for (uint32_t rank = 0; rank < s->job.n_devices; rank++) {
        struct dl_alike *const stage = &stages[dl_ranks_index(step->ranks, step->stages, rank)];
        stage->n_devices++;
        stage->n_nodes += 1 / share[node_of(s, rank)];
    }
    dl_free(share);
}

static void count_one_replica(struct dl_alike *stages, uint32_t n_stages, uint32_t n_replicas)
{
    for (uint32_t i = 0; i < n_stages; i++) {
        stages[i].n_devices /= n_replicas;
        stages[i].n_nodes /= n_replicas;
    }
}

/* The step waits for one stage, which is as late as the last of all devices. The others fill and drain its pipeline:
 * all stages of a replica are on average as slow as each by itself, so the others are less, as one of them is the last.
 */
static void expect_of_stages(const struct dl_variability *v, struct dl_alike *stages, uint32_t n_stages,
                             uint32_t n_replicas, double *slowdowns)
{
    const struct dl_last last = dl_variability_last(v, stages, n_stages);
    count_one_replica(stages, n_stages, n_replicas);
    const double in_replica = dl_variability_last(v, stages, n_stages).slowdown,
                 more = in_replica - dl_variability_last(v, &stages[last.which], 1).slowdown;
    for (uint32_t i = 0; i < n_stages; i++)
        slowdowns[i] =
            i == last.which ? last.slowdown : dl_variability_last(v, &stages[i], 1).slowdown - more / (n_stages - 1);
}

static void expect(const struct dl_session *s, const struct dl_variability *v, double *slowdowns)
{
    const struct dl_step step = dl_session_step(s);
    const uint32_t n_stages = dl_ranks_count(step.ranks, step.stages);
    struct dl_alike *const stages = dl_alloc(n_stages * sizeof *stages);
    double *const of_stage = dl_alloc(n_stages * sizeof *of_stage);
    for (uint32_t i = 0; i < n_stages; i++) stages[i] = times_of(&step.programs[i]);
    count_stages(s, &step, stages);
    expect_of_stages(v, stages, n_stages, dl_ranks_count(step.ranks, step.replicas), of_stage);
    for (uint32_t rank = 0; rank < s->job.n_devices; rank++)
        slowdowns[rank] = of_stage[dl_ranks_index(step.ranks, step.stages, rank)];
    dl_free(of_stage);
    dl_free(stages);
}

/* Each node by its own seed, so those without ranks need not be drawn. */
static void draw(const struct dl_session *s, const struct dl_variability *v, double *slowdowns)
{
    const struct dl_topology *const t = s->machine.topology;
    double *const of_device = dl_alloc((size_t)t->n_devices * sizeof *of_device);
    for (uint32_t rank = 0; rank < s->job.n_devices; rank++) {
        double *const of_node = of_device + (size_t)node_of(s, rank) * t->node.n_devices;
        if (of_node[0] == 0) dl_variability_draw(v, s->request.seed, node_of(s, rank), t->node.n_devices, of_node);
        slowdowns[rank] = of_device[s->device_of_rank[rank]];
    }
    dl_free(of_device);
}

const double *dl_session_slowdown_of_rank(const struct dl_session *s)
{
    const struct dl_variability v = variability_of(s);
    if (!dl_variability_is_given(&v)) return NULL;
    double *const slowdowns = dl_arena_alloc(s->arena, s->job.n_devices * sizeof *slowdowns);
    (dl_session_engine(s)->alone ? expect : draw)(s, &v, slowdowns);
    return slowdowns;
}

void dl_session_spread_hosts(struct dl_session *s)
{
    const struct dl_variability hosts = {.spread_fraction = s->written.host_spread_fraction, .slow_node_slowdown = 1};
    const struct dl_alike ranks = {.work_s = 1, .n_devices = s->job.n_devices, .n_nodes = s->job.n_devices};
    s->software = s->written;
    if (dl_variability_is_given(&hosts) && s->job.n_devices > 1)
        dl_software_slow_hosts(&s->software, dl_variability_last(&hosts, &ranks, 1).slowdown);
}
