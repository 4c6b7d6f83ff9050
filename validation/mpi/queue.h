/* queue.h - exchanges beside the work: a thread of its own does them one after the other, as they come. While it has
 * any, its teams are its alone. */
#ifndef DL_MPI_QUEUE_H
#define DL_MPI_QUEUE_H

#include "validation/mpi/train.h"

typedef void (*dl_job_fn)(struct dl_train *t, struct dl_bucket *bucket);

struct dl_bucket_queue *dl_queue_new(struct dl_train *t);
void dl_queue_add(struct dl_bucket_queue *q, dl_job_fn job, struct dl_bucket *bucket);
/* Until the bucket's jobs are done; NULL: all. */
void dl_queue_wait(struct dl_bucket_queue *q, const struct dl_bucket *bucket);
void dl_queue_free(struct dl_bucket_queue *q);

#endif
