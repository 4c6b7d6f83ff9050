/* mute.c - preloaded into ranks that are to do the work of a training all at once, without its messages: what they send
 * goes nowhere, and who asks for anything from anyone is told nothing at all.
 *
 * What they receive are numbers of both signs, as large as parameters are: a Xeon takes a seventh of the time for a
 * relu of zeros, where it always decides the same. What is short may be a count, and is zero. */
#include <mpi.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { n_values = 1 << 16, least_bytes = 4096 };
static const float most = 0.1f;

static const float *some_values(void)
{
    static float values[n_values];
    static int are_drawn;
    unsigned short state[3] = {1, 2, 3};
    for (int i = 0; i < n_values && !are_drawn; i++) values[i] = most * (2 * (float)erand48(state) - 1);
    are_drawn = 1;
    return values;
}

static void fill(char *at, size_t bytes)
{
    const float *const values = some_values();
    for (size_t done = 0, part; done < bytes; done += part) {
        part = bytes - done < n_values * sizeof *values ? bytes - done : n_values * sizeof *values;
        memcpy(at + done, values, part);
    }
}

static int hear(void *at, int n, MPI_Datatype type, int from, int tag, MPI_Status *status)
{
    int bytes;
    MPI_Type_size(type, &bytes);
    if (from == MPI_ANY_SOURCE) n = 0;
    const size_t all = (size_t)n * (size_t)bytes;
    if (all < least_bytes)
        memset(at, 0, all);
    else
        fill(at, all);
    if (status == MPI_STATUS_IGNORE) return MPI_SUCCESS;
    status->MPI_SOURCE = from;
    status->MPI_TAG = tag;
    return MPI_Status_set_elements(status, type, n);
}

int MPI_Send(const void *at, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    (void)at, (void)n, (void)type, (void)to, (void)tag, (void)comm;
    return MPI_SUCCESS;
}

int MPI_Ssend(const void *at, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    return MPI_Send(at, n, type, to, tag, comm);
}

int MPI_Isend(const void *at, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    *request = MPI_REQUEST_NULL;
    return MPI_Send(at, n, type, to, tag, comm);
}

int MPI_Recv(void *at, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    (void)comm;
    return hear(at, n, type, from, tag, status);
}

int MPI_Irecv(void *at, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    (void)comm;
    *request = MPI_REQUEST_NULL;
    return hear(at, n, type, from, tag, MPI_STATUS_IGNORE);
}
