/* matching.h - matches receives with messages by (lane, sender), whichever comes first. */
#ifndef DL_ENGINE_MATCHING_H
#define DL_ENGINE_MATCHING_H

#include "sim/engine/wire.h"

struct dl_matching;
struct dl_matching *dl_matching_new(void);
void dl_matching_free(struct dl_matching *m);

/* A receive: true and the message if it is here already, else the receive waits. */
bool dl_matching_receive(struct dl_matching *m, uint32_t lane, uint32_t sender, struct dl_wire_message *message);
/* A message: true if a receive waits for it (and waits no longer), else the message is kept. */
bool dl_matching_deliver(struct dl_matching *m, uint32_t lane, const struct dl_wire_message *message);

#endif
