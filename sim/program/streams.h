/* streams.h - clocks of a host, its device and the channels of priced collectives and copies, as ops are issued in
 * turn.
 *
 * An op begins when it is issued, its stream is free and what it waits for is done. So each clock after a run of ops is
 * the largest of the clocks before it, each with something added (max-plus): end_j = max_i (start_i + a_ij). */
#ifndef DL_PROGRAM_STREAMS_H
#define DL_PROGRAM_STREAMS_H

#include "sim/program/program.h"

/* Started and not waited for. Its times count from its start on, so that sums do not depend on where it is. */
struct dl_open_call {
    uint32_t call;
    double end_s;    /* behind those before it on its channel */
    double passed_s; /* on the device */
    double beside_s; /* of kernels, since its start */
    double slowed_s; /* the same if it went on all the while */
};

struct dl_streams {
    const struct dl_comm *calls;
    double host_s, device_s;
    double network_s;          /* that the device has waited for priced calls since it last waited for its host */
    bool has_waited;           /* the device, for its host */
    struct dl_open_call *open; /* in the order of their starts */
    size_t n_open, capacity;
};

/* What a wait costs the device: what is longer than the work since the start, and what that has had less of it. */
struct dl_exposed {
    double longer_s, taken_s;
};

/* Nothing is open. */
void dl_streams_reset(struct dl_streams *s, double host_s, double device_s);
void dl_streams_release(struct dl_streams *s);
/* Time passes for what is open. */
static inline void dl_streams_pass(struct dl_streams *s, double seconds)
{
    for (size_t i = 0; i < s->n_open; i++) s->open[i].passed_s += seconds;
}
/* The host issues something for so long, and the device comes to it; returns how long it has waited for the host. */
static inline double dl_streams_issue(struct dl_streams *s, double host_s)
{
    s->host_s += host_s;
    const double wait_s = s->host_s - s->device_s;
    if (!(wait_s > 0)) return 0;
    s->has_waited = true;
    dl_streams_pass(s, wait_s);
    s->device_s = s->host_s;
    s->network_s = 0;
    return wait_s;
}
/* The device is busy. */
static inline void dl_streams_work(struct dl_streams *s, double device_s)
{
    s->device_s += device_s;
    dl_streams_pass(s, device_s);
}
/* The same with a kernel of that class. */
static inline void dl_streams_kernel(struct dl_streams *s, double device_s, enum dl_kernel_class kernel)
{
    dl_streams_work(s, device_s);
    for (size_t i = 0; i < s->n_open; i++) {
        s->open[i].beside_s += device_s;
        s->open[i].slowed_s += device_s / (1 - s->calls[s->open[i].call].taken.fraction[kernel]);
    }
}
/* A call that may be priced begins; has kernels beside it so far; and is waited for. false: it is not open. */
void dl_streams_start(struct dl_streams *s, uint32_t call);
bool dl_streams_is_beside(const struct dl_streams *s, uint32_t call);
bool dl_streams_wait(struct dl_streams *s, uint32_t call, struct dl_exposed *out);

/* Ops that come again and again. With nothing open before and after them, what they take depends on one number: how far
 * the device is behind its host, the lag. It is the same the next time if the lag has not changed; or if it has grown
 * and the device has not waited for its host, because then it does not the next time either. */
struct dl_streams_round {
    double begin_s, device_begin_s; /* of the host, and of the device */
    double lag_s, network_s;        /* at the begin */
    double host_s;                  /* that it takes the host */
    bool is_free;                   /* nothing is open before and after it; who knows more may take it back */
    bool is_of_work;                /* it is free, and the device has not waited for its host */
    size_t times;                   /* that it counts for */
};
/* Until its end the host's clock counts from 0, so that rounds that are alike have the same clocks to the bit. */
void dl_streams_begin_round(struct dl_streams *s, struct dl_streams_round *round);
/* It counts for `most` rounds if the next ones take the same, or else for itself. A device that does not wait for its
 * host takes work_s: what is added up elsewhere is the same sum to the bit. */
void dl_streams_end_round(struct dl_streams *s, double work_s, size_t most, struct dl_streams_round *round);

#endif
