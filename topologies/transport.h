/* transport.h - the communication software: what it adds to the wire in latency, and takes from it in bandwidth.
 *
 * A collective costs start_s once; each of its messages costs a step latency by the route's reach and by the family of
 * the algorithm; its bytes are divided by the protocol's bandwidth fraction (LL sends a flag with every word, so its
 * wire bytes are twice the payload's). The pump is the rate at which a device's own kernel moves payload, whatever the
 * wires:
 *
 *     time = start + latency + max(wire, pump + fill * sqrt((start + latency) * pump))
 *
 * The square root is what cutting a transfer into pieces costs: k pieces of n bytes through a chain with start-up a
 * take a + n/B + k a' + n/(k B), least at 2 sqrt(a n / B) above the sum (van de Geijn 1994).
 *
 * A rank sends a message when its port is free. The port is busy while the bytes of a message move, and latencies
 * overlap; or, in the single-port model of the textbooks (Thakur, Rabenseifner, Gropp 2005; Chan et al. 2007), the one
 * port of a rank that sends and the one that receives are held by a message from its start to its arrival: so all the
 * messages of a rank cost a latency each, one after the other.
 *
 * Software may send messages above some size another way (after a handshake, in pieces), whether that is faster or not.
 */
#ifndef DL_TOPOLOGIES_TRANSPORT_H
#define DL_TOPOLOGIES_TRANSPORT_H

#include "sim/core/json.h"
#include "topologies/topology.h"

/* Software has a path of its own for each: neighbours in a ring and plain messages; trees; switches that add. */
enum dl_family { DL_FAMILY_PEER, DL_FAMILY_TREE, DL_FAMILY_SWITCH, DL_N_FAMILIES };

/* Messages of more bytes than these have their own figures. */
struct dl_above {
    double bytes; /* 0: messages of all sizes are alike */
    double step_s[DL_N_REACHES];
    double bandwidth_fraction;
};

struct dl_protocol {
    const char *name;
    double start_s[DL_N_FAMILIES];
    double step_s[DL_N_FAMILIES][DL_N_REACHES];
    double network_s;          /* more for each message over this machine's network */
    double bandwidth_fraction; /* payload per byte on the wire */
    struct dl_above above;
    double pump_bytes_per_s[DL_N_FAMILIES]; /* INFINITY: never the limit */
    /* What the software takes for the pump's limit when it chooses, for each NIC of a group on several nodes: it has a
     * channel for each, and a figure of its own for what channels do. INFINITY: it knows of no limit. */
    double presumed_channel_bytes_per_s[DL_N_FAMILIES];
    bool has_family[DL_N_FAMILIES];
};

struct dl_transport {
    const char *name;
    struct dl_protocol *protocols; /* those that work on this machine */
    size_t n_protocols;
    bool adds_wire_latency;      /* false: the step latencies were measured with the wire's in them */
    double fill;                 /* factor of the square root */
    double drain;                /* steps of pumping that the last piece still needs when all others are through */
    double relay_efficiency;     /* of a hop that another device passes on */
    double reduction_s_per_byte; /* gamma */
    double pack_s_per_byte;      /* of a lossy payload's dense bytes, each time it is packed or unpacked */
    bool pipelines;     /* cuts trees and chains into pieces so small that all of their edges are busy at once */
    bool holds_ports;   /* see below: "port_busy" is "message" */
    double piece_bytes; /* of these, where they are simulated one by one; 0: not known */
    const char *tuner;  /* whose choice among algorithms is imitated; NULL: the least estimate is chosen */
    const char *const *algorithms; /* that the software has, as NAME or OPERATION.NAME; NULL: all */
    size_t n_algorithms;
    double efficiency[DL_MAX_LINK_KINDS]; /* by the topology's link kinds */
};

/* Schema dlsim/transport/1, for a group that spans so many nodes of this topology. */
enum dl_status dl_transport_read(struct dl_json doc, const struct dl_topology *t, uint32_t n_nodes,
                                 struct dl_arena *arena, struct dl_transport *out, struct dl_error *err);

/* What it achieves on each link of a topology with the same kinds of links, for dl_free. */
double *dl_transport_rates(const struct dl_transport *transport, const struct dl_topology *t);

/* The kinds of link by which transports look up figures of the network, and of devices; NULL: there are none. */
const char *dl_transport_network_link(const struct dl_topology *t);
const char *dl_transport_device_link(const struct dl_topology *t);

bool dl_transport_has(const struct dl_transport *transport, const char *operation, const char *algorithm);

#endif
