#include "validation/mpi/queue.h"

#include "validation/mpi/helper.h"

struct job {
    dl_job_fn run;
    struct dl_bucket *bucket;
};

struct dl_bucket_queue {
    struct dl_train *train;
    struct dl_helper *helper;
    struct job *jobs; /* of the whole training: those before n_done are done */
    size_t n_jobs, n_done, capacity;
    bool ends;
};

static void work(void *queue)
{
    struct dl_bucket_queue *const q = queue;
    dl_helper_lock(q->helper);
    for (;;) {
        while (q->n_done == q->n_jobs && !q->ends) dl_helper_wait(q->helper);
        if (q->n_done == q->n_jobs) break;
        const struct job job = q->jobs[q->n_done];
        dl_helper_unlock(q->helper);
        job.run(q->train, job.bucket);
        dl_helper_lock(q->helper);
        q->n_done++;
        dl_helper_signal(q->helper);
    }
    dl_helper_unlock(q->helper);
}

struct dl_bucket_queue *dl_queue_new(struct dl_train *t)
{
    struct dl_bucket_queue *const q = dl_alloc(sizeof *q);
    q->train = t;
    q->helper = dl_helper_new(t->options->spins);
    for (int set = 0; set < DL_N_SETS; set++) {
        t->beside[set] = t->replicas[set];
        t->beside[set].comm = dl_helper_comm(t->replicas[set].comm);
    }
    dl_helper_start(q->helper, work, q);
    return q;
}

void dl_queue_add(struct dl_bucket_queue *q, dl_job_fn run, struct dl_bucket *bucket)
{
    dl_pacer_reach(q->train->timeline.pacer, DL_START, DL_CAUSE_DATA);
    dl_helper_lock(q->helper);
    DL_GROW(q->jobs, q->n_jobs, q->capacity);
    q->jobs[q->n_jobs++] = (struct job){run, bucket};
    dl_helper_signal(q->helper);
    dl_helper_unlock(q->helper);
}

static bool is_done(const struct dl_bucket_queue *q, const struct dl_bucket *bucket)
{
    for (size_t i = q->n_done; i < q->n_jobs; i++)
        if (!bucket || q->jobs[i].bucket == bucket) return false;
    return true;
}

void dl_queue_wait(struct dl_bucket_queue *q, const struct dl_bucket *bucket)
{
    dl_pacer_reach(q->train->timeline.pacer, DL_WAIT, DL_CAUSE_DATA);
    dl_helper_lock(q->helper);
    while (!is_done(q, bucket)) dl_helper_wait(q->helper);
    if (!bucket) q->n_jobs = q->n_done = 0;
    dl_helper_unlock(q->helper);
}

void dl_queue_free(struct dl_bucket_queue *q)
{
    if (!q) return;
    dl_helper_lock(q->helper);
    q->ends = true;
    dl_helper_signal(q->helper);
    dl_helper_unlock(q->helper);
    dl_helper_free(q->helper);
    dl_free(q->jobs);
    dl_free(q);
}
