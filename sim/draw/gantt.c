#define _GNU_SOURCE /* open_memstream */
#include "sim/draw/gantt.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/core/memory.h"
#include "sim/report/units.h"

enum { margin = 12 }; /* of the name of a row, and a blank */

struct canvas {
    const struct dl_gantt *gantt;
    FILE *to;
    uint32_t columns;
    const struct dl_slice **at; /* by column; NULL: nothing goes on there */
    double *most_s;             /* by column: what that slice has of it */
    bool seen[DL_N_BLOCKS];
};

static uint32_t n_stages(const struct canvas *c) { return dl_timeline_stages(c->gantt->timeline); }

static double column_s(const struct canvas *c) { return (c->gantt->to_s - c->gantt->from_s) / c->columns; }

/* ---- what each column shows ---- */

static void cover(struct canvas *c, const struct dl_slice *s)
{
    const double from_s = c->gantt->from_s, width_s = column_s(c), last = c->columns - 1;
    if (s->to_s <= from_s || s->from_s >= c->gantt->to_s || s->to_s <= s->from_s) return;
    const uint32_t first = (uint32_t)fmin(fmax(floor((s->from_s - from_s) / width_s), 0), last);
    const uint32_t end = (uint32_t)fmin(floor((s->to_s - from_s) / width_s), last);
    for (uint32_t i = first; i <= end; i++) {
        const double begin_s = from_s + i * width_s;
        const double part_s = fmin(s->to_s, begin_s + width_s) - fmax(s->from_s, begin_s);
        if (part_s <= c->most_s[i] * (1 + 1e-9)) continue; /* of two halves the first */
        c->at[i] = s;
        c->most_s[i] = part_s;
    }
}

static bool cover_row(struct canvas *c, struct dl_row row)
{
    bool any = false;
    memset(c->at, 0, c->columns * sizeof *c->at);
    memset(c->most_s, 0, c->columns * sizeof *c->most_s);
    for (size_t i = 0; i < row.n; i++) cover(c, &row.slices[i]);
    for (uint32_t i = 0; i < c->columns; i++) any |= c->at[i] != NULL;
    return any;
}

/* ---- text ---- */

static void put_colour(const struct canvas *c, enum dl_block_kind block)
{
    const struct dl_block_look *const look = dl_block_look(block);
    if (block == DL_BLOCK_BUBBLE || c->gantt->terminal.colours == DL_NO_COLOURS) return;
    if (c->gantt->terminal.colours == DL_256_COLOURS)
        fprintf(c->to, "\033[48;5;%d;38;5;16m", look->terminal);
    else
        fprintf(c->to, "\033[%d;30m", 40 + look->terminal8);
}

static void end_colour(const struct canvas *c)
{
    if (c->gantt->terminal.colours != DL_NO_COLOURS) fputs("\033[0m", c->to);
}

/* "F3", or as much of it as there is room for: a number that is cut would be another. */
static size_t put_label(const struct canvas *c, const struct dl_slice *s, size_t room)
{
    char label[DL_SLICE_NAME];
    const enum dl_block_kind block = dl_block_of(s);
    const char letter = dl_block_look(block)->letter;
    snprintf(label, sizeof label, "%c", letter);
    if (s->kind == DL_SLICE_WORK && s->item) snprintf(label, sizeof label, "%c%u", letter, s->item->micro);
    if (block == DL_BLOCK_COLLECTIVE) dl_slice_name(c->gantt->timeline, s, label);
    if (strlen(label) > room) snprintf(label, sizeof label, "%c", letter);
    fputs(label, c->to);
    return strlen(label);
}

static void put_filling(const struct canvas *c, enum dl_block_kind block, size_t n)
{
    const bool is_coloured = c->gantt->terminal.colours != DL_NO_COLOURS && block != DL_BLOCK_BUBBLE;
    while (n-- > 0) {
        if (block == DL_BLOCK_BUBBLE && c->gantt->terminal.utf8)
            fputs("·", c->to);
        else
            fputc(is_coloured ? ' ' : dl_block_look(block)->filling, c->to);
    }
}

static void put_block(struct canvas *c, const struct dl_slice *s, size_t room)
{
    const enum dl_block_kind block = dl_block_of(s);
    c->seen[block] = true;
    put_colour(c, block);
    const bool is_waiting = block == DL_BLOCK_BUBBLE || block == DL_BLOCK_WAIT;
    put_filling(c, block, room - (is_waiting ? 0 : put_label(c, s, room)));
    if (block != DL_BLOCK_BUBBLE) end_colour(c);
}

