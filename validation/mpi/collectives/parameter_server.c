/* parameter_server.c - members send their values to servers, each of which adds one part of them and sends it back.
 *
 * A server knows nothing of the model: a team is the tag of its messages, a sum is complete when every member has sent.
 * It adds in the order of the ranks, so that the same run gives the same bits. */
#include <stdlib.h>

#include "sim/core/memory.h"
#include "validation/mpi/collectives/collectives.h"

enum { goodbye = 0 }; /* a message of no values */

static void sum(const struct dl_team *team, dl_real *values, size_t n)
{
    for (int server = 0; server < team->n_servers; server++) {
        const struct dl_range part = dl_part_of(n, (size_t)server, (size_t)team->n_servers);
        if (part.n)
            MPI_Send(values + part.from, (int)part.n, DL_MPI_REAL, team->first_server + server, team->tag, team->world);
    }
    for (int server = 0; server < team->n_servers; server++) {
        const struct dl_range part = dl_part_of(n, (size_t)server, (size_t)team->n_servers);
        if (part.n)
            MPI_Recv(values + part.from, (int)part.n, DL_MPI_REAL, team->first_server + server, team->tag, team->world,
                     MPI_STATUS_IGNORE);
    }
}

const struct dl_sum_algorithm dl_sum_parameter_server = {.name = "parameter_server", .sum = sum};

void dl_dismiss_servers(const struct dl_team *team)
{
    for (int server = 0; server < team->n_servers; server++)
        MPI_Send(NULL, goodbye, DL_MPI_REAL, team->first_server + server, team->tag, team->world);
}

/* ---- the server ---- */

struct message {
    int source;
    dl_real *values;
};

/* What has come for one team and is not complete. */
struct shelf {
    int tag, n;
    size_t n_values;
    struct message *messages; /* room for all members */
};

static struct shelf *find_shelf(struct shelf *shelves, size_t *n_shelves, int tag, int members)
{
    for (size_t i = 0; i < *n_shelves; i++)
        if (shelves[i].tag == tag) return &shelves[i];
    struct shelf *const new = &shelves[(*n_shelves)++];
    *new = (struct shelf){.tag = tag, .messages = dl_alloc((size_t)members * sizeof *new->messages)};
    return new;
}

static int by_source(const void *a, const void *b)
{
    return ((const struct message *)a)->source - ((const struct message *)b)->source;
}

static void send_back(struct shelf *s, MPI_Comm world)
{
    qsort(s->messages, (size_t)s->n, sizeof *s->messages, by_source);
    dl_real *const sum_of = s->messages[0].values;
    for (int i = 1; i < s->n; i++)
        for (size_t j = 0; j < s->n_values; j++) sum_of[j] += s->messages[i].values[j];
    for (int i = 0; i < s->n; i++)
        MPI_Send(sum_of, (int)s->n_values, DL_MPI_REAL, s->messages[i].source, s->tag, world);
    for (int i = 0; i < s->n; i++) dl_free(s->messages[i].values);
    s->n = 0;
}

/* False: it was a goodbye. */
static bool take(struct shelf *shelves, size_t *n_shelves, const struct dl_service *s)
{
    MPI_Status status;
    int n = 0;
    dl_real *const values = dl_room(s->most);
    MPI_Recv(values, (int)s->most, DL_MPI_REAL, MPI_ANY_SOURCE, MPI_ANY_TAG, s->world, &status);
    MPI_Get_count(&status, DL_MPI_REAL, &n);
    if (n == goodbye) {
        dl_free(values);
        return false;
    }
    struct shelf *const on = find_shelf(shelves, n_shelves, status.MPI_TAG, s->members);
    on->n_values = (size_t)n;
    on->messages[on->n++] = (struct message){status.MPI_SOURCE, values};
    if (on->n == s->members) send_back(on, s->world);
    return true;
}

void dl_serve_parameters(const struct dl_service *s)
{
    struct shelf *const shelves = dl_alloc((size_t)s->n_workers * sizeof *shelves);
    size_t n_shelves = 0;
    for (int left = s->n_workers; left;) left -= !take(shelves, &n_shelves, s);
    for (size_t i = 0; i < n_shelves; i++) dl_free(shelves[i].messages);
    dl_free(shelves);
}
