/* strategy.h - ways to spread training over devices, as filters over the events of a step: of work, of communication
 * and of memory.
 *
 * The model is a stream of events, layer by layer; each strategy rewrites those that it knows and passes the others on.
 * Filters run in the order of the one table in strategies.c, whatever the order in the strategy file. To add one: one
 * file with a const struct dl_strategy and one line there. */
#ifndef DL_STRATEGIES_STRATEGY_H
#define DL_STRATEGIES_STRATEGY_H

#include "strategies/event.h"

/* What a strategy is asked whether it can do. */
struct dl_check {
    const char *where; /* its entry in the stack */
    const struct dl_setting *setting;
    const struct dl_model *model;
    const struct dl_stack *stack; /* of all strategies */
    struct dl_arena *arena;       /* for the places of errors */
};

/* The place of a key of the entry. */
const char *dl_check_place(const struct dl_check *check, const char *key);

/* Refuse an entry's ways that do not divide `whole`, which is so many of `what`; the nearest that do are named. The
 * same for parts by another key. */
enum dl_status dl_check_parts(const struct dl_check *check, const char *key, uint32_t parts, double whole,
                              const char *what, struct dl_error *err);
enum dl_status dl_check_ways(const struct dl_check *check, uint32_t ways, double whole, const char *what,
                             struct dl_error *err);

/* Refuse parts by a key that do not divide the heads of a layer: of attention, and those of keys and values, which may
 * be fewer; half a head is nothing. These may be told with their copies. */
enum dl_status dl_check_heads(const struct dl_check *check, const char *key, uint32_t parts,
                              const struct dl_layer *layer, struct dl_error *err);

const struct dl_kernel *dl_check_find_attention(const struct dl_check *check);

/* How another entry of a strategy makes a step need less memory: see sim/memory/remedies.h. */
struct dl_relief {
    uint32_t rank;    /* the lower, the less it costs, and the earlier it is tried */
    uint32_t n_steps; /* from weak to strong */
    /* Put a step, from 0 on, into the entry, of which a new one has the name alone. Returns it in words (arena memory),
     * or NULL where nothing changes. NULL in place of the function: twice, four times, ... the ways of the axis. */
    const char *(*change)(json_t *entry, const struct dl_setting *setting, uint32_t step, struct dl_arena *arena);
    enum dl_axis axis;
};

enum { DL_MOST_PLACES = 8, DL_OWN_PLACE = DL_MOST_PLACES };

struct dl_strategy {
    const char *name, *doc;
    bool sums_gradients;           /* over the replicas: without such a one there must be a single replica */
    bool needs_host;               /* of the devices, with a link to them: it copies */
    bool replays_launches;         /* some are recorded once */
    bool builds_model;             /* it says what is trained: workloads are built for it */
    const struct dl_brought *axes; /* OPTIONAL: that it brings, with their ways */
    size_t n_axes;
    /* OPTIONAL: the host waits at each launch until the device has done it, and that takes so long beside the kernel.
     */
    double (*launch_wait_s)(const void *options);
    const struct dl_field *fields; /* OPTIONAL: keys of its entry in "stack" besides "name" */
    size_t n_fields, options_size;
    size_t state_size;    /* of what it remembers from event to event; 0: nothing */
    bool notes_layers;    /* it keeps a figure of each layer, as from its forward to its backward */
    const void *defaults; /* REQUIRED where options_size > 0 */
    /* OPTIONAL: tell the others what this entry means for them (its ways, for example). */
    enum dl_status (*claim)(const void *options, struct dl_json entry, struct dl_setting *setting,
                            struct dl_error *err);
    /* OPTIONAL: replicas as a number of several digits, so that groups of them can be along each: fill in how many
     * values each has, at most DL_MOST_PEERS, and return how many there are; 0: that cannot be. */
    uint32_t (*split_replicas)(const void *options, uint32_t replicas, uint32_t *parts);
    /* OPTIONAL: refuse what cannot be done with this model, now that all ways are known. */
    enum dl_status (*check)(const void *options, const struct dl_check *what, struct dl_error *err);
    /* OPTIONAL: refuse what cannot be done with so many blocks in the longest part of the model. */
    enum dl_status (*check_blocks)(const void *options, const struct dl_check *what, uint32_t n_blocks,
                                   struct dl_error *err);
    /* OPTIONAL: NULL passes everything on. */
    enum dl_status (*rewrite)(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err);
    /* OPTIONAL: what a layer's place means for what it makes of the layer, beyond its work and sizes, its pass, and
     * whether it is in the last micro-batch: a number below DL_MOST_PLACES, the same for places that mean the same.
     * DL_OWN_PLACE: its number, those around it or what the strategy remembers of others matters too. Equal layers in
     * equal places go through the stack once. The event is LAYER, with last_micro; its pass is HOLD or OPTIMIZER for
     * memory of the stage. NULL, with rewrite: each has its own. */
    uint32_t (*place)(const void *options, const void *state, const struct dl_event *layer,
                      const struct dl_setting *setting);
    /* OPTIONAL: say what tells its entry from others, in the head of a report; nothing that is usual. */
    void (*tell)(const void *options, void (*say)(void *user, const char *words), void *user);
    const struct dl_relief *relief; /* OPTIONAL: NULL: it has none */
};
/* For `place`: all mean the same. */
uint32_t dl_any_place(const void *options, const void *state, const struct dl_event *layer,
                      const struct dl_setting *setting);
size_t dl_strategy_count(void);
const struct dl_strategy *dl_strategy_get(size_t index);

#endif
