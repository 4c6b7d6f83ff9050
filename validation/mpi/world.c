/* world.c - from the number of a rank to its coordinates, as dlsim counts them, and to its teams. */
#include "validation/mpi/train.h"

static void find_coordinates(const struct dl_setting *s, uint32_t rank, uint32_t at[DL_N_AXES])
{
    for (size_t i = 0; i < DL_N_AXES; i++) {
        at[s->order[i]] = rank % s->ways[s->order[i]];
        rank /= s->ways[s->order[i]];
    }
}

/* Those for which `color` is the same, in the order of their ranks. */
static struct dl_team gather_team(const struct dl_train *t, uint32_t color)
{
    struct dl_team team = {
        .world = t->world, .first_server = (int)t->job.n_devices, .n_servers = (int)t->s->servers, .tag = (int)color};
    MPI_Comm_split(t->workers, (int)color, t->rank, &team.comm);
    MPI_Comm_rank(team.comm, &team.rank);
    MPI_Comm_size(team.comm, &team.n);
    return team;
}

/* The rank at the same coordinates but for one axis. */
static uint32_t with(const struct dl_train *t, enum dl_axis axis, uint32_t coordinate)
{
    uint32_t at[DL_N_AXES];
    for (int i = 0; i < DL_N_AXES; i++) at[i] = t->at[i];
    at[axis] = coordinate;
    return dl_rank_at(t->s, at);
}

static void gather_teams(struct dl_train *t)
{
    const uint32_t tensor = t->at[DL_AXIS_TENSOR], data = t->at[DL_AXIS_DATA];
    const uint32_t ways = t->s->expert_ways, columns = t->s->grid[0];
    t->tensor = gather_team(t, with(t, DL_AXIS_TENSOR, 0));
    t->row = gather_team(t, with(t, DL_AXIS_TENSOR, tensor - tensor % columns));
    t->column = gather_team(t, with(t, DL_AXIS_TENSOR, tensor % columns));
    t->replicas[DL_SET_COMMON] = gather_team(t, with(t, DL_AXIS_DATA, 0));
    t->replicas[DL_SET_EXPERTS] = gather_team(t, with(t, DL_AXIS_DATA, data % ways));
    t->experts = gather_team(t, with(t, DL_AXIS_DATA, data - data % ways));
}

enum dl_status dl_train_join(struct dl_train *t, struct dl_error *err)
{
    const uint32_t n = t->job.n_devices + t->s->servers;
    if ((uint32_t)t->n_ranks != n)
        return dl_fail(err, DL_IMPOSSIBLE, t->strategy_doc.where,
                       "needs %u ranks%s, mpirun started %d; start it with -n %u or give --devices", n,
                       t->s->servers ? " with the servers" : "", t->n_ranks, n);
    t->is_server = (uint32_t)t->rank >= t->job.n_devices;
    MPI_Comm_split(t->world, t->is_server, t->rank, &t->workers);
    if (t->is_server) return DL_OK;
    find_coordinates(t->s, (uint32_t)t->rank, t->at);
    gather_teams(t);
    return DL_OK;
}

void dl_train_part(struct dl_train *t)
{
    struct dl_team *const teams[] = {
        &t->tensor, &t->row, &t->column, &t->replicas[DL_SET_COMMON], &t->replicas[DL_SET_EXPERTS], &t->experts};
    if (t->workers == MPI_COMM_NULL) return;
    for (size_t i = 0; !t->is_server && i < DL_COUNT(teams); i++) MPI_Comm_free(&teams[i]->comm);
    MPI_Comm_free(&t->workers);
}
