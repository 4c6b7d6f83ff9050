/* row_constants.c - which constants of the files of a row were found by looking at measured steps. */
#include <string.h>

#include "sim/app/row_trials.h"

static bool is_same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static bool has_same_files(const struct dl_training_row *a, const struct dl_training_row *b)
{
    return is_same(a->topo, b->topo) && is_same(a->software, b->software) && is_same(a->strategy, b->strategy);
}

static const struct dl_constants *read_constants(const struct dl_training_row *row, int64_t microbatch,
                                                 struct dl_session_request request, struct dl_arena *arena)
{
    struct dl_constants *const c = dl_arena_alloc(arena, sizeof *c);
    struct dl_session s;
    struct dl_error err = {0};
    *c = (struct dl_constants){.arena = arena};
    if (dl_training_row_request(row, microbatch, arena, &request, &err)) return c;
    if (!dl_session_open(&s, &request)) {
        const struct dl_json docs[] = {s.machine.system_doc, s.machine.transport_doc, s.device_doc, s.software_doc};
        for (size_t i = 0; i < DL_COUNT(docs); i++) dl_constants_add(c, docs[i]);
    }
    dl_session_close(&s);
    return c;
}

void dl_find_constants(const struct dl_row_trials *like, struct dl_compared *compared, struct dl_arena *arena)
{
    const struct dl_training_row *const rows = like->rows->items;
    const struct dl_session_request request = {.engine = like->engine, .set = like->set};
    for (size_t i = 0; i < like->rows->n; i++) {
        const int64_t microbatch = rows[i].microbatch ? rows[i].microbatch : compared[i].microbatch;
        for (size_t j = 0; j < i && !compared[i].constants; j++)
            if (has_same_files(&rows[j], &rows[i])) compared[i].constants = compared[j].constants;
        if (!compared[i].failure && !compared[i].constants)
            compared[i].constants = read_constants(&rows[i], microbatch, request, arena);
    }
}
