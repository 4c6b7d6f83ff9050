#define _POSIX_C_SOURCE 200809L
#include "validation/mpi/queue.h"

#include <pthread.h>

struct job {
    dl_job_fn run;
    struct dl_bucket *bucket;
};

struct dl_queue {
    struct dl_train *train;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct job *jobs; /* of the whole training: those before n_done are done */
    size_t n_jobs, n_done, capacity;
    bool ends;
};

static void *work(void *queue)
{
    struct dl_queue *const q = queue;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        while (q->n_done == q->n_jobs && !q->ends) pthread_cond_wait(&q->changed, &q->lock);
        if (q->n_done == q->n_jobs) break;
        const struct job job = q->jobs[q->n_done];
        pthread_mutex_unlock(&q->lock);
        job.run(q->train, job.bucket);
        pthread_mutex_lock(&q->lock);
        q->n_done++;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

struct dl_queue *dl_queue_new(struct dl_train *t)
{
    struct dl_queue *const q = dl_alloc(sizeof *q);
    q->train = t;
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->changed, NULL);
    pthread_create(&q->thread, NULL, work, q);
    return q;
}

void dl_queue_add(struct dl_queue *q, dl_job_fn run, struct dl_bucket *bucket)
{
    pthread_mutex_lock(&q->lock);
    DL_GROW(q->jobs, q->n_jobs, q->capacity);
    q->jobs[q->n_jobs++] = (struct job){run, bucket};
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

static bool is_done(const struct dl_queue *q, const struct dl_bucket *bucket)
{
    for (size_t i = q->n_done; i < q->n_jobs; i++)
        if (!bucket || q->jobs[i].bucket == bucket) return false;
    return true;
}

void dl_queue_wait(struct dl_queue *q, const struct dl_bucket *bucket)
{
    pthread_mutex_lock(&q->lock);
    while (!is_done(q, bucket)) pthread_cond_wait(&q->changed, &q->lock);
    if (!bucket) q->n_jobs = q->n_done = 0;
    pthread_mutex_unlock(&q->lock);
}

void dl_queue_free(struct dl_queue *q)
{
    if (!q) return;
    pthread_mutex_lock(&q->lock);
    q->ends = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    pthread_mutex_destroy(&q->lock);
    pthread_cond_destroy(&q->changed);
    dl_free(q->jobs);
    dl_free(q);
}
