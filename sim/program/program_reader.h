/* program_reader.h - reading programs from text: what the readers of single lines share. */
#ifndef DL_PROGRAM_PROGRAM_READER_H
#define DL_PROGRAM_PROGRAM_READER_H

#include "sim/program/program_text.h"
#include "sim/program/words.h"

struct dl_program_reader {
    struct dl_line_words w;
    struct dl_arena *arena;
    struct dl_read_step *out;
    struct dl_program *program;   /* that is being read; NULL: none yet */
    struct dl_template *into;     /* the block, or the end; NULL: none yet */
    struct dl_memory_ops *memory; /* of it, or of the begin; NULL: none yet */
    size_t capacity;              /* of programs */
    size_t sequence_capacity;
    size_t calls_capacity;       /* of is_simulated */
    struct dl_repeated repeated; /* that are being read; n 0: none are */
    size_t n_repeated;           /* of its instructions so far */
};
enum dl_cause dl_read_cause(struct dl_program_reader *r);

/* program_read_calls.c: lines of calls. */
void dl_read_collective(struct dl_program_reader *r);
void dl_read_copy(struct dl_program_reader *r);

/* program_read_stages.c: lines of stages, their blocks and their items. */
void dl_read_stage(struct dl_program_reader *r);
void dl_read_block(struct dl_program_reader *r);
void dl_read_end(struct dl_program_reader *r);
void dl_read_begin(struct dl_program_reader *r);
void dl_read_alloc(struct dl_program_reader *r);
void dl_read_free(struct dl_program_reader *r);
void dl_read_work(struct dl_program_reader *r);
void dl_read_start(struct dl_program_reader *r);
void dl_read_wait(struct dl_program_reader *r);
void dl_read_drain(struct dl_program_reader *r);
void dl_read_item(struct dl_program_reader *r);

/* program_read_repeats.c: instructions, some of which come again. */
void dl_read_repeated(struct dl_program_reader *r);
void dl_read_instruction(struct dl_program_reader *r, const struct dl_instruction *i);
/* Where the next is in its block. */
size_t dl_read_place(const struct dl_program_reader *r);
/* Where all of them must have come. */
void dl_read_repeated_end(struct dl_program_reader *r);

#endif
