/* patient.c - preloaded into ranks that are more than the cores: a rank that waits sleeps for a moment instead of
 * asking again at once, so that those that work have the cores. Open MPI calls sched_yield when it has nothing to do
 * (mpi_yield_when_idle). What this adds to a message is in every ping-pong, too. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

static const long pause_ns = 50000;

int sched_yield(void)
{
    prctl(PR_SET_TIMERSLACK, 1UL); /* of this thread; else the kernel adds 50 us */
    return nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
}
