/* toys.h - strategies that dlsim does not ship, to see that a strategy is one file, one line in a table (table.c) and
 * an example (tests/unit/toys.c). */
#ifndef DL_TESTS_TOYS_TOYS_H
#define DL_TESTS_TOYS_TOYS_H

#include "strategies/strategies.h"

extern const struct dl_strategy dl_toy_gossip, dl_toy_spatial, dl_toy_storage;

#endif
