/* step.h - the programs of all stages of a training step, and how their ranks belong together: all that an engine knows
 * of a step. */
#ifndef DL_PROGRAM_STEP_H
#define DL_PROGRAM_STEP_H

#include "sim/program/program.h"

/* How activations and gradients go from stage to stage. */
enum dl_sends {
    DL_SENDS_ASYNCHRONOUS, /* nobody waits but who needs them */
    DL_SENDS_BATCHED,      /* a stage goes on when what it sends is delivered and what it needs next is here */
    DL_SENDS_BLOCKING,     /* so too, and between two stages one message goes after the other, whatever its direction */
};

struct dl_step {
    const struct dl_ranks *ranks;
    /* The digits of ranks in lockstep, which share an interpreter; those that tell replicas apart, and stages. */
    dl_digits in_lockstep, replicas, stages;
    uint32_t n_servers;                /* on devices after those of the ranks */
    const struct dl_program *programs; /* by stage */
    const struct dl_comm *calls;       /* of all programs */
    size_t n_calls;
    struct dl_plan plan;
    enum dl_sends sends;
    double send_host_s;   /* of the host, for one send or receive */
    double send_messages; /* that it is, of which all but the last are small */
    bool drains_at_sends; /* the host waits for the device at each, and at each receive */
    bool drains_at_receives;
    bool has_barrier; /* nobody begins a step before all have ended the one before */
};

/* The first rank of a stage of a replica. */
static inline uint32_t dl_step_rank(const struct dl_step *s, uint32_t stage, uint32_t replica)
{
    return dl_ranks_offset(s->ranks, s->stages, stage) + dl_ranks_offset(s->ranks, s->replicas, replica);
}

#endif
