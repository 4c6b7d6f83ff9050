/* network_parts.h - what the files of the networks share: names, choices by hash, shared hops, checks of size. */
#ifndef DL_TOPOLOGIES_NETWORK_PARTS_H
#define DL_TOPOLOGIES_NETWORK_PARTS_H

#include "topologies/networks.h"

enum { DL_MAX_NAME_BYTES = 64 /* of one end of a link */, DL_MAX_NETWORK_LINKS = 1 << 26 };

/* "node3.nic1", or "node3.device1" where the devices themselves are the endpoints. */
void dl_network_endpoint_name(const struct dl_network *net, uint32_t endpoint, char *name, size_t bytes);

/* "from -> to", with " #2" behind it where several cables join the same two. */
void dl_network_cable_name(const char *from, const char *to, uint64_t cable, uint64_t n_cables, char *name,
                           size_t bytes);

/* A hash of what tells flows apart; `salt` makes independent choices along one route. */
uint64_t dl_network_hash(uint32_t from, uint32_t to, uint64_t key, uint64_t salt);

/* As dl_network_hop, but a link that the route crosses already gets the weight on top. */
void dl_network_share(const struct dl_network *net, struct dl_route *route, uint32_t link, double weight);

/* Refuse a network of more links than can be kept. A double, because hostile input may ask for any number. */
enum dl_status dl_network_check_links(const struct dl_network *net, double n_links, struct dl_error *err);

/* Refuse a network with fewer places for endpoints than are needed; `keys` are what would have to grow. */
enum dl_status dl_network_check_places(const struct dl_network *net, double n_places, double n_needed, const char *keys,
                                       struct dl_error *err);

#endif
