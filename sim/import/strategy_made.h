/* strategy_made.h - a strategy document as readers of other tools put it together. */
#ifndef DL_IMPORT_STRATEGY_MADE_H
#define DL_IMPORT_STRATEGY_MADE_H

#include "sim/import/import.h"

/* A strategy with an empty stack, made of that file; `defaults` says whose ("DeepSpeed's"). */
json_t *dl_strategy_made(const struct dl_imported *out, const char *where, const char *defaults,
                         struct dl_arena *arena);
/* Add an entry of that name to its stack. */
json_t *dl_strategy_entry(json_t *strategy, const char *name);
void dl_put_count(json_t *object, const char *key, int64_t value);
void dl_put_word(json_t *object, const char *key, const char *value);

#endif
