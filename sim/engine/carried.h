/* carried.h - what links carry, and how long they are busy with it.
 *
 * The rule to remember: bytes are booked when they are sent. Where a link changes, what has not crossed it by then is
 * booked again, so that each byte takes as long as the bandwidth that it met. */
#ifndef DL_ENGINE_CARRIED_H
#define DL_ENGINE_CARRIED_H

#include "sim/engine/engine.h"

/* What a link has carried, with what protocols add, and how long it was busy: bytes over the bandwidth that it had when
 * they crossed it; a failed link is busy if something waits for it to come back. */
struct dl_link_load {
    uint32_t link;
    double bytes, busy_s;
};

struct dl_changed_link;

struct dl_carried {
    const double *bytes_per_s; /* by link, as its file has it */
    size_t n_links;
    double *bytes;       /* by link, where its block is used */
    bool *block_is_used; /* most machines have far more links than a step uses */
    struct dl_changed_link *changed;
    size_t n_changed, changed_capacity;
    uint32_t changing;                           /* the link that changes at this instant, if one does */
    double left_on_changing, booked_on_changing; /* bytes that are still to cross it, of all that were sent */
};

/* The rates outlive it. */
void dl_carried_init(struct dl_carried *c, const double *bytes_per_s, size_t n_links);
void dl_carried_release(struct dl_carried *c);

/* Each link gets these bytes by its weight. */
void dl_carried_book(struct dl_carried *c, const struct dl_hop *hops, size_t n_hops, double bytes);
/* What is left of a bundle goes over these links. */
void dl_carried_turn(struct dl_carried *c, struct dl_turn *turn, const struct dl_hop *hops, size_t n_hops);

/* A link gets another fraction of its bandwidth; whatever crosses it is turned between the two calls. */
void dl_carried_begin_change(struct dl_carried *c, uint32_t link);
void dl_carried_end_change(struct dl_carried *c, double fraction, double now_s);

/* The links that were busy longest, at most so many, the busiest first; and all that carried something, by number.
 * Returns how many. */
size_t dl_carried_busiest(const struct dl_carried *c, struct dl_link_load *out, size_t most);
size_t dl_carried_all(const struct dl_carried *c, struct dl_link_load *out);

#endif
