/* timings_formats.h - what the readers of benchmarks share. To add one: a struct dl_timings_format in a file of its
 * own, and a line in the table of timings.c. */
#ifndef DL_CALIBRATE_TIMINGS_FORMATS_H
#define DL_CALIBRATE_TIMINGS_FORMATS_H

#include "sim/calibrate/timings.h"

struct dl_timings_format {
    const char *name;
    bool (*is)(const char *text);
    /* `t` holds the names, and no rows. */
    enum dl_status (*read)(const char *text, struct dl_arena *arena, struct dl_timings *t, struct dl_error *err);
};
extern const struct dl_timings_format dl_timings_nccl, dl_timings_osu, dl_timings_imb, dl_timings_measure;

/* Words of a line; more than fit are left off. */
struct dl_timing_words {
    const char *items[32];
    size_t n;
};

/* A walk over the lines of a text: {.rest = text}. */
struct dl_lines {
    const char *rest;
    size_t number; /* of the line that was read last, from 1 */
};
/* False after the last. Blanks separate words; what mpirun and srun put in front ("[1,0]<stdout>:", "0: ") is taken
 * away. The words live in the arena. */
bool dl_lines_next(struct dl_lines *lines, struct dl_arena *arena, struct dl_timing_words *out);

bool dl_words_have(const struct dl_timing_words *words, const char *word);
/* A finite number and nothing else. */
bool dl_is_number(const char *word, double *out);

/* "table.txt:12", of the line read last. */
const char *dl_lines_place(const struct dl_lines *lines, const struct dl_timings *t, struct dl_arena *arena);
/* Refuses what cannot be; a row of no bytes is one of messages only. */
enum dl_status dl_timings_add(struct dl_timings *t, struct dl_timing row, const char *where, struct dl_error *err);

#endif
