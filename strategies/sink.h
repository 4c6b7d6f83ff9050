/* sink.h - the bottom of a stack of strategies: events become priced instructions of the program being built. */
#ifndef DL_STRATEGIES_SINK_H
#define DL_STRATEGIES_SINK_H

#include "sim/cost/power.h"
#include "strategies/in_step.h"
#include "topologies/copy_paths.h"

enum { DL_KERNEL_CACHE = 128 };

struct dl_priced_kernel {
    struct dl_kernel kernel;
    struct dl_price price;             /* as the framework does it, at the clock of the step */
    struct dl_draw draw;               /* of devices that tell it */
    double launches, bytes;            /* that must be moved at least */
    const struct dl_kernel_rule *rule; /* OPTIONAL: of the framework, for it */
    bool is_part_of_another;
    bool is_group; /* products of experts, launched one by one */
    bool known;
};

struct dl_priced_collective {
    struct dl_comm what;
    double part, weights; /* of a trip to experts, see dl_event */
    uint32_t call;        /* DL_EVERY_CALL: in no program yet */
};

/* The groups of ranks in lockstep along some digits. */
struct dl_sink_groups {
    dl_digits along;
    const struct dl_group *all; /* in lockstep with the first rank, whose group is the first */
    double crowding;            /* see below; 0: not known yet */
};

/* Whole gradients, in ops that free them: of the bucket that layers fill, and of the one before it on its way. */
struct dl_sink_buckets {
    struct dl_memory_ops filling, sent;
    double bytes; /* of those that fill it */
};

struct dl_layer_record;

/* Layers of the model that are alike, and what was noted of them: see layer_records.h. */
struct dl_layer_classes {
    uint32_t *of, *sizes; /* by layer, the first of its class; and by that one, how many these are */
    struct dl_layer_record **records;
};

/* What one kernel draws; and several of them. */
struct dl_sink_draw {
    enum dl_bound bound;
    struct dl_draw draw;
};
struct dl_sink_draws {
    const struct dl_sink_draw *items;
    size_t n;
};

/* What the layer at work has come to so far. */
struct dl_sink_note {
    size_t into_from, into_memory_from, weights_from, weights_memory_from; /* what it adds to templates */
    struct dl_sink_draw *draws;
    size_t n_draws, draws_capacity;
    bool is_open;    /* there is one */
    bool is_its_own; /* what comes has a number of its own, or depends on layers before it */
};

struct dl_position_record;

/* What the position at work has come to so far, and those before it: see position_records.h. */
struct dl_position_note {
    struct dl_position_record *records;
    struct dl_sink_draws *draws; /* that are counted, layer by layer */
    size_t n_draws, draws_capacity;
    bool is_its_own;
};

struct dl_sink {
    const struct dl_lower_request *request;
    struct dl_arena *arena;
    struct dl_sink_groups groups[DL_MOST_IN_STEP];
    size_t n_groups;
    struct dl_priced_collective **prices;
    size_t n_prices, prices_capacity;
    struct dl_priced_kernel kernels[DL_KERNEL_CACHE]; /* by hash: blocks are alike, so the same kernels come again */
    struct dl_lowered *out;
    struct dl_template *into;
    struct dl_copy_rate copies[DL_N_PATHS][2]; /* outwards and inwards; bytes_per_s 0: not asked for yet */
    struct dl_copy_rate reads[DL_N_PATHS];     /* inwards, where only the first stage's devices do */
    const char *copies_where;                  /* the entry that copies; NULL: none does */
    size_t layer_begins;                       /* first instruction of the layer at work, in `into` */
    uint32_t n_beside_layer;                   /* collectives that go on beside it, for another micro-batch */
    uint32_t last_beside_layer;                /* the last of these calls */
    uint32_t *after_layer; /* calls of what is not hidden there: when the layer and those are done */
    size_t n_after_layer, after_layer_capacity;
    struct dl_template *weights; /* weight gradients of a backward, where they go into a template of their own */
    struct dl_memory_ops *begin; /* what is there before the first step, of the stage being built */
    struct dl_sink_buckets buckets;
    bool blocks_launches; /* the host waits at each until the device has done it */
    double launch_wait_s; /* which takes so long beside the kernel; 0 where it does not */
    struct dl_layer_classes classes;
    struct dl_sink_note note;
    struct dl_position_note position;
    double clock;            /* of the devices, over their highest */
    struct dl_draw *counted; /* [DL_N_BOUNDS]: what kernels draw is added here; NULL: it is not counted */
};

