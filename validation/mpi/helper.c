#define _POSIX_C_SOURCE 200809L
#include "validation/mpi/helper.h"

#include <pthread.h>
#include <sched.h>

#include "sim/core/memory.h"

struct dl_helper {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool spins;
    void (*work)(void *user);
    void *user;
};

static void *run(void *helper)
{
    const struct dl_helper *const h = helper;
    h->work(h->user);
    return NULL;
}

int dl_helper_threads(void) { return MPI_THREAD_MULTIPLE; }

MPI_Comm dl_helper_world(void) { return MPI_COMM_WORLD; }
void dl_helper_dismiss(void) {}
MPI_Comm dl_helper_comm(MPI_Comm ranks) { return ranks; }

struct dl_helper *dl_helper_new(bool spins)
{
    struct dl_helper *const h = dl_alloc(sizeof *h);
    h->spins = spins;
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
    return h;
}

void dl_helper_start(struct dl_helper *h, void (*work)(void *user), void *user)
{
    h->work = work;
    h->user = user;
    pthread_create(&h->thread, NULL, run, h);
}

void dl_helper_lock(struct dl_helper *h)
{
    if (!h->spins)
        pthread_mutex_lock(&h->lock);
    else
        while (pthread_mutex_trylock(&h->lock)) sched_yield();
}

void dl_helper_unlock(struct dl_helper *h) { pthread_mutex_unlock(&h->lock); }

void dl_helper_wait(struct dl_helper *h)
{
    if (!h->spins) {
        pthread_cond_wait(&h->changed, &h->lock);
        return;
    }
    dl_helper_unlock(h);
    sched_yield();
    dl_helper_lock(h);
}

void dl_helper_signal(struct dl_helper *h) { pthread_cond_broadcast(&h->changed); }

void dl_helper_free(struct dl_helper *h)
{
    pthread_join(h->thread, NULL);
    pthread_mutex_destroy(&h->lock);
    pthread_cond_destroy(&h->changed);
    dl_free(h);
}
