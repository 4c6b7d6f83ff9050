/* stack.h - a strategy file: what is trained, with which settings, under which stack of strategies. */
#ifndef DL_STRATEGIES_STACK_H
#define DL_STRATEGIES_STACK_H

#include "strategies/schedule.h"
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

struct dl_job {
    const char *workload; /* name of the workload file */
    struct dl_setting setting;
    struct dl_stack *stack;
    uint32_t n_devices;
    const char *software; /* name of the software file */
};

/* Schema dlsim/strategy/1. n_devices 0: as the file says, else the product of the ways. */
enum dl_status dl_job_read(struct dl_json doc, uint32_t n_devices, struct dl_arena *arena, struct dl_job *out,
                           struct dl_error *err);

/* The keys of a strategy file, for `dlsim list`. */
const struct dl_field *dl_job_fields(size_t *n_fields);

/* What the setting asks of its schedule; times are 0. */
struct dl_schedule_request dl_setting_schedule(const struct dl_setting *s);

/* How the software trains the model; software must outlive the job. */
void dl_job_suit(struct dl_job *job, const struct dl_software *software, const struct dl_model *model);

/* What the devices and their network do of themselves. */
void dl_job_suit_machine(struct dl_job *job, const struct dl_device *device, const struct dl_topology *topology);

/* All strategies' refusals of a model; and of so many blocks in its longest part. */
enum dl_status dl_job_check(const struct dl_job *job, const struct dl_model *model, struct dl_arena *arena,
                            struct dl_error *err);
enum dl_status dl_job_check_blocks(const struct dl_job *job, const struct dl_model *model, uint32_t n_blocks,
                                   struct dl_arena *arena, struct dl_error *err);

#endif
