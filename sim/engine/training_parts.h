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
    uint32_t item; /* next one */
    bool waits;    /* for the input of that item */
    double waits_since_s;
    uint8_t *arrived; /* [(kind * chunks + chunk) * micros + micro] */
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

/* The exchanges of a stage over its replicas, one call after the other, for all tensor ranks at once. */
struct sync {
    uint32_t n_arrived, call, n_running;
    double begun_s;
    struct dl_choice *choices; /* by tensor rank */
    struct dl_group *groups;
    struct dl_exchange **exchanges;
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
    struct crew *crews; /* stage by stage */
    struct sync *syncs; /* by stage */
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

/* training_sync.c: the crew is through with its items. When all replicas of its stage are, they exchange gradients,
 * update and end. */
void dl_training_join_sync(struct dl_training *t, struct crew *c);

#endif
