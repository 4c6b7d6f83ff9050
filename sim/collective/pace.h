/* pace.h - what the communication software adds to a collective: a transport's figures for one algorithm and protocol.
 */
#ifndef DL_COLLECTIVE_PACE_H
#define DL_COLLECTIVE_PACE_H

#include "topologies/route.h"
#include "topologies/transport.h"

struct dl_pace {
    const char *protocol;
    double start_s;                      /* once, before the first message */
    double step_latency_s[DL_N_REACHES]; /* per message, by the reach of its route */
    double wire_latency_factor;  /* 1: the links' own latencies come on top; 0: the steps' were measured with them */
    double bandwidth_fraction;   /* payload bytes per byte on the wire */
    struct dl_above above;       /* both for larger messages */
    bool holds_ports;            /* a message has the port of its sender and of its receiver until it has arrived */
    double relay_efficiency;     /* of a route that another device passes on */
    double rate_cap_bytes_per_s; /* of what a rank sends in a lane, on the wire; INFINITY: none */
    double pump_s;               /* what the devices' kernels need for their part; 0: they keep up with any wire */
    double reduction_s_per_byte; /* gamma */
    double pack_s_per_byte;      /* of dense bytes, when packing and again when unpacking */
};

static inline bool dl_pace_is_above(const struct dl_pace *pace, double message_bytes)
{
    return pace->above.bytes > 0 && message_bytes > pace->above.bytes;
}

/* Payload per byte on the wire, of a message with so much payload. */
static inline double dl_pace_fraction(const struct dl_pace *pace, double message_bytes)
{
    return dl_pace_is_above(pace, message_bytes) ? pace->above.bandwidth_fraction : pace->bandwidth_fraction;
}

/* Latency of a message over a route. */
static inline double dl_pace_latency_s(const struct dl_pace *pace, const struct dl_route *route, double message_bytes)
{
    const double *const step_s = dl_pace_is_above(pace, message_bytes) ? pace->above.step_s : pace->step_latency_s;
    return step_s[route->reach] + pace->wire_latency_factor * route->latency_s;
}

/* Bytes that a payload puts on the links of a route, in messages of so many bytes. */
static inline double dl_pace_wire_bytes(const struct dl_pace *pace, const struct dl_route *route, double payload_bytes,
                                        double message_bytes)
{
    return payload_bytes / (dl_pace_fraction(pace, message_bytes) * (route->relayed ? pace->relay_efficiency : 1));
}

#endif
