/* template_repeats.c - instructions of a template that come several times in a row. */
#include <string.h>

#include "sim/program/program.h"

void dl_template_note(struct dl_template *t, size_t n, const void *of)
{
    if (!n) return;
    DL_GROW(t->repeated, t->n_repeated, t->repeated_capacity);
    t->repeated[t->n_repeated++] = (struct dl_repeated){.first = t->n_instructions - n, .n = n, .times = 1, .of = of};
}

bool dl_template_again(struct dl_template *t, const void *of)
{
    struct dl_repeated *const last = t->n_repeated ? &t->repeated[t->n_repeated - 1] : NULL;
    if (!last || last->of != of || last->first + last->n != t->n_instructions) return false;
    last->times++;
    t->length += last->n;
    return true;
}

/* The first that does not end before that instruction. */
static size_t find(const struct dl_template *t, size_t instruction)
{
    size_t low = 0, high = t->n_repeated;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const bool is_before = t->repeated[middle].first + t->repeated[middle].n <= instruction;
        low = is_before ? middle + 1 : low;
        high = is_before ? high : middle;
    }
    return low;
}

size_t dl_template_times(const struct dl_template *t, size_t instruction)
{
    const size_t i = find(t, instruction);
    return i < t->n_repeated && t->repeated[i].first <= instruction ? t->repeated[i].times : 1;
}

size_t dl_template_at(const struct dl_template *t, size_t place)
{
    size_t more = 0; /* places than instructions so far */
    for (size_t i = 0; i < t->n_repeated; i++) {
        const struct dl_repeated *const r = &t->repeated[i];
        if (place < r->first + more) break;
        if (place < r->first + more + r->n * r->times) return r->first + (place - r->first - more) % r->n;
        more += r->n * (r->times - 1);
    }
    return place - more;
}

static void *copy(const void *from, size_t n, size_t bytes_each)
{
    return n ? memcpy(dl_alloc(n * bytes_each), from, n * bytes_each) : NULL;
}

static void copy_parts(struct dl_parts *p)
{
    p->items = copy(p->items, p->n, sizeof *p->items);
    p->capacity = p->n;
}

/* What it shares becomes its own. */
static void unshare(struct dl_template *t)
{
    if (!t->like) return;
    t->instructions = copy(t->instructions, t->n_instructions, sizeof *t->instructions);
    t->capacity = t->n_instructions;
    t->repeated = copy(t->repeated, t->n_repeated, sizeof *t->repeated);
    t->repeated_capacity = t->n_repeated;
    copy_parts(&t->planned);
    copy_parts(&t->priced);
    t->memory.items = copy(t->memory.items, t->memory.n, sizeof *t->memory.items);
    t->memory.capacity = t->memory.n;
    t->like = NULL;
}

void dl_template_unfold(struct dl_template *t)
{
    unshare(t);
    if (t->length == t->n_instructions) return;
    struct dl_instruction *const all = dl_alloc(t->length * sizeof *all);
    for (size_t place = 0; place < t->length; place++) all[place] = t->instructions[dl_template_at(t, place)];
    dl_free(t->instructions);
    t->instructions = all;
    t->n_instructions = t->capacity = t->length;
    t->n_repeated = 0;
}
