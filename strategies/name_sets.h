/* name_sets.h - lists of names in files, as sets: bit i is there if the list has the i-th of the known names. */
#ifndef DL_STRATEGIES_NAME_SETS_H
#define DL_STRATEGIES_NAME_SETS_H

#include "sim/core/json.h"

enum { DL_MOST_NAMES = 32 }; /* bits of a set */

/* Refuses what is no name, none of the n known ones, or named before. An absent list is empty. */
enum dl_status dl_name_set_read(struct dl_json list, const char *const *known, size_t n, uint32_t *set,
                                struct dl_error *err);

/* "qkv, fc1", as far as there is room. */
void dl_name_set_print(uint32_t set, const char *const *known, size_t n, char *out, size_t room);

#endif
