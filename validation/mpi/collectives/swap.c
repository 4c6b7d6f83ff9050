#include "validation/mpi/collectives/swap.h"

void dl_swap(MPI_Comm comm, MPI_Datatype type, struct dl_outgoing out, struct dl_incoming in)
{
    MPI_Request request;
    MPI_Irecv(in.at, (int)in.n, type, in.from, 0, comm, &request);
    MPI_Ssend(out.at, (int)out.n, type, out.to, 0, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
