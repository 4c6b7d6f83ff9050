/* world.c - from the number of a rank to its coordinates, as dlsim counts them, and to its teams. */
#include "validation/mpi/train.h"

static void find_coordinates(struct dl_train *t)
{
    static const dl_digits along[DL_N_AXES] = {[DL_AXIS_TENSOR] = DL_ALONG_TENSOR,
                                               [DL_AXIS_CONTEXT] = DL_ALONG_CONTEXT,
                                               [DL_AXIS_DATA] = DL_ALONG_DATA,
                                               [DL_AXIS_PIPELINE] = DL_ALONG_PIPELINE};
    for (size_t axis = 0; axis < DL_N_AXES; axis++)
        t->at[axis] = dl_ranks_index(&t->s->ranks, along[axis], (uint32_t)t->rank);
}

/* Those along these digits, in the order of their ranks. */
static struct dl_team gather_team(const struct dl_train *t, dl_digits along)
{
    const uint32_t rank = (uint32_t)t->rank, place = dl_ranks_index(&t->s->ranks, along, rank);
    const int first = (int)(rank - dl_ranks_offset(&t->s->ranks, along, place));
    struct dl_team team = {
        .world = t->world, .first_server = (int)t->job.n_devices, .n_servers = (int)t->s->servers, .tag = first};
    MPI_Comm_split(t->workers, first, t->rank, &team.comm);
    MPI_Comm_rank(team.comm, &team.rank);
    MPI_Comm_size(team.comm, &team.n);
    return team;
}

static void gather_teams(struct dl_train *t)
{
    t->tensor = gather_team(t, DL_ALONG_TENSOR);
    t->row = gather_team(t, DL_ALONG_X);
    t->column = gather_team(t, DL_ALONG_Y | DL_ALONG_Z);
    t->replicas[DL_SET_COMMON] = gather_team(t, DL_ALONG_DATA);
    t->replicas[DL_SET_EXPERTS] = gather_team(t, DL_ALONG_SHARDS | DL_ALONG_COPIES);
    t->experts = gather_team(t, DL_ALONG_EXPERTS);
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
    find_coordinates(t);
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
