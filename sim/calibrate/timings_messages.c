/* timings_messages.c - tables of messages between two ranks: the OSU micro-benchmarks, the Intel MPI benchmarks, and
 * dlsim-measure. */
#include <ctype.h>
#include <string.h>

#include "sim/calibrate/timings_formats.h"

static const double s_per_us = 1e-6, bytes_per_megabyte = 1e6; /* as OSU and IMB count */

/* ---- rows of numbers: "4096   2.31" ---- */

struct columns {
    size_t value; /* the column, from 0, that is not the bytes */
    bool is_rate; /* megabytes per second, not microseconds */
};

static enum dl_status read_rows(struct dl_lines *lines, struct columns columns, struct dl_arena *arena,
                                struct dl_timings *t, struct dl_error *err)
{
    struct dl_timing_words w;
    double bytes, value;
    while (!err->status && dl_lines_next(lines, arena, &w)) {
        if (w.n <= columns.value || !dl_is_number(w.items[0], &bytes) || !dl_is_number(w.items[columns.value], &value))
            continue;
        const double time_s = columns.is_rate ? bytes / (value * bytes_per_megabyte) : value * s_per_us;
        dl_timings_add(t, (struct dl_timing){bytes, time_s}, dl_lines_place(lines, t, arena), err);
    }
    return err->status;
}

/* ---- "# OSU MPI Latency Test v7.3", "# OSU MPI-CUDA Bandwidth Test v5.9" ---- */

static bool is_osu(const char *text) { return strstr(text, "# OSU MPI"); }

static bool begins(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static enum dl_status read_osu(const char *text, struct dl_arena *arena, struct dl_timings *t, struct dl_error *err)
{
    const char *title = strstr(text, "# OSU MPI") + strlen("# OSU MPI");
    struct dl_lines lines = {.rest = text};
    title += strcspn(title, " \n"); /* "-CUDA" */
    title += strspn(title, " ");
    t->timed = begins(title, "Bandwidth Test") ? DL_TIMED_STREAM : DL_TIMED_MESSAGE;
    if (t->timed == DL_TIMED_MESSAGE && !begins(title, "Latency Test"))
        return dl_fail(err, DL_SYNTAX, t->name, "is OSU's '%.*s'; known are osu_latency and osu_bw",
                       (int)strcspn(title, "\r\n"), title);
    return read_rows(&lines, (struct columns){1, t->timed == DL_TIMED_STREAM}, arena, t, err);
}

const struct dl_timings_format dl_timings_osu = {.name = "OSU micro-benchmarks", .is = is_osu, .read = read_osu};

/* ---- "# Benchmarking PingPong", then "#bytes #repetitions t[usec] Mbytes/sec" ---- */

static const char imb_title[] = "# Benchmarking PingPong";

static bool is_imb(const char *text) { return strstr(text, imb_title); }

static enum dl_status read_imb(const char *text, struct dl_arena *arena, struct dl_timings *t, struct dl_error *err)
{
    struct dl_lines lines = {.rest = text};
    const char *const start = strstr(text, imb_title), *const next = strstr(start + 1, "# Benchmarking ");
    if (next)
        return dl_fail(err, DL_IMPOSSIBLE, t->name, "has more tables than that of PingPong; give it a file of its own");
    t->timed = DL_TIMED_MESSAGE;
    return read_rows(&lines, (struct columns){.value = 2}, arena, t, err);
}

const struct dl_timings_format dl_timings_imb = {.name = "IMB PingPong", .is = is_imb, .read = read_imb};

/* ---- the JSON of dlsim-measure ---- */

static bool is_measure(const char *text)
{
    while (isspace((unsigned char)*text)) text++;
    return *text == '{';
}

static enum dl_status read_message(struct dl_json row, struct dl_timings *t, struct dl_error *err)
{
    const json_t *const bytes = json_array_get(row.value, 0), *const time = json_array_get(row.value, 1);
    if (!json_is_number(bytes) || !json_is_number(time))
        return dl_fail(err, DL_TYPE, row.where, "must be [bytes, seconds, ...]");
    return dl_timings_add(t, (struct dl_timing){json_number_value(bytes), json_number_value(time)}, row.where, err);
}

static enum dl_status read_measure(const char *text, struct dl_arena *arena, struct dl_timings *t, struct dl_error *err)
{
    struct dl_json doc;
    t->timed = DL_TIMED_MESSAGE;
    if (dl_json_parse(text, strlen(text), t->name, arena, &doc, err)) return err->status;
    const struct dl_json messages = dl_json_member(doc, "messages", arena),
                         rows = dl_json_member(messages, "rows", arena);
    if (!dl_check_schema(doc, "measured", arena, err) && !json_is_array(rows.value))
        dl_fail(err, DL_KEY, rows.where, "must hold the rows of dlsim-measure, [bytes, seconds, ...] each");
    for (size_t i = 0; i < json_array_size(rows.value) && !err->status; i++)
        read_message(dl_json_element(rows, i, arena), t, err);
    json_decref(doc.value);
    return err->status;
}

const struct dl_timings_format dl_timings_measure = {.name = "dlsim-measure", .is = is_measure, .read = read_measure};
