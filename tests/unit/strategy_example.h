/* strategy_example.h - what a battery asks of a strategy: an example, alone on a machine where seconds are bytes, with
 * closed forms of what all ranks together hold, what passes the port of one of them, and what is computed again.
 *
 * The rule to remember: a `#` in a text is the number n that grows along the example: ways, bits or layers. */
#ifndef DL_TESTS_STRATEGY_EXAMPLE_H
#define DL_TESTS_STRATEGY_EXAMPLE_H

#include "tests/unit/divided_step.h"

static const double parameter_bytes = 2; /* fp16 in every example */

struct example {
    const char *strategy, *entry;              /* its name; the entry of the stack */
    const char *beside;                        /* other entries that it needs; NULL: none */
    const char *workload;                      /* NULL: FOUR_BLOCKS */
    enum { A_NUMBER, RANKS, REPLICAS } counts; /* what n is: ranks of a replica, replicas, or something else */
    uint32_t n[4];                             /* ends with 0 */
    uint32_t replicas, samples;                /* replicas, if n are not these, and samples of each; 0: one */
    /* NULL: each rank holds the model, nothing is sent, nothing is computed again. */
    double (*held)(const struct dl_model *m, double n);  /* parameters, on all ranks together */
    double (*sent)(const struct dl_model *m, double n);  /* bytes that pass a port one after the other; NAN: not told */
    double (*again)(const struct dl_model *m, double n); /* flop of a sample beyond those of the model */
    bool spares;                                         /* the larger n, the less memory the fullest device needs */
    bool is_of_model;                                    /* it says what is trained: one device does so, too */
    bool shares;                                         /* links are shared, which the analytic engine leaves out */
};

struct examples {
    const struct example *items;
    size_t n;
};

static inline const char *workload_of(const struct example *e) { return e->workload ? e->workload : FOUR_BLOCKS; }

static inline size_t count_numbers(const struct example *e)
{
    size_t n = 0;
    while (n < DL_COUNT(e->n) && e->n[n]) n++;
    return n;
}

/* A text with its number; in the arena. */
static inline const char *with_number(const char *from, uint32_t n, struct dl_arena *arena)
{
    const char *text = "";
    for (const char *c = from; *c; c++)
        text = *c == '#' ? dl_arena_format(arena, "%s%u", text, n) : dl_arena_format(arena, "%s%c", text, *c);
    return text;
}

static inline const char *entry_with(const struct example *e, uint32_t n, struct dl_arena *arena)
{
    return with_number(e->entry, n, arena);
}

/* A strategy file of the example: keys, and the stack. */
static inline void example_texts(const struct example *e, uint32_t n, struct dl_arena *arena, const char **head,
                                 const char **stack)
{
    const uint32_t replicas = e->counts == REPLICAS ? n : e->replicas ? e->replicas : 1;
    *head = dl_arena_format(arena, "'precision':'fp16','devices':%u,'global_batch':%u",
                            replicas * (e->counts == RANKS ? n : 1), replicas * (e->samples ? e->samples : 1));
    *stack = dl_arena_format(arena, "%s%s%s", entry_with(e, n, arena), e->beside ? "," : "",
                             e->beside ? with_number(e->beside, n, arena) : "");
}

#endif
