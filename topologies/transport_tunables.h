/* transport_tunables.h - the numbers of a transport file that measurements of a machine could determine. */
#ifndef DL_TOPOLOGIES_TRANSPORT_TUNABLES_H
#define DL_TOPOLOGIES_TRANSPORT_TUNABLES_H

#include "topologies/transport.h"

struct dl_tunable {
    const char *name; /* the path of it, "protocols/LL/peer/start_s" */
    json_t *object;   /* of the document, that has the key; not owned */
    const char *key;
    size_t index;     /* in the list that the key holds; SIZE_MAX: it holds the number itself */
    double base, max; /* the value in the file, not 0; the most that the format allows */
    bool is_share;    /* of what there is, so that the most is a fact of nature, not of the format */
    bool is_latency;
    bool added; /* the table says it for all links ("*"); this is an own entry for this machine's kind of link */
};

struct dl_tunables {
    struct dl_tunable *items; /* arena memory */
    size_t n, capacity;
};

/* All that matter on this machine: latencies, rates of pumps, efficiencies, fill and drain. A number that is 0 is said
 * to be absent and stays so; what a protocol sends beside the payload (bandwidth_fraction) is its definition. Tables
 * get an own entry for the kinds of link of this machine; dl_tunable_drop takes one away again. */
struct dl_tunables dl_transport_tunables(struct dl_json doc, const struct dl_topology *t, struct dl_arena *arena);
void dl_tunable_drop(const struct dl_tunable *c);

void dl_tunable_set(const struct dl_tunable *c, double value);
/* Set it for good: with a fact that it is measured, and the interval of 95 %, unless that is NAN. An entry of a list
 * has no place for an interval. */
void dl_tunable_state(const struct dl_tunable *c, double value, double low, double high, const char *source);

#endif
