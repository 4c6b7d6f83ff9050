/* stack.h - the levels of strategies that the events of layers go through, down to the sink. */
#ifndef DL_STRATEGIES_STACK_H
#define DL_STRATEGIES_STACK_H

#include "strategies/strategy.h"

typedef enum dl_status (*dl_sink_fn)(void *user, const struct dl_event *ev, struct dl_error *err);

/* One level: a strategy with its options, or at the end the sink. Levels follow each other in memory. */
struct dl_stack {
    const struct dl_strategy *strategy; /* NULL: the sink */
    const void *options;
    void *state;
    double *notes;     /* by layer of the model; NULL: the strategy makes none */
    const char *where; /* its entry in the file */
    const struct dl_setting *setting;
    dl_sink_fn sink;
    void *user;
};

/* Before the first event, and after the last: what strategies remember is cleared, and the sink gets what comes out.
 * Notes live in the arena. */
struct dl_stack_use {
    size_t n_layers; /* of the model */
    struct dl_arena *arena;
    dl_sink_fn sink;
    void *user;
};
void dl_stack_begin(struct dl_stack *top, const struct dl_stack_use *use);
void dl_stack_end(struct dl_stack *top);

/* What the place of a layer means to all of them, as one number (dl_strategy.place); false: it is the layer's own. */
bool dl_stack_place(const struct dl_stack *top, const struct dl_event *layer, uint64_t *out);

/* The entry of a strategy that needs a host; NULL: none does. */
const char *dl_stack_on_host(const struct dl_stack *top);
/* Whether launches block, by one of its strategies, and how long each takes beside the host's work and its kernel. */
bool dl_stack_blocks_launches(const struct dl_stack *top, double *wait_s);

#endif