/* Count what kernels draw, if that is done here. */
static inline void dl_sink_count_draws(struct dl_sink *s, const struct dl_sink_draw *draws, size_t n)
{
    for (size_t i = 0; s->counted && i < n; i++) dl_draw_add(&s->counted[draws[i].bound], &draws[i].draw, 1);
}
/* The template that an event belongs to. */
struct dl_template *dl_sink_place(const struct dl_sink *s, const struct dl_event *ev);
/* What a kernel takes: until the next is asked for. */
const struct dl_priced_kernel *dl_sink_price_kernel(struct dl_sink *s, const struct dl_kernel *k);
/* Where launches block, the device waits for each: the host's time of `what` becomes a stretch of the device's. */
void dl_sink_blocking_launch(const struct dl_sink *s, struct dl_template *into, struct dl_instruction *what);
/* What the launch of a collective takes the host. */
double dl_sink_launch_s(const struct dl_sink *s, const struct dl_event *ev);
/* A collective of ranks in lockstep, started at an instruction that is there already, before the kernel that it goes on
 * beside, or at the end. */
#define DL_AT_END SIZE_MAX
enum dl_status dl_sink_in_lockstep(struct dl_sink *s, const struct dl_event *ev, size_t from, struct dl_error *err);
/* Beside the layer at work. What of a trip to experts the software does not hide there is launched with the rest and
 * waited for at the end of the layer, since both parts go over the same links, one after the other:
 * a layer takes max(work, hidden x trips) + (1 - hidden) x trips. */
enum dl_status dl_sink_beside_layer(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err);
/* Those beside a layer end one after the other, the last of them last; then comes what is not hidden. */
void dl_sink_end_layer(struct dl_sink *s);
void dl_sink_init_groups(struct dl_sink *s);
struct dl_sink_groups *dl_sink_groups(struct dl_sink *s, dl_digits along);
/* How much all such groups are in each other's way. Other replicas do not go in step and are not counted. */
enum dl_status dl_sink_crowding(struct dl_sink *s, dl_digits along, double *out, struct dl_error *err);
/* A collective of an event over such a group. NULL: it cannot be, and err says why. */
struct dl_priced_collective *dl_sink_price(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err);
/* Of any collective, on links that so many times as much goes over; and what was chosen for it. */
enum dl_status dl_sink_time(struct dl_sink *s, const struct dl_wish *wish, double crowding, struct dl_choice *choice,
                            double *seconds, struct dl_error *err);
/* Of tokens that go, or come back, as DL_DISPATCH_TO_NODES; so many bytes would go to all of their experts, and are
 * that part of a trip. */
enum dl_status dl_sink_dispatch(struct dl_sink *s, const struct dl_event *ev, double *seconds, struct dl_error *err);
/* Find the way to the host, if the stack copies. */
enum dl_status dl_sink_init_host(struct dl_sink *s, struct dl_error *err);
/* What a path gives a device. NULL: the machine has no such path, and err says what its file needs. */
const struct dl_copy_rate *dl_sink_copy_rate(struct dl_sink *s, enum dl_path path, bool inwards, struct dl_error *err);
/* The same of samples, which only devices of stages with the first layer read, where their ranks are. */
const struct dl_copy_rate *dl_sink_read_rate(struct dl_sink *s, enum dl_path path, struct dl_error *err);
/* A copy over a path whose rate is known; all that are alike are one call. It starts before that instruction. */
uint32_t dl_sink_copy_call(struct dl_sink *s, struct dl_comm copy);
void dl_sink_start_copy(struct dl_sink *s, size_t at, uint32_t call);
void dl_sink_await_copy(struct dl_sink *s, uint32_t call);
enum dl_status dl_sink_read(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err);
/* A copy there or back, beside the layer if it is async; and the update on the host. */
enum dl_status dl_sink_copy(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err);
enum dl_status dl_sink_host_update(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err);
/* For the sink of the stack; user is the struct dl_sink. */
enum dl_status dl_sink_take(void *user, const struct dl_event *ev, struct dl_error *err);
/* An ALLOC or FREE; and at the end of a backward, all that is still on its way. */
void dl_sink_memory(struct dl_sink *s, const struct dl_event *ev);
void dl_sink_end_buckets(struct dl_sink *s);
/* The host waits for the device here. */
void dl_sink_drain(struct dl_sink *s);
/* The programs so far were for their prices alone. */
void dl_sink_forget_calls(struct dl_sink *s);
void dl_sink_release(struct dl_sink *s);

#endif
