/* simgrid.h - all that dlsim uses of SimGrid, as C. The only file behind it, simgrid.cpp, is the only C++ in dlsim.
 *
 * SimGrid's Engine is one per process and its clock cannot be set back: open or drive once, and fork for more. */
#ifndef DL_ENGINE_SIMGRID_H
#define DL_ENGINE_SIMGRID_H

#include "sim/engine/engine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Our own model of time inside SimGrid's: SimGrid asks for the date of its next instant and tells when it has come. */
struct dl_clockwork {
    void *user;
    double (*next_s)(void *user); /* INFINITY: nothing more to come */
    void (*advance)(void *user);
};

/* SimGrid's own network model (CM02) over explicit lists of links, set up for plain physics: a flow pays its latency,
 * then shares by max-min, whatever the latencies. A link listed k times counts with weight k.
 * `guarded` gives each flow a private first link, which SimGrid's lazy update needs in order to be right (a test pins
 * what happens without). */
struct dl_adapter { /* all REQUIRED */
    void (*drive)(const struct dl_clockwork *clockwork);
    void (*cm02_open)(const struct dl_engine_link *links, size_t n_links, bool guarded);
    void (*cm02_flow)(const uint32_t *links, size_t n_links, const struct dl_bundle *bundle);
    void (*cm02_timer)(double date_s, dl_event_fn fire, void *user, uint32_t tag);
    /* Exact as long as no link is made faster than it was at first: a flow under way would not notice. */
    void (*cm02_set_bandwidth)(uint32_t link, double bytes_per_s);
    double (*cm02_used)(uint32_t link);
    double (*cm02_now_s)(void);
    void (*cm02_run)(void);
};
extern const struct dl_adapter dl_simgrid_adapter;

/* The adapter. The program loads it with SimGrid when it is first asked for (simgrid_late.c), for that takes as long as
 * a short run; tests are linked with it (simgrid_linked.c). */
const struct dl_adapter *dl_simgrid(void);

/* Before a process forks others that may simulate: they need not each load it then. Does nothing where it cannot. */
void dl_simgrid_load(void);
bool dl_simgrid_is_loaded(void);

#ifdef __cplusplus
}
#endif

#endif
