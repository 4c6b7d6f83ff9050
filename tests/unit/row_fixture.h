/* row_fixture.h - rows that a test reads from text; begin and end bracket each test. */
#ifndef TESTS_ROW_FIXTURE_H
#define TESTS_ROW_FIXTURE_H

#include <string.h>

#include "sim/study/training_row.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static struct dl_training_rows rows;
static struct dl_error err;

static void begin(void)
{
    arena = dl_arena_new();
    rows = (struct dl_training_rows){0};
    err = (struct dl_error){0};
}

static void end(void)
{
    dl_training_rows_release(&rows);
    dl_arena_free(arena);
}

static inline void read_text(const char *text)
{
    dl_training_rows_parse(text, strlen(text), "us.csv", arena, &rows, &err);
}

#endif
