/* flows.h - bundles and timers over time, on top of the event queue and the sharing of links. The caller owns the
 * clock: it asks when the next instant is, then says that it has come. */
#ifndef DL_ENGINE_FLOWS_H
#define DL_ENGINE_FLOWS_H

#include "sim/engine/engine.h"

struct dl_flows;

struct dl_flows *dl_flows_new(const struct dl_engine_link *links, size_t n_links);
void dl_flows_free(struct dl_flows *f);

void dl_flows_start(struct dl_flows *f, const struct dl_bundle *bundle);
void dl_flows_timer(struct dl_flows *f, double date_s, dl_event_fn fire, void *user, uint32_t tag);
void dl_flows_set_bandwidth(struct dl_flows *f, uint32_t link, double bytes_per_s);
double dl_flows_wanted(const struct dl_flows *f, uint32_t link);

/* Settle the rates, then the date of the next instant, or INFINITY. */
double dl_flows_next_s(struct dl_flows *f);
/* Fetch what the instants after that one need, and have it fetched by whoever is called then. coming: OPTIONAL. */
void dl_flows_fetch(const struct dl_flows *f, dl_coming_fn coming);
/* Let everything of that instant happen. */
void dl_flows_advance(struct dl_flows *f);

double dl_flows_now_s(const struct dl_flows *f);
uint64_t dl_flows_n_events(const struct dl_flows *f);
size_t dl_flows_n_live(const struct dl_flows *f); /* bundles begun and not ended */

#endif
