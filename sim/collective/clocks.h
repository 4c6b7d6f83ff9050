/* clocks.h - when each rank has all that the rounds so far have brought it, without a barrier between rounds.
 *
 * A rank sends in a round when it has what came in the rounds before and its port is free; the receiver goes on when
 * that has arrived. Messages that go together with those of the round before do not wait for what these bring. */
#ifndef DL_COLLECTIVE_CLOCKS_H
#define DL_COLLECTIVE_CLOCKS_H

#include "sim/collective/collective.h"

/* A date, and how much of the way to it was latency, and adding and packing. */
struct dl_clock {
    double at_s, latency_s, work_s;
};

struct dl_clock_pass {
    uint32_t link;
    double own_s; /* that the message keeps it busy */
};

/* One message of a round, each time that the round comes. */
struct dl_sending {
    uint32_t from, to;        /* ranks */
    double latency_s, move_s; /* move: until all have moved that share the most loaded of its links in this round */
    double pack_s, work_s;    /* of the sender before it goes, of the receiver when it has come */
    size_t first_pass, n_passes;
};

/* When links are busy: what was late in the rounds before meets what is early now. By link. */
struct dl_link_clock {
    struct dl_busy {
        double from_s, until_s;
    } before, now; /* with the rounds before, and with all of them */
    uint64_t round;
};

/* Where messages hold the ports of a rank from their start to their arrival: the one that sends, the one that receives.
 */
struct dl_held_ports {
    struct dl_held_port {
        double free_s, held_s; /* when it is free; how long it was not */
    } out, in;
};

struct dl_clocks {
    uint32_t n_ranks;
    enum dl_queue queue;
    struct dl_clock *now, *then; /* by rank: when it may send in this round, in the next */
    double *work_s;              /* by rank: what it has to do with what came in this round */
    struct dl_port_clock {
        uint32_t link;
        double free_s;
    } * port;                   /* by rank: the one that it sent by last */
    struct dl_held_ports *held; /* by rank, of all lanes; NULL: ports are not held */
};
/* held: must outlive it. */
void dl_clocks_init(struct dl_clocks *c, uint32_t n_ranks, enum dl_queue queue, struct dl_held_ports *held);
void dl_clocks_release(struct dl_clocks *c);

/* The messages of a round and the links that they pass. */
struct dl_sendings {
    const struct dl_round *round;
    uint64_t first;  /* number of the first round: what links were busy with before that counts for nothing */
    uint64_t number; /* of the round: greater than those of the rounds before by at least how often they came */
    const struct dl_sending *messages;
    size_t n;
    const struct dl_clock_pass *passes;
    struct dl_link_clock *links; /* NULL: only messages of the same round share links */
};
void dl_clocks_add(struct dl_clocks *c, const struct dl_sendings *s);
/* All ranks wait for the last one, and then for this. */
void dl_clocks_meet(struct dl_clocks *c, double latency_s, double move_s, double work_s);

struct dl_clock dl_clocks_latest(const struct dl_clocks *c);

#endif
