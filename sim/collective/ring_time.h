/* ring_time.h - how long a ring of unequal hops takes, message by message.
 *
 * In each of n_steps steps every hop passes one message on. A message waits for what the hop before brought in the step
 * before, and until its own hop is free. So the time is that of the slowest chain of n_steps messages, each at the same
 * hop as the one before it or at the next: a chain moves in each step, and pays the latency of a hop where it leaves
 * it. Where hops are equal that is all of their moves and latencies; where one moves slowly, latencies of the others
 * pass meanwhile. Lanes that share links are between two extremes: all in the same step, or each moves while the others
 * wait for latencies. The middle is taken. */
#ifndef DL_COLLECTIVE_RING_TIME_H
#define DL_COLLECTIVE_RING_TIME_H

#include <stdint.h>

struct dl_ring_hop {
    double latency_s; /* with what the receiver does before it passes on */
    double move_s;    /* of one message, beside those of all lanes in the same step */
    double alone_s;   /* beside those of its own lane */
};

/* Of a piece that meets the slowest stretch of n_steps hops out of a ring of n. */
double dl_slowest_stretch_s(const double *pass_s, uint32_t n, double n_steps);

/* n: hops of the ring, at least 2. */
double dl_ring_time_s(const struct dl_ring_hop *hops, uint32_t n, double n_steps);

#endif
