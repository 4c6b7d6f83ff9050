/* training_members.c - which lockstep groups are in which communicator.
 *
 * A communicator is the lockstep groups that communicate over one channel: replicas of a stage, all or one instance of
 * those that come together; a lockstep group alone, or a window of them that shares experts; or the two lockstep groups
 * of a replica whose stages hold the same. What such a window has beside the work of layers is another channel. Copies
 * to the hosts, and those back, are a lockstep group's own. */
#include "sim/engine/training_instances.h"

/* In one array: by stage those of all replicas, then those of instances; then as lockstep groups, three times: of one
 * lockstep group, of a window by its first lockstep group, and of two stages by the earlier one; once more where
 * something beside layers is simulated, and where copies are, three times more. */
enum { of_one, of_window, of_stages, of_beside, of_copies_out, of_copies_in, of_copies_ahead, n_kinds };

static size_t n_communicators(const struct dl_training *t)
{
    const size_t kinds = dl_training_simulates(t, DL_CHANNEL_COPIES_OUT) ? n_kinds
                         : dl_training_simulates(t, DL_CHANNEL_BESIDE)   ? of_copies_out
                                                                         : of_beside;
    return t->n_stages + dl_training_n_instances(t) + kinds * t->n_lockstep_groups;
}

static struct communicator *communicator(const struct dl_training *t, size_t kind, uint32_t lockstep_group)
{
    return &t->communicators[t->n_stages + dl_training_n_instances(t) + kind * t->n_lockstep_groups + lockstep_group];
}

struct communicator *dl_training_replicas(const struct dl_training *t, uint32_t stage)
{
    return &t->communicators[stage];
}

/* The instance that the lockstep group is in. */
static struct communicator *of_instance(const struct dl_training *t, const struct lockstep_group *c,
                                        const struct instances *of)
{
    const size_t time = of->n_times > 1 ? c->iteration : 0;
    const uint32_t instance = of->of_replica[time * t->n_replicas + c->replica];
    struct communicator *const at = &t->communicators[of->first + (time * t->n_stages + c->stage) * of->n + instance];
    *at = at->n ? *at
                : (struct communicator){.channel = DL_CHANNEL_REPLICAS,
                                        .first = c->stage * t->n_played,
                                        .n = of->size,
                                        .replicas = &of->replicas[time * t->n_replicas + instance * of->size],
                                        .instance = instance};
    return at;
}

/* Replicas that are simulated and come together. */
static uint32_t n_in_window(const struct dl_training *t, const struct dl_comm *comm)
{
    const struct dl_step *const s = &t->request.step;
    return t->request.one_replica ? 1 : dl_ranks_count(s->ranks, comm->members.digits & s->replicas);
}

static struct communicator *in_lockstep(const struct dl_training *t, const struct lockstep_group *c,
                                        const struct dl_comm *comm)
{
    const uint32_t n = n_in_window(t, comm), first = (uint32_t)(c - t->lockstep_groups) - c->replica % n;
    const size_t kind = comm->channel == DL_CHANNEL_BESIDE ? of_beside : n > 1 ? of_window : of_one;
    struct communicator *const at = communicator(t, kind, first);
    *at = at->n ? *at : (struct communicator){.channel = comm->channel, .first = first, .n = n, .stride = 1};
    return at;
}

static struct communicator *of_two_stages(const struct dl_training *t, const struct lockstep_group *c,
                                          const struct dl_comm *comm)
{
    const uint32_t *const stages = comm->members.pair, first = stages[0] * t->n_played + c->replica;
    struct communicator *const at = communicator(t, of_stages, first);
    *at = at->n
              ? *at
              : (struct communicator){
                    .channel = comm->channel, .first = first, .n = 2, .stride = (stages[1] - stages[0]) * t->n_played};
    return at;
}

static struct communicator *for_copies(const struct dl_training *t, const struct lockstep_group *c,
                                       const struct dl_comm *comm)
{
    const uint32_t first = (uint32_t)(c - t->lockstep_groups);
    struct communicator *const at = communicator(t, of_copies_out + (comm->channel - DL_CHANNEL_COPIES_OUT), first);
    *at = at->n ? *at : (struct communicator){.channel = comm->channel, .first = first, .n = 1, .stride = 1};
    return at;
}

struct communicator *dl_training_communicator(const struct dl_training *t, const struct lockstep_group *c,
                                              const struct dl_comm *comm)
{
    const struct instances *const instances = dl_training_instances(t, comm);
    if (instances) return of_instance(t, c, instances);
    switch (comm->channel) {
    case DL_CHANNEL_REPLICAS: break;
    case DL_CHANNEL_STAGES: return of_two_stages(t, c, comm);
    case DL_CHANNEL_LOCKSTEP:
    case DL_CHANNEL_BESIDE: return in_lockstep(t, c, comm);
    case DL_CHANNEL_COPIES_OUT:
    case DL_CHANNEL_COPIES_IN:
    case DL_CHANNEL_AHEAD: return for_copies(t, c, comm);
    }
    return dl_training_replicas(t, c->stage);
}

void dl_training_open_communicators(struct dl_training *t)
{
    dl_training_open_instances(t);
    t->communicators = dl_alloc(n_communicators(t) * sizeof *t->communicators);
    t->latest = dl_alloc(t->request.step.n_calls * t->n_lockstep_groups * sizeof *t->latest);
    for (uint32_t stage = 0; stage < t->n_stages; stage++)
        t->communicators[stage] = (struct communicator){
            .channel = DL_CHANNEL_REPLICAS, .first = stage * t->n_played, .n = t->n_played, .stride = 1};
}

static void end_exchanges(struct communicator *at)
{
    for (uint32_t i = 0; i < at->n_rooms; i++) {
        dl_exchange_free(at->running[i]);
        dl_exchange_free(at->ended[i]);
    }
}

static void close_communicator(struct communicator *at)
{
    for (size_t i = 0; i < at->n_chosen; i++) {
        dl_free(at->chosen[i].own);
        dl_free(at->chosen[i].by_instance);
    }
    void *const blocks[] = {at->posted, at->chosen, at->running, at->ended};
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
}

void dl_training_close_communicators(struct dl_training *t)
{
    const size_t n = n_communicators(t);
    for (size_t i = 0; i < n; i++) end_exchanges(&t->communicators[i]);
    for (size_t i = 0; i < n; i++) close_communicator(&t->communicators[i]); /* exchanges used them */
    for (uint32_t i = 0; i < t->n_lockstep_groups; i++) dl_free(t->lockstep_groups[i].queue.items);
    dl_training_close_instances(t);
    dl_free(t->communicators);
    dl_free(t->latest);
}
