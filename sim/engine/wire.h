/* wire.h - messages from device to device: routed, queued at the sender's port, carried by a bundle.
 *
 * A port is the first link of a route. It is busy while the bytes of a message move (bytes / rate), not for the
 * latency, which passes between the last byte and the arrival. Messages of a lane enter a port in the order in which
 * they were sent; those of different lanes move at the same time and share the link. How many of a lane move at the
 * same time depends on their queue (enum dl_queue).
 *
 * Where the pace holds ports, each device has one port to send and one to receive instead, for all lanes and queues,
 * and a message holds both from its start to its arrival. */
#ifndef DL_ENGINE_WIRE_H
#define DL_ENGINE_WIRE_H

#include "sim/collective/collective.h"
#include "sim/collective/pace.h"
#include "sim/engine/carried.h"
#include "sim/engine/engine.h"
#include "topologies/topology.h"

/* Seconds along the chain of events that led to now, by cause; they sum to the time since the start. */
struct dl_causes {
    double start_s, latency_s, bandwidth_s, sharing_s, reduction_s;
};

/* A route that its owner keeps from message to message of one lane. Starts as {0}. */
struct dl_way {
    struct dl_route route;
    uint32_t from, to;
    bool known;
    uint32_t port;            /* where they queue, + 1; 0: it was not looked for yet */
    uint64_t version;         /* of the condition of the links when it was found */
    double alone_bytes_per_s; /* on an empty network */
    double bytes;             /* sent over it so far, not yet booked on its links */
};

struct dl_wire_message {
    uint32_t from, to; /* devices */
    struct dl_way *way;
    double bytes; /* of payload; the pace tells what that is on the wire */
    const struct dl_pace *pace;
    struct dl_causes causes;     /* up to the sending; at arrival: up to the arrival */
    uint32_t lane;               /* lanes share a port's link and have queues of their own */
    enum dl_queue queue;         /* the same for all of a lane, as is the next */
    uint32_t most_posted;        /* DL_QUEUE_POSTED: that may be under way at once */
    uint32_t n_posted;           /* DL_QUEUE_POSTED: of the sender, under way with it, itself included */
    double rate_cap_bytes_per_s; /* on the wire; INFINITY: none */
    uint32_t sender, receiver;   /* the caller's own */
    double work_s;               /* the caller's own: what the receiver has to do with it */
};

struct dl_wire;
struct dl_tally; /* sim/collective/fold.h */
typedef void (*dl_arrival_fn)(void *user, const struct dl_wire_message *message);

/* bytes_per_s: of the links, as the engine was made with; it outlives the wire. Errors while running (no way between
 * two devices) are put into err. */
struct dl_wire *dl_wire_new(struct dl_engine *engine, const struct dl_topology *t, const double *bytes_per_s,
                            struct dl_error *err);
void dl_wire_free(struct dl_wire *w);

void dl_wire_send(struct dl_wire *w, const struct dl_wire_message *message, dl_arrival_fn arrive, void *user);

/* Book the way's bytes on its links and free its memory. */
void dl_wire_release_way(struct dl_wire *w, struct dl_way *way);

/* Refuse what the engine cannot carry: CM02 knows no fractions of a message. */
enum dl_status dl_wire_check(const struct dl_wire *w, const struct dl_hop *hops, size_t n_hops);

/* What these links, as they are now, give a bundle on an empty network, in bytes per second. */
double dl_wire_alone(const struct dl_wire *w, const struct dl_hop *hops, size_t n_hops);

/* For whoever folds messages into bundles: tallies as large as the network, since many need one for a moment. */
enum dl_scratch { DL_SCRATCH_BUNDLE, DL_SCRATCH_COLLECTIVE, DL_N_SCRATCHES };
struct dl_tally *dl_wire_scratch(struct dl_wire *w, enum dl_scratch which);

struct dl_engine *dl_wire_engine(const struct dl_wire *w);

/* Where errors of this run go. */
struct dl_error *dl_wire_error(const struct dl_wire *w);

/* Add to the bytes that links have carried, each by its weight, for bundles that did not go through dl_wire_send. */
void dl_wire_book_hops(struct dl_wire *w, const struct dl_hop *hops, size_t n_hops, double bytes);
/* The rest of a bundle goes over these links; `turn` has those where it was booked before. */
void dl_wire_turn(struct dl_wire *w, struct dl_turn *turn, const struct dl_hop *hops, size_t n_hops);

/* Links will change: bytes must be booked when they are sent, so that it is known what went over a link before. */
void dl_wire_expect_changes(struct dl_wire *w);
bool dl_wire_expects_changes(const struct dl_wire *w);
/* From now on a link has this fraction of the bandwidth in its file; 0: it has failed, and routes avoid it. */
void dl_wire_change_link(struct dl_wire *w, uint32_t link, double fraction);

/* The links that were busy longest, at most so many, the busiest first. Returns how many: 0 if nothing moved. */
size_t dl_wire_busiest(const struct dl_wire *w, struct dl_link_load *out, size_t most);
/* Of all links that carried something, in the order of their numbers; `out` has room for all links of the topology. */
size_t dl_wire_loads(const struct dl_wire *w, struct dl_link_load *out);

#endif
