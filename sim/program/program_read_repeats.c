/* program_read_repeats.c - instructions of a program's text: what a line `repeated` announces is kept once. */
#include <string.h>

#include "sim/program/program_reader.h"

void dl_read_repeated(struct dl_program_reader *r)
{
    const uint32_t most = 1 << 20, times = dl_whole_word(&r->w, dl_second_word(&r->w), most),
                   n = dl_whole_after(&r->w, "instructions", most);
    dl_read_repeated_end(r);
    if (times < 2 || !n) dl_refuse_words(&r->w, "needs 2 times and 1 instruction at least");
    if (r->w.err->status) return;
    r->repeated = (struct dl_repeated){.first = r->into->n_instructions, .n = n, .times = times};
    r->n_repeated = 0;
}

static bool are_same(const struct dl_instruction *a, const struct dl_instruction *b)
{
    for (int i = 0; i < DL_N_FLOP_COUNTS; i++)
        if (a->counted_flop[i] != b->counted_flop[i]) return false;
    return a->kind == b->kind && a->cause == b->cause && a->device_s == b->device_s && a->host_s == b->host_s &&
           a->flop == b->flop && a->bytes == b->bytes && a->ground == b->ground && a->call == b->call &&
           strcmp(a->name, b->name) == 0;
}

/* Of the first time all are kept. */
void dl_read_instruction(struct dl_program_reader *r, const struct dl_instruction *i)
{
    struct dl_repeated *const all = &r->repeated;
    const size_t at = r->n_repeated;
    if (r->w.err->status) return;
    if (at < all->n || !all->n) dl_template_add(r->into, i);
    if (!all->n) return;
    if (at >= all->n && !are_same(&r->into->instructions[all->first + at % all->n], i))
        dl_refuse_words(&r->w, "is not the instruction that is to be repeated here");
    if (++r->n_repeated < all->n * all->times) return;
    dl_template_note(r->into, all->n, all);
    for (size_t k = 1; k < all->times; k++) dl_template_again(r->into, all);
    all->n = 0;
}

size_t dl_read_place(const struct dl_program_reader *r)
{
    const size_t n_read = r->repeated.n ? r->n_repeated : 0, n_kept = n_read < r->repeated.n ? n_read : r->repeated.n;
    return r->into ? r->into->length + n_read - n_kept : 0;
}

void dl_read_repeated_end(struct dl_program_reader *r)
{
    if (r->repeated.n && !r->w.err->status)
        dl_refuse_words(&r->w, "%zu instructions are to be repeated %zu times, but fewer come before this line",
                        r->repeated.n, r->repeated.times);
}
