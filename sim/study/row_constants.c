/* row_constants.c - the files of a row, and which of their constants were found by looking at measured steps. */
#include <string.h>

#include "sim/study/row_trials.h"

static bool is_same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static bool has_same_files(const struct dl_training_row *a, const struct dl_training_row *b)
{
    return is_same(a->topo, b->topo) && is_same(a->software, b->software) && is_same(a->strategy, b->strategy);
}

static void read_files(const struct dl_training_row *row, struct dl_session_request request, struct dl_arena *arena,
                       struct dl_compared *out)
{
    struct dl_constants *const c = dl_arena_alloc(arena, sizeof *c);
    struct dl_session s;
    struct dl_error err = {0};
    *c = (struct dl_constants){.arena = arena};
    out->constants = c;
    if (dl_training_row_request(row, row->microbatch ? row->microbatch : out->microbatch, arena, &request, &err))
        return;
    if (!dl_session_open(&s, &request)) {
        const struct dl_json docs[] = {s.machine.system_doc, s.machine.transport_doc, s.device_doc, s.software_doc};
        for (size_t i = 0; i < DL_COUNT(docs); i++) dl_constants_add(c, docs[i]);
        out->software = dl_arena_string(arena, s.software.name);
        out->system = dl_arena_string(arena, s.machine.topology->name);
    }
    dl_session_close(&s);
}

static void take_files(const struct dl_compared *from, struct dl_compared *to)
{
    to->constants = from->constants;
    to->software = from->software;
    to->system = from->system;
}

void dl_find_constants(const struct dl_row_trials *like, struct dl_compared *compared, struct dl_arena *arena)
{
    const struct dl_training_row *const rows = like->rows->items;
    const struct dl_session_request request = {.engine = like->engine, .set = like->set};
    for (size_t i = 0; i < like->rows->n; i++) {
        for (size_t j = 0; j < i && !compared[i].constants; j++)
            if (has_same_files(&rows[j], &rows[i])) take_files(&compared[j], &compared[i]);
        if (!compared[i].failure && !compared[i].constants) read_files(&rows[i], request, arena, &compared[i]);
    }
}
