/* training_parts.h - what the files that play a training step share. */
#ifndef DL_ENGINE_TRAINING_PARTS_H
#define DL_ENGINE_TRAINING_PARTS_H

#include "sim/core/memory.h"
#include "sim/engine/exchange.h"
#include "sim/engine/training.h"

/* The way from one crew to another: all members' routes in one bundle. */
struct channel {
    struct dl_hop *hops;
    size_t n_hops;
    double bytes, latency_s;
    uint32_t to;
};

struct crew {
    uint32_t stage, replica;
    uint32_t item; /* next one, or being worked on */
    const struct dl_template *running;
    size_t part;          /* next one of the template */
    bool waits_for_input; /* of the item */
    uint32_t waits_for;   /* number of the exchange that it waits for, + 1; 0: none */
    double waits_since_s;
    uint32_t n_started; /* exchanges of this step so far */
    uint32_t *latest;   /* by call: number of its latest exchange, + 1 */
    uint8_t *arrived;   /* [(kind * chunks + chunk) * micros + micro] */
    struct channel onward, back;
    double causes_s[DL_N_CAUSES];
    double end_s;
};

/* Activations or gradients on their way. */
struct parcel {
    uint32_t crew, place; /* receiver, index into its `arrived` */
    double sent_s;
    uint32_t next_free;
};

/* One exchange over the replicas of a stage: the k-th that each of them starts. */
struct exchange {
    uint32_t call, n_joined, n_running;
    double begun_s;
    bool done;
};

/* What is chosen for exchanges of this kind and size, for each tensor rank. */
struct chosen {
    struct dl_call call;
    struct dl_choice *choices;
};

/* The exchanges of a stage, in the order in which its crews start them; they go one after the other, as one
 * communicator's do. */
struct queue {
    struct exchange *exchanges;
    size_t n_exchanges, exchanges_capacity;
    uint32_t next; /* the first that is not done */
    bool busy;
    struct dl_group *groups; /* by tensor rank */
    struct chosen *chosen;
    size_t n_chosen, chosen_capacity;
    struct dl_exchange **running, **ended; /* by tensor rank; an exchange may not be freed while it reports its end */
};

/* How often something goes on, to know when at least one of it does. */
struct busy {
    uint32_t n;
    double since_s, total_s;
};

struct dl_training {
    struct dl_training_request request;
    struct dl_error *err;
    uint32_t n_crews, n_stages, n_replicas, n_members, n_done;
    struct crew *crews;   /* stage by stage */
    struct queue *queues; /* by stage */
    uint32_t *last_item;  /* [stage * chunks + chunk]: the item that completes its gradients */
    struct parcel *parcels;
    size_t n_parcels, parcels_capacity;
    uint32_t free_parcel;
    struct dl_pace send_pace;
    struct busy sending, exchanging;
    struct dl_training_result result;
};

static inline double now_s(const struct dl_training *t) { return t->request.engine->kind->now_s(t->request.engine); }

static inline void begin_busy(struct dl_training *t, struct busy *b)
{
    if (b->n++ == 0) b->since_s = now_s(t);
}

static inline void end_busy(struct dl_training *t, struct busy *b)
{
    if (--b->n == 0) b->total_s += now_s(t) - b->since_s;
}

static inline uint32_t device_of(const struct dl_training *t, const struct crew *c, uint32_t member)
{
    const uint32_t coordinate[DL_N_AXES] = {
        [DL_AXIS_TENSOR] = member, [DL_AXIS_DATA] = c->replica, [DL_AXIS_PIPELINE] = c->stage};
    return t->request.device_of_rank[dl_rank_at(t->request.setting, coordinate)];
}

static inline void book_segment(struct crew *c, const struct dl_segment *segment)
{
    for (int cause = 0; cause < DL_N_CAUSES; cause++) c->causes_s[cause] += segment->by_cause[cause];
}

/* training.c: go on with the parts of the crew's template. */
void dl_training_go_on(struct dl_training *t, struct crew *c);

/* training_exchanges.c */
enum dl_status dl_training_open_queues(struct dl_training *t);
void dl_training_close_queues(struct dl_training *t);
/* The crew comes to the start of a call. */
void dl_training_join(struct dl_training *t, struct crew *c, uint32_t call);
/* Whether the crew may go on; if not it will be called when the exchange is done. */
bool dl_training_may_pass(struct dl_training *t, struct crew *c, uint32_t call);

#endif
