/* pacer.h - how long computing takes where the training itself is simulated (validation/smpi): as long as dlsim says.
 *
 * A pacer follows the template of the item at work, and before an exchange spends the seconds of the kernels that come
 * before it there. In a real training computing takes the time that it takes: there a pacer is NULL, and does nothing.
 */
#ifndef DL_MPI_PACER_H
#define DL_MPI_PACER_H

#include "sim/core/error.h"
#include "sim/program/program.h"
#include "strategies/schedule.h"

struct dl_train;
struct dl_pacer;

/* For the machine of --topo, which real trainings refuse. */
enum dl_status dl_pacer_new(struct dl_train *t, struct dl_error *err);
/* The training begins: all ranks go on at the same instant. */
void dl_pacer_start(struct dl_pacer *p);
/* Its template is now the one of this item; NULL: of the end of the step. */
void dl_pacer_begin(struct dl_pacer *p, const struct dl_item *item);
/* An exchange comes: up to it, which is a DL_DO of this cause among ranks that go in step, a DL_START or a DL_WAIT
 * among replicas. */
void dl_pacer_reach(struct dl_pacer *p, enum dl_instruction_kind kind, enum dl_cause cause);
/* All the rest of the template. */
void dl_pacer_end(struct dl_pacer *p);
void dl_pacer_free(struct dl_pacer *p);

#endif
