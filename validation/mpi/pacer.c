#include "validation/mpi/pacer.h"

#include "validation/mpi/train.h"

enum dl_status dl_pacer_new(struct dl_train *t, struct dl_error *err)
{
    if (!t->options->topo) return DL_OK;
    return dl_fail(err, DL_IMPOSSIBLE, "--topo", "is for a training that SMPI simulates; this one is real");
}

void dl_pacer_start(struct dl_pacer *p) { (void)p; }
void dl_pacer_begin(struct dl_pacer *p, const struct dl_item *item) { (void)p, (void)item; }
void dl_pacer_reach(struct dl_pacer *p, enum dl_instruction_kind kind, enum dl_cause cause)
{
    (void)p, (void)kind, (void)cause;
}
void dl_pacer_end(struct dl_pacer *p) { (void)p; }
void dl_pacer_free(struct dl_pacer *p) { (void)p; }
