/* pace.h - what the communication software adds to a collective: a transport's figures for one algorithm and protocol.
 */
#ifndef DL_COLLECTIVE_PACE_H
#define DL_COLLECTIVE_PACE_H

#include "topologies/route.h"

struct dl_pace {
    const char *protocol;
    double start_s;                      /* once, before the first message */
    double step_latency_s[DL_N_REACHES]; /* per message, by the reach of its route */
    double wire_latency_factor;  /* 1: the links' own latencies come on top; 0: the steps' were measured with them */
    double bandwidth_fraction;   /* payload bytes per byte on the wire */
    double relay_efficiency;     /* of a route that another device passes on */
    double rate_cap_bytes_per_s; /* of one message on the wire; INFINITY: none */
    double pump_s;               /* what the devices' kernels need for their part; 0: they keep up with any wire */
    double reduction_s_per_byte; /* gamma */
    double pack_s_per_byte;      /* of dense bytes, when packing and again when unpacking */
};

/* Latency of a message over a route. */
static inline double dl_pace_latency_s(const struct dl_pace *pace, const struct dl_route *route)
{
    return pace->step_latency_s[route->reach] + pace->wire_latency_factor * route->latency_s;
}

/* Bytes that a payload puts on the links of a route. */
static inline double dl_pace_wire_bytes(const struct dl_pace *pace, const struct dl_route *route, double payload_bytes)
{
    return payload_bytes / (pace->bandwidth_fraction * (route->relayed ? pace->relay_efficiency : 1));
}

#endif
