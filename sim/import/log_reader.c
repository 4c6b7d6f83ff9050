/* log_reader.c - what formats of logs write down of the lines that they read. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/import/log.h"
#include "sim/import/log_text.h"

/* ---- options of the program ---- */

void dl_log_set(struct dl_log_reader *r, const char *name, const char *value)
{
    const size_t most = 4096; /* more than any program has */
    bool is_kept = r->format->keeps_all && json_object_size(r->settings) < most;
    for (size_t i = 0; i < r->format->n_options; i++) is_kept |= strcmp(r->format->options[i].name, name) == 0;
    if (is_kept) json_object_set_new(r->settings, name, json_string(value)); /* what is no UTF-8 is not set */
}

const char *dl_log_get(const struct dl_log_reader *r, const char *name)
{
    static const char *const nothing[] = {"None", "null", ""};
    const char *const text = json_string_value(json_object_get(r->settings, name));
    for (size_t i = 0; text && i < DL_COUNT(nothing); i++)
        if (strcmp(text, nothing[i]) == 0) return NULL;
    return text;
}

int64_t dl_log_count(const struct dl_log_reader *r, const char *name)
{
    const double most = 2147483647;
    const char *const text = dl_log_get(r, name), *end;
    double value;
    if (!text || !dl_log_number(text, &value, &end) || *end) return 0;
    return value >= 1 && value <= most && value == floor(value) ? (int64_t)value : 0;
}

bool dl_log_is(const struct dl_log_reader *r, const char *name, const char *value)
{
    const char *const text = dl_log_get(r, name);
    return text && strcasecmp(text, value) == 0;
}

bool dl_log_is_true(const struct dl_log_reader *r, const char *name) { return dl_log_is(r, name, "true"); }

/* ---- keys of a row ---- */

void dl_log_say(struct dl_log_reader *r, const char *key, double value)
{
    const double most = 9007199254740992.0; /* 2^53 */
    if (value >= 1 && value <= most && value == floor(value))
        json_object_set_new(r->log.row, key, json_integer((json_int_t)value));
}

void dl_log_say_text(struct dl_log_reader *r, const char *key, const char *value)
{
    if (value) json_object_set_new(r->log.row, key, json_string(value));
}

void dl_log_say_options(struct dl_log_reader *r)
{
    for (size_t i = 0; i < r->format->n_options; i++) {
        const struct dl_log_option *const o = &r->format->options[i];
        if (o->key) dl_log_say(r, o->key, (double)dl_log_count(r, o->name));
    }
}

void dl_log_leave(struct dl_log_reader *r, const char *name)
{
    const char *const value = dl_log_get(r, name);
    if (value && r->log.n_rest < DL_LOG_RESTS)
        r->log.rest[r->log.n_rest++] = (struct dl_log_rest){name, dl_arena_string(r->arena, value)};
}

/* ---- what was measured ---- */

void dl_log_add_step(struct dl_log_reader *r, struct dl_log_step step)
{
    struct dl_log *const log = &r->log;
    if (!(step.value > 0)) return;
    DL_GROW(log->steps, log->n_steps, log->capacity);
    log->steps[log->n_steps++] = step;
}

static struct dl_log_timer *find_timer(struct dl_log *log, const char *name, size_t length, struct dl_arena *arena)
{
    for (size_t i = 0; i < log->n_timers; i++)
        if (strlen(log->timers[i].name) == length && strncmp(log->timers[i].name, name, length) == 0)
            return &log->timers[i];
    if (log->n_timers == DL_LOG_TIMERS) return NULL;
    struct dl_log_timer *const t = &log->timers[log->n_timers++];
    t->name = dl_arena_format(arena, "%.*s", (int)length, name);
    return t;
}

void dl_log_add_timer(struct dl_log_reader *r, const char *name, size_t length, double seconds)
{
    struct dl_log_timer *const t = length ? find_timer(&r->log, name, length, r->arena) : NULL;
    if (!t) return;
    DL_GROW(t->seconds.items, t->seconds.n, t->seconds.capacity);
    t->seconds.items[t->seconds.n++] = seconds;
}

void dl_log_add_peak(struct dl_log_reader *r, double bytes) { r->log.peak_bytes = fmax(r->log.peak_bytes, bytes); }

void dl_log_begin_again(struct dl_log_reader *r)
{
    struct dl_log *const log = &r->log;
    if (!log->n_steps) return;
    log->n_steps = 0;
    for (size_t i = 0; i < log->n_timers; i++) log->timers[i].seconds.n = 0;
    log->peak_bytes = 0;
    log->n_runs_before++;
    json_object_clear(r->settings);
}
