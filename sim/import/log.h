/* log.h - what the log of a training program says of its run: seconds of steps, sizes, timers, memory.
 *
 * The rule to remember: a log is read line by line and never held as a whole, and a line that is cut off, garbled or of
 * something else says nothing. A format is one file with a struct dl_log_format and one line in logs.c. All formats see
 * every line; the log is of the first in the table that finds steps in it. */
#ifndef DL_IMPORT_LOG_H
#define DL_IMPORT_LOG_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/core/error.h"
#include "sim/core/memory.h"

/* How a line tells the time of a step. Of one log only those of the first unit that it has are used. */
enum dl_log_unit {
    DL_LOG_SECONDS,
    DL_LOG_SAMPLES_PER_BLOCK_S, /* samples a second between two evaluations */
    DL_LOG_TOKENS_PER_DEVICE_S,
    DL_LOG_SAMPLES_PER_S, /* as the program counts them */
    DL_N_LOG_UNITS
};

struct dl_log_step {
    double number;
    enum dl_log_unit unit;
    double value;
    double batch; /* samples of this step; 0: the line does not say */
};

struct dl_log_values {
    double *items; /* for dl_free */
    size_t n, capacity;
};

/* One that the program measures in every step ("forward-backward"). */
struct dl_log_timer {
    const char *name;
    struct dl_log_values seconds;
};
enum { DL_LOG_TIMERS = 64 };

/* A value that matters and that no key of a row stands for. */
struct dl_log_rest {
    const char *name, *value;
};
enum { DL_LOG_RESTS = 32 };

struct dl_log {
    const struct dl_log_format *format;
    const char *software; /* that of dlsim which is nearest */
    json_t *row;          /* keys of a measured step (docs/formats.md, row files), as far as the log says them */
    bool says_layout;     /* over how many ranks the model was cut */
    /* Where what the log says can be imported as it is, whole documents; NULL: not. */
    json_t *strategy, *workload, *own_software;
    const char *refusal; /* why it cannot; NULL: it can, or there is nothing to import */
    struct dl_log_step *steps;
    size_t n_steps, capacity;
    struct dl_log_timer timers[DL_LOG_TIMERS];
    size_t n_timers;
    struct dl_log_rest rest[DL_LOG_RESTS];
    size_t n_rest;
    double peak_bytes; /* of the fullest rank that tells it; 0: none does */
    size_t n_lines, n_runs_before;
};

/* ---- for formats ---- */

/* What a format knows of the lines so far. */
struct dl_log_reader {
    const struct dl_log_format *format;
    struct dl_arena *arena;
    json_t *settings; /* what the program calls its options -> text */
    void *state;      /* of the format, zeroed at first; NULL: none */
    struct dl_log log;
};

/* An option of the program. With a key, a whole number from 1 on is that key of a row. */
struct dl_log_option {
    const char *name, *key;
};

struct dl_log_format {
    const char *name;  /* REQUIRED: "Megatron-LM" */
    const char *doc;   /* REQUIRED: what a line of a step looks like */
    const char *peak;  /* what the program calls the memory that it tells; NULL: it tells none */
    size_t state_size; /* 0: no state */
    const struct dl_log_option *options;
    size_t n_options;
    bool keeps_all; /* options that are not in the table, too */
    /* REQUIRED: one line, without colours and end of line. */
    void (*line)(struct dl_log_reader *r, const char *line);
    /* REQUIRED: after the last line: what the options say together. */
    void (*finish)(struct dl_log_reader *r);
};

/* Remember an option if the format knows the name; a later value takes the place of an earlier one. */
void dl_log_set(struct dl_log_reader *r, const char *name, const char *value);
/* Its text; NULL: not said, or None. */
const char *dl_log_get(const struct dl_log_reader *r, const char *name);
/* As a whole number of at most 31 bits; 0: not said, or none from 1 on. */
int64_t dl_log_count(const struct dl_log_reader *r, const char *name);
bool dl_log_is(const struct dl_log_reader *r, const char *name, const char *value); /* whatever the case of letters */
bool dl_log_is_true(const struct dl_log_reader *r, const char *name);

void dl_log_say(struct dl_log_reader *r, const char *key,
                double value); /* what is no whole number from 1 on says nothing */
void dl_log_say_text(struct dl_log_reader *r, const char *key, const char *value);
/* The options that have a key. */
void dl_log_say_options(struct dl_log_reader *r);
/* Something that no key stands for. */
void dl_log_leave(struct dl_log_reader *r, const char *name);

void dl_log_add_step(struct dl_log_reader *r, struct dl_log_step step);
void dl_log_add_timer(struct dl_log_reader *r, const char *name, size_t length, double seconds);
void dl_log_add_peak(struct dl_log_reader *r, double bytes);
/* Another run begins in the same file: what steps were before are of one that ended. */
void dl_log_begin_again(struct dl_log_reader *r);

/* ---- for readers of logs ---- */

size_t dl_log_format_count(void);
const struct dl_log_format *dl_log_format_at(size_t index);

/* Read a file, or a stream. Where no format finds a step, log->format is NULL and log->n_lines says how many lines
 * there were. Release it in any case. */
enum dl_status dl_log_read(const char *path, struct dl_arena *arena, struct dl_log *log, struct dl_error *err);
void dl_log_read_stream(FILE *stream, struct dl_arena *arena, struct dl_log *log);
void dl_log_release(struct dl_log *log);

/* What turns a rate into seconds; 0: not known. */
struct dl_log_sizes {
    double devices, global_batch, tokens_per_sample;
};

struct dl_log_summary {
    size_t n_steps, n_warmup, n_other_batch; /* all; left out at the beginning; left out for another global batch */
    size_t n_used;
    double median_s, low_s, high_s; /* low and high: 10 and 90 % of those used */
};
enum { DL_LOG_WARMUP = 10 }; /* steps that are left out at the beginning, or half of them if that is less */
/* Seconds of the steps of the log. A line of each rank for one step is one step, as long as the slowest rank says. */
struct dl_log_summary dl_log_summarise(const struct dl_log *log, const struct dl_log_sizes *sizes, size_t warmup);
/* The usual value of a timer, after as many of its lines as the rule for steps leaves out. */
double dl_log_timer_s(const struct dl_log_timer *timer, size_t warmup);
/* The global batch of its last step; 0: no step says it. */
double dl_log_batch(const struct dl_log *log);

#endif
