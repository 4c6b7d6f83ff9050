/* helper.h - a second thread of a rank, with one lock and one signal between the two. In validation/smpi, where ranks
 * have no threads, it is a rank of its own on the same host. */
#ifndef DL_MPI_HELPER_H
#define DL_MPI_HELPER_H

#include <mpi.h>
#include <stdbool.h>

struct dl_helper;

/* What MPI must allow, as MPI_Init_thread is asked for it. */
int dl_helper_threads(void);

/* All ranks that train or serve. MPI_COMM_NULL: this one was a helper, and has done all. */
MPI_Comm dl_helper_world(void);
/* This rank needs its helper no more. */
void dl_helper_dismiss(void);

/* `spins`: who waits for the other does not sleep, for each has a core; in simulated time it means nothing. */
struct dl_helper *dl_helper_new(bool spins);
/* How helpers of these ranks reach each other; collective. */
MPI_Comm dl_helper_comm(MPI_Comm ranks);
/* From now on it does this work, alone. */
void dl_helper_start(struct dl_helper *h, void (*work)(void *user), void *user);
void dl_helper_lock(struct dl_helper *h);
void dl_helper_unlock(struct dl_helper *h);
/* With the lock held, which is given up meanwhile: until the other one signals. */
void dl_helper_wait(struct dl_helper *h);
void dl_helper_signal(struct dl_helper *h);
/* When its work has returned. */
void dl_helper_free(struct dl_helper *h);

#endif
