/* calibrate_messages.h - latency and bandwidth of messages between two devices, put into a system and a transport.
 *
 * The latency of the fit, less that of the wires, becomes the transport's. The rate of the faster protocol is what is
 * achieved on the wires: if their bandwidth is only assumed, this rate replaces it; else the transport's efficiency
 * says how much of it is achieved. dlsim then predicts for a message between the two devices what the fit says. */
#ifndef DL_CALIBRATE_CALIBRATE_MESSAGES_H
#define DL_CALIBRATE_CALIBRATE_MESSAGES_H

#include "sim/core/message_fit.h"
#include "topologies/transport.h"

struct dl_message_calibration {
    const struct dl_topology *topology;
    struct dl_json system, transport; /* the documents to change; the topology is of the system as it was */
    uint32_t from, to;                /* devices */
    struct dl_points messages;        /* by bytes, ascending; none, or DL_LEAST_MESSAGES and more */
    struct dl_points stream;          /* the same of messages sent without waiting: they tell the bandwidth */
    const char *source;               /* for facts */
    const char *where;                /* for errors: the file */
    /* Filled. */
    struct dl_message_fit fit; /* of messages, if there are any */
    double bytes_per_s, bytes_per_s_low, bytes_per_s_high;
    const char *link;      /* kind of the slowest wire on the way */
    double wire_latency_s; /* of the wires */
    double wires_were_s;   /* before they were shortened, since a small message takes less; 0: they were not */
    bool wire_is_replaced; /* the bandwidth of the system, which was assumed */
};

enum dl_status dl_calibrate_messages(struct dl_message_calibration *c, struct dl_arena *arena, struct dl_error *err);

#endif
