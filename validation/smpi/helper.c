/* helper.c - helpers of simulated ranks. SMPI knows actors beside the ranks, but no messages from or to them; so of 2 n
 * ranks the first n train, and rank n + i is the helper of rank i, on the same host. All ranks are in one process, so
 * that they can tell each other of their work. */
#include "validation/mpi/helper.h"

#include <assert.h>
#include <simgrid/cond.h>
#include <simgrid/mutex.h>
#include <stdbool.h>

#include "sim/core/memory.h"

struct task {
    void (*work)(void *user);
    void *user;
};

/* Where a rank and its helper meet. */
struct desk {
    sg_mutex_t lock;
    sg_cond_t changed;
    struct task task; /* work NULL: there is none */
    bool ends;
};

enum { most_ranks = 64 };
static struct desk desks[most_ranks];

struct dl_helper {
    struct desk *desk;
};

/* ---- the helper ---- */

static void serve(struct desk *desk)
{
    sg_mutex_lock(desk->lock);
    for (;;) {
        while (!desk->task.work && !desk->ends) sg_cond_wait(desk->changed, desk->lock);
        if (!desk->task.work) break;
        const struct task task = desk->task;
        sg_mutex_unlock(desk->lock);
        task.work(task.user);
        sg_mutex_lock(desk->lock);
        desk->task.work = NULL;
        sg_cond_notify_all(desk->changed);
    }
    sg_mutex_unlock(desk->lock);
    sg_mutex_destroy(desk->lock);
    sg_cond_destroy(desk->changed);
}

/* ---- its rank ---- */

static struct desk *own_desk(void)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return &desks[rank];
}

static void begin_task(struct desk *desk, struct task task)
{
    sg_mutex_lock(desk->lock);
    desk->task = task;
    sg_cond_notify_all(desk->changed);
    sg_mutex_unlock(desk->lock);
}

static void await_task(struct desk *desk)
{
    sg_mutex_lock(desk->lock);
    while (desk->task.work) sg_cond_wait(desk->changed, desk->lock);
    sg_mutex_unlock(desk->lock);
}

int dl_helper_threads(void) { return MPI_THREAD_SINGLE; }

MPI_Comm dl_helper_world(void)
{
    int rank, n;
    MPI_Comm half;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    assert(n % 2 == 0 && n / 2 <= most_ranks);
    const bool helps = rank >= n / 2;
    if (!helps) desks[rank] = (struct desk){.lock = sg_mutex_init(), .changed = sg_cond_init()};
    MPI_Comm_split(MPI_COMM_WORLD, helps, rank, &half);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!helps) return half;
    serve(&desks[rank - n / 2]);
    return MPI_COMM_NULL;
}

void dl_helper_dismiss(void)
{
    struct desk *const desk = own_desk();
    sg_mutex_lock(desk->lock);
    desk->ends = true;
    sg_cond_notify_all(desk->changed);
    sg_mutex_unlock(desk->lock);
}

/* ---- communicators ---- */

struct gathering {
    int ranks[most_ranks], n; /* of helpers, in MPI_COMM_WORLD */
    MPI_Comm comm;
};

static void gather(void *user)
{
    struct gathering *const g = user;
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, g->n, g->ranks, &group);
    MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &g->comm);
    MPI_Group_free(&group);
}

MPI_Comm dl_helper_comm(MPI_Comm ranks)
{
    struct gathering g = {0};
    struct desk *const desk = own_desk();
    int members[most_ranks], n_world;
    MPI_Group world, group;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Comm_group(ranks, &group);
    MPI_Comm_size(MPI_COMM_WORLD, &n_world);
    MPI_Comm_size(ranks, &g.n);
    for (int i = 0; i < g.n; i++) members[i] = i;
    MPI_Group_translate_ranks(group, g.n, members, world, g.ranks);
    for (int i = 0; i < g.n; i++) g.ranks[i] += n_world / 2;
    begin_task(desk, (struct task){gather, &g});
    await_task(desk);
    return g.comm;
}

/* ---- work ---- */

struct dl_helper *dl_helper_new(bool spins)
{
    (void)spins;
    struct dl_helper *const h = dl_alloc(sizeof *h);
    h->desk = own_desk();
    return h;
}

void dl_helper_start(struct dl_helper *h, void (*work)(void *user), void *user)
{
    begin_task(h->desk, (struct task){work, user});
}

void dl_helper_lock(struct dl_helper *h) { sg_mutex_lock(h->desk->lock); }
void dl_helper_unlock(struct dl_helper *h) { sg_mutex_unlock(h->desk->lock); }
void dl_helper_wait(struct dl_helper *h) { sg_cond_wait(h->desk->changed, h->desk->lock); }
void dl_helper_signal(struct dl_helper *h) { sg_cond_notify_all(h->desk->changed); }

void dl_helper_free(struct dl_helper *h)
{
    await_task(h->desk);
    dl_free(h);
}
