/* swap.c - with SMPI a synchronous send is over when the message has arrived, latency included: then every step of a
 * ring would take as long as its longest hop. An eager one is not waited for. */
#include "validation/mpi/collectives/swap.h"

void dl_swap(MPI_Comm comm, MPI_Datatype type, struct dl_outgoing out, struct dl_incoming in)
{
    const int tag = 0;
    MPI_Sendrecv(out.at, (int)out.n, type, out.to, tag, in.at, (int)in.n, type, in.from, tag, comm, MPI_STATUS_IGNORE);
}
