/* swap.h - send one message and hear another; when it returns, what was sent has been received.
 *
 * So a rank never has two messages on its way at once, as if there were a port that one leaves before the next. With
 * MPI_Sendrecv a small lead of one rank grows from step to step: what it sends next halves the rate of what its partner
 * still waits for. */
#ifndef DL_MPI_SWAP_H
#define DL_MPI_SWAP_H

#include <mpi.h>
#include <stddef.h>

struct dl_outgoing {
    const void *at;
    size_t n;
    int to;
};

struct dl_incoming {
    void *at;
    size_t n;
    int from;
};

void dl_swap(MPI_Comm comm, MPI_Datatype type, struct dl_outgoing out, struct dl_incoming in);

#endif
