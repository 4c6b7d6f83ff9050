/* folded.h - a collective simulated as the few bundles that it folds into (see sim/collective/fold.h). */
#ifndef DL_ENGINE_FOLDED_H
#define DL_ENGINE_FOLDED_H

#include "sim/engine/exchange.h"

struct dl_folded;

/* Start now; finished(user, causes) when all bundles have ended and what they brought is reduced. */
typedef void (*dl_folded_fn)(void *user, const struct dl_causes *causes);
struct dl_folded *dl_folded_start(const struct dl_exchange_spec *spec, struct dl_error *err, dl_folded_fn finished,
                                  void *user);
uint64_t dl_folded_bundles(const struct dl_folded *f);
void dl_folded_free(struct dl_folded *f);

#endif
