/* sent_parts.h - activations and gradients between stages. Tensor ranks that all have the whole may send a part each;
 * who gets the parts gathers them (Narayanan et al., SC21, section 4.1). */
#ifndef DL_STRATEGIES_SENT_PARTS_H
#define DL_STRATEGIES_SENT_PARTS_H

#include "strategies/sink.h"

/* Between two stages, of all ranks in lockstep together. */
double dl_sent_bytes(const struct dl_sink *s);
/* What a position does with parts before its forward or backward. */
enum dl_status dl_gather_sent(struct dl_sink *s, const struct dl_position *p, enum dl_pass pass, struct dl_error *err);

#endif