static void put_row(struct canvas *c, const char *name)
{
    fprintf(c->to, "%-*s", margin, name);
    for (uint32_t i = 0, end; i < c->columns; i = end) {
        for (end = i + 1; end < c->columns; end++)
            if (c->at[i] ? !c->at[end] || !dl_same_block(c->at[i], c->at[end]) : c->at[end] != NULL) break;
        if (c->at[i])
            put_block(c, c->at[i], end - i);
        else if (end < c->columns)
            fprintf(c->to, "%*s", (int)(end - i), "");
    }
    fputc('\n', c->to);
}

static void put_stage(struct canvas *c, uint32_t stage)
{
    char name[margin + 8];
    snprintf(name, sizeof name, "stage %u", stage);
    cover_row(c, dl_row_of(c->gantt->timeline, stage, DL_TRACK_WORK));
    put_row(c, name);
    if (cover_row(c, dl_row_of(c->gantt->timeline, stage, DL_TRACK_EXCHANGES))) put_row(c, "");
}

/* Four parts, with the time where each begins and where the last ends. */
static void put_axis(const struct canvas *c)
{
    enum { parts = 4 };
    const uint32_t part = c->columns / parts;
    char time[DL_QUANTITY];
    fprintf(c->to, "%*s", margin, "");
    for (uint32_t i = 0; i < c->columns; i++)
        fputs(i % part == 0 && i / part < parts ? (c->gantt->terminal.utf8 ? "├" : "|")
              : c->gantt->terminal.utf8         ? "─"
                                                : "-",
              c->to);
    fprintf(c->to, "\n%*s", margin, "");
    for (uint32_t i = 0; i < parts; i++)
        fprintf(c->to, "%-*s", i + 1 < parts ? (int)part : 0,
                i ? dl_format_seconds((c->gantt->to_s - c->gantt->from_s) * i / parts, time) : "0");
    fputc('\n', c->to);
}

/* On as many lines as it needs. */
static void put_legend(const struct canvas *c)
{
    size_t used = 0;
    fprintf(c->to, "%*s", margin, "");
    for (int i = 0; i < DL_N_BLOCKS; i++) {
        const enum dl_block_kind block = (enum dl_block_kind)i;
        const char *const name = dl_block_look(block)->name, *const gap = "   ";
        if (!c->seen[i]) continue;
        if (used && used + strlen(name) + 5 > c->columns) {
            fprintf(c->to, "\n%*s", margin, "");
            used = 0;
        }
        if (used) used += (size_t)fprintf(c->to, "%s", gap);
        put_colour(c, block);
        if (block == DL_BLOCK_BUBBLE)
            put_filling(c, block, 1);
        else
            fputc(dl_block_look(block)->letter, c->to);
        if (block != DL_BLOCK_BUBBLE) end_colour(c);
        fprintf(c->to, " %s", name);
        used += strlen(name) + 2;
    }
    fputc('\n', c->to);
}

void dl_gantt_write(const struct dl_gantt *g, FILE *to)
{
    struct canvas c = {.gantt = g, .to = to, .columns = g->terminal.columns - margin};
    const uint32_t stride = dl_stage_stride(n_stages(&c), DL_GANTT_STAGES);
    char time[DL_QUANTITY];
    c.at = dl_alloc(c.columns * sizeof *c.at);
    c.most_s = dl_alloc(c.columns * sizeof *c.most_s);
    fprintf(to, "%-*sa step of %s", margin, "schedule", dl_format_seconds(g->to_s - g->from_s, time));
    if (dl_timeline_replicas(g->timeline) > 1) fputs(", the first replica", to);
    if (stride > 1) fprintf(to, ", one of %u stages", stride);
    if (g->timeline->left_out.slices) fputs(", as far as there was room for it", to);
    fputc('\n', to);
    for (uint32_t stage = 0; stage < n_stages(&c); stage += stride) put_stage(&c, stage);
    put_axis(&c);
    put_legend(&c);
    dl_free(c.at);
    dl_free(c.most_s);
}

void dl_gantt_print(const struct dl_gantt *g)
{
    if (g->terminal.colours == DL_NO_COLOURS) {
        dl_gantt_write(g, stdout);
        return;
    }
    char *text = NULL;
    size_t bytes = 0;
    FILE *const to = open_memstream(&text, &bytes);
    dl_gantt_write(g, to);
    fclose(to);
    fflush(stdout);
    dprintf(STDOUT_FILENO, "%s", text);
    free(text);
}
