/* mute.c - preloaded into ranks that are to do the work of a training all at once, without its messages: what they send
 * goes nowhere, what they receive is zero, and who asks for anything from anyone is told nothing at all. */
#include <mpi.h>
#include <stddef.h>
#include <string.h>

static int hear(void *at, int n, MPI_Datatype type, int from, int tag, MPI_Status *status)
{
    int bytes;
    MPI_Type_size(type, &bytes);
    if (from == MPI_ANY_SOURCE) n = 0;
    memset(at, 0, (size_t)n * (size_t)bytes);
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
