/* recorder.h - an observer of a simulated step: it gets each slice of work, waiting and communication as it ends.
 *
 * The slices of work and of waiting of a lockstep group follow each other without gap or overlap:
 * together they are its time. */
#ifndef DL_ENGINE_RECORDER_H
#define DL_ENGINE_RECORDER_H

#include "sim/program/program.h"

enum dl_slice_kind {
    DL_SLICE_WORK,     /* one part of a template */
    DL_SLICE_WAIT,     /* nothing but waiting, for one cause */
    DL_SLICE_SEND,     /* activations or gradients on their way to another stage */
    DL_SLICE_EXCHANGE, /* over the replicas of the stage */
};

struct dl_slice {
    enum dl_slice_kind kind;
    uint32_t stage, replica;
    double from_s, to_s;
    const struct dl_item *item;        /* WORK, WAIT: of that item, NULL: at the end of the step; SEND: what made it */
    uint32_t number;                   /* WORK, WAIT: of the item in its stage; at the end the number of all items */
    const struct dl_template *running; /* WORK */
    const struct dl_part *part;        /* WORK: of `running` */
    double pace;                       /* WORK: its seconds are so many times those of the template */
    double host_from_s;                /* WORK: when the host began to launch it */
    double host_s, interference_s;     /* WORK: of the whole part, beside the seconds of the device */
    enum dl_cause cause;               /* WAIT, EXCHANGE */
    uint32_t to_stage;                 /* SEND */
    uint32_t call;                     /* EXCHANGE */
};

struct dl_recorder {
    void *user;
    void (*add)(void *user, const struct dl_slice *slice);
};

#endif
