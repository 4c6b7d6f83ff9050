/* peers.h - who meets whom where partners are drawn: a pure function of the iteration and a seed, so that every rank
 * knows it without asking. The partner of a rank's partner is the rank itself. */
#ifndef DL_PROGRAM_PEERS_H
#define DL_PROGRAM_PEERS_H

#include <stdint.h>

/* Of n ranks, an even number: the partner of each, all ways to pair them being equally likely. */
void dl_peers_draw(uint32_t n, uint32_t iteration, uint64_t seed, uint32_t *peer);

/* The pairs by their earlier ranks, which follow each other: n / 2 of two. */
void dl_peers_pairs(uint32_t n, const uint32_t *peer, uint32_t (*pairs)[2]);

#endif
