#include "validation/mpi/timeline.h"

#include <mpi.h>
#include <string.h>

double dl_now_s(const struct dl_rank_timeline *l) { return MPI_Wtime() - l->zero_s; }

enum dl_cause dl_switch_cause(struct dl_rank_timeline *l, enum dl_cause cause)
{
    const enum dl_cause before = l->cause;
    dl_pacer_reach(l->pacer, DL_DO, cause);
    const double now_s = dl_now_s(l);
    l->by_cause[before] += now_s - l->since_s;
    l->since_s = now_s;
    l->cause = cause;
    return before;
}

void dl_forget_times(struct dl_rank_timeline *l)
{
    memset(l->by_cause, 0, sizeof l->by_cause);
    memset(l->by_item, 0, sizeof l->by_item);
    l->optimizer_s = 0;
}

void dl_add_moment(struct dl_moments *m, struct dl_moment moment)
{
    DL_GROW(m->list, m->n, m->capacity);
    m->list[m->n++] = moment;
}
