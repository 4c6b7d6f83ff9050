/* blocks.h - what a slice of a timeline is to the eye: its kind, letter and colour, the same in every picture. */
#ifndef DL_DRAW_BLOCKS_H
#define DL_DRAW_BLOCKS_H

#include "sim/report/timeline.h"

enum dl_block_kind {
    DL_BLOCK_FORWARD,
    DL_BLOCK_BACKWARD,
    DL_BLOCK_WEIGHT,
    DL_BLOCK_UPDATE,
    DL_BLOCK_BUBBLE,
    DL_BLOCK_WAIT,
    DL_BLOCK_SEND,
    DL_BLOCK_COLLECTIVE,
    DL_N_BLOCKS,
};

struct dl_block_look {
    const char *name;
    char letter, filling;    /* in plain text */
    const char *colour;      /* of an SVG */
    int terminal, terminal8; /* background in a terminal of 256 colours, and of 8 */
};
const struct dl_block_look *dl_block_look(enum dl_block_kind block);

enum dl_block_kind dl_block_of(const struct dl_slice *s);
/* Whether two slices of a track are drawn as one: parts of one item, or waiting for one cause. */
bool dl_same_block(const struct dl_slice *a, const struct dl_slice *b);

/* The slices of a stage that are drawn: those of its first replica, in one group of tracks. */
struct dl_row {
    const struct dl_slice *slices;
    const uint32_t *track;
    size_t n;
};
struct dl_row dl_row_of(const struct dl_timeline *t, uint32_t stage, enum dl_track_group group);

/* Pictures show a bounded number of stages: every so-manyth. */
uint32_t dl_stage_stride(uint32_t n_stages, uint32_t most);

#endif
