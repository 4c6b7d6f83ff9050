#include "sim/calibrate/timings.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/calibrate/timings_formats.h"
#include "sim/core/files.h"

static const struct dl_timings_format *const formats[] = {&dl_timings_measure, &dl_timings_osu, &dl_timings_imb,
                                                          &dl_timings_nccl};

/* ---- lines and words ---- */

static bool is_digits(const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)from[i])) return false;
    return n > 0;
}

/* "[1,0]<stdout>:" of mpirun --tag-output, "0: " of srun --label. */
static char *without_tag(char *line)
{
    line += strspn(line, " \t");
    char *const tagged = *line == '[' ? strstr(line, ">:") : NULL;
    if (tagged) return tagged + 2;
    char *const colon = strstr(line, ": ");
    return colon && is_digits(line, (size_t)(colon - line)) ? colon + 2 : line;
}

bool dl_lines_next(struct dl_lines *lines, struct dl_arena *arena, struct dl_timing_words *out)
{
    out->n = 0;
    if (!*lines->rest) return false;
    const size_t length = strcspn(lines->rest, "\n");
    char *at = without_tag(dl_arena_format(arena, "%.*s", (int)length, lines->rest));
    lines->rest += length + (lines->rest[length] == '\n');
    lines->number++;
    while (*(at += strspn(at, " \t\r")) && out->n < DL_COUNT(out->items)) {
        out->items[out->n++] = at;
        at += strcspn(at, " \t\r");
        if (*at) *at++ = '\0';
    }
    return true;
}

bool dl_words_have(const struct dl_timing_words *words, const char *word)
{
    for (size_t i = 0; i < words->n; i++)
        if (strcmp(words->items[i], word) == 0) return true;
    return false;
}

bool dl_is_number(const char *word, double *out)
{
    char *end;
    *out = strtod(word, &end);
    return end != word && !*end && isfinite(*out) && !strpbrk(word, "xX");
}

const char *dl_lines_place(const struct dl_lines *lines, const struct dl_timings *t, struct dl_arena *arena)
{
    return dl_arena_format(arena, "%s:%zu", t->name, lines->number);
}

/* ---- rows ---- */

enum dl_status dl_timings_add(struct dl_timings *t, struct dl_timing row, const char *where, struct dl_error *err)
{
    const double most_bytes = 1e18, least_s = 1e-9, most_s = 1e6;
    if (!(row.bytes >= 0 && row.bytes <= most_bytes))
        return dl_fail(err, DL_RANGE, where, "bytes must be in [0, %g], got %g", most_bytes, row.bytes);
    if (!(row.time_s >= least_s && row.time_s <= most_s))
        return dl_fail(err, DL_RANGE, where, "seconds must be in [%g, %g], got %g", least_s, most_s, row.time_s);
    if (row.bytes == 0 && t->timed != DL_TIMED_MESSAGE) return DL_OK;
    DL_GROW(t->rows, t->n_rows, t->capacity);
    t->rows[t->n_rows++] = row;
    return DL_OK;
}

enum dl_status dl_timings_parse(const char *text, const char *name, struct dl_arena *arena, struct dl_timings *out,
                                struct dl_error *err)
{
    *out = (struct dl_timings){.name = dl_arena_string(arena, name), .op = DL_N_OPS};
    for (size_t i = 0; i < DL_COUNT(formats); i++) {
        if (!formats[i]->is(text)) continue;
        out->format = formats[i]->name;
        if (formats[i]->read(text, arena, out, err)) return err->status;
        if (!out->n_rows) return dl_fail(err, DL_RANGE, name, "has no rows, though it is of %s", out->format);
        return DL_OK;
    }
    return dl_fail(err, DL_SYNTAX, name,
                   "is of no known benchmark: nccl-tests, osu_latency, osu_bw, IMB PingPong, dlsim-measure --json");
}

enum dl_status dl_timings_load(const char *path, struct dl_arena *arena, struct dl_timings *out, struct dl_error *err)
{
    const size_t most_bytes = 16 << 20;
    char *text = NULL;
    size_t bytes;
    *out = (struct dl_timings){0};
    if (!dl_read_file(path, most_bytes, &text, &bytes, err))
        dl_timings_parse(text, dl_base_name(path), arena, out, err);
    dl_free(text);
    return err->status;
}

void dl_timings_release(struct dl_timings *t)
{
    dl_free(t->rows);
    *t = (struct dl_timings){0};
}
