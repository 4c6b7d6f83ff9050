/* events.h - a queue of dated events, for simulations in which many things happen at the same instant.
 *
 * Events with exactly equal dates form one instant and come out in the order in which they were added: ties never
 * depend on the shape of a heap. The heap holds instants, not events, so a thousand ranks in lockstep cost one heap
 * operation. */
#ifndef DL_ENGINE_EVENTS_H
#define DL_ENGINE_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dl_events;

struct dl_events *dl_events_new(void);
void dl_events_free(struct dl_events *q);

/* Returns the id of the event, which may be used again once the event was taken or removed. */
uint32_t dl_events_add(struct dl_events *q, double date_s, uint32_t payload);
void dl_events_move(struct dl_events *q, uint32_t event, double date_s);
void dl_events_remove(struct dl_events *q, uint32_t event);

/* Date of the earliest instant, or INFINITY. */
double dl_events_next_s(const struct dl_events *q);

/* Open the earliest instant, then take its events one by one. What is added meanwhile, even at the same date, belongs
 * to a later instant. */
void dl_events_open(struct dl_events *q);
bool dl_events_take(struct dl_events *q, uint32_t *payload);

/* What is likely to come after the earliest instant, for those who fetch what it needs: payloads of the next instant
 * and of later ones. On its way an instant comes to each of these places once, from the last to the first, unless it
 * was added late. These are guesses, but each is a payload that was added. Returns how many. */
enum { DL_N_COMING = 5 };
size_t dl_events_coming(const struct dl_events *q, uint32_t payloads[DL_N_COMING]);

#endif
