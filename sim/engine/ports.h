/* ports.h - the ports where messages queue, found by lane and link, and by receiver where each has a queue of its
 * own. */
#ifndef DL_ENGINE_PORTS_H
#define DL_ENGINE_PORTS_H

#include <stdint.h>

#define DL_ANYBODY UINT32_MAX
#define DL_EVERY_LANE UINT32_MAX

/* Or of a device: DL_EVERY_LANE, its number for the link, and whether it is the one that receives. */
struct dl_port_key {
    uint32_t lane, link;
    uint32_t to; /* device, or DL_ANYBODY: one line for all */
};

struct dl_port {
    uint32_t n_moving;
    uint32_t first_waiting, last_waiting; /* the caller's messages; UINT32_MAX: nobody waits */
};

struct dl_ports;
struct dl_ports *dl_ports_new(void);
void dl_ports_free(struct dl_ports *p);

/* The port's number, which stays; made empty where there was none. */
uint32_t dl_port_find(struct dl_ports *p, const struct dl_port_key *key);
/* Until the next dl_port_find. */
struct dl_port *dl_port_at(struct dl_ports *p, uint32_t number);

#endif
