/* logs.c - the formats of logs, and reading one: a new format is one file and one line here. */
#include <string.h>

#include "sim/core/files.h"
#include "sim/import/log.h"
#include "sim/import/log_text.h"

extern const struct dl_log_format dl_log_megatron, dl_log_torchtitan, dl_log_maxtext, dl_log_mllog;

/* Programs that submit to MLPerf write their own lines beside its: these come first, for they tell more. */
static const struct dl_log_format *const formats[] = {&dl_log_megatron, &dl_log_torchtitan, &dl_log_maxtext,
                                                      &dl_log_mllog};
enum { N_FORMATS = DL_COUNT(formats) };

size_t dl_log_format_count(void) { return N_FORMATS; }
const struct dl_log_format *dl_log_format_at(size_t index) { return formats[index]; }

static void begin(struct dl_log_reader *r, const struct dl_log_format *format, struct dl_arena *arena)
{
    *r = (struct dl_log_reader){.format = format, .arena = arena, .settings = json_object()};
    if (format->state_size) r->state = memset(dl_arena_alloc(arena, format->state_size), 0, format->state_size);
    r->log.row = json_object();
    r->log.format = format;
}

static void read_lines(FILE *stream, struct dl_log_reader *readers, size_t *n_lines)
{
    struct dl_log_lines lines = {.stream = stream};
    while (dl_log_next(&lines)) {
        ++*n_lines;
        for (size_t i = 0; i < N_FORMATS; i++) readers[i].format->line(&readers[i], lines.text);
    }
    dl_free(lines.text);
}

void dl_log_read_stream(FILE *stream, struct dl_arena *arena, struct dl_log *log)
{
    struct dl_log_reader readers[N_FORMATS];
    size_t n_lines = 0;
    *log = (struct dl_log){0};
    for (size_t i = 0; i < N_FORMATS; i++) begin(&readers[i], formats[i], arena);
    read_lines(stream, readers, &n_lines);
    for (size_t i = 0; i < N_FORMATS; i++) {
        struct dl_log_reader *const r = &readers[i];
        const bool is_it = r->log.n_steps && !log->format;
        if (is_it) r->format->finish(r);
        if (is_it) *log = r->log;
        if (!is_it) dl_log_release(&r->log);
        json_decref(r->settings);
    }
    log->n_lines = n_lines;
}

enum dl_status dl_log_read(const char *path, struct dl_arena *arena, struct dl_log *log, struct dl_error *err)
{
    FILE *stream;
    size_t bytes;
    *log = (struct dl_log){0};
    if (dl_open_input(path, &stream, &bytes, err)) return err->status;
    dl_log_read_stream(stream, arena, log);
    fclose(stream);
    return DL_OK;
}

void dl_log_release(struct dl_log *log)
{
    for (size_t i = 0; i < log->n_timers; i++) dl_free(log->timers[i].seconds.items);
    dl_free(log->steps);
    json_decref(log->row);
    json_decref(log->strategy);
    json_decref(log->workload);
    json_decref(log->own_software);
    *log = (struct dl_log){0};
}
