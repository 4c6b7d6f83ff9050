/* assumptions.h - the figures of the input that nobody measured or published. */
#ifndef DL_REPORT_ASSUMPTIONS_H
#define DL_REPORT_ASSUMPTIONS_H

#include "sim/campaign/energy.h"
#include "sim/core/facts.h"

struct dl_assumptions {
    struct dl_assumption {
        const char *where, *why;
    } * items;
    size_t n, capacity;
    const struct dl_device *device; /* leave out what only its energy rests on; NULL: leave out nothing */
};

/* Collect them from a document; places and reasons live in the arena. */
void dl_assumptions_add(struct dl_assumptions *a, struct dl_json doc, struct dl_arena *arena);
/* Those that a step or a collective depends on. */
void dl_assumptions_add_of_step(struct dl_assumptions *a, struct dl_json doc, struct dl_arena *arena);
/* From one that says what someone wants, which needs no source: only what it calls assumed itself. */
void dl_assumptions_add_stated(struct dl_assumptions *a, struct dl_json doc, struct dl_arena *arena);
/* One that no document says. */
void dl_assumptions_add_one(struct dl_assumptions *a, const char *where, const char *why);
void dl_assumptions_release(struct dl_assumptions *a);
/* How many there are, and the first few. */
void dl_assumptions_print(const struct dl_assumptions *a);
json_t *dl_assumptions_json(const struct dl_assumptions *a);

#endif
