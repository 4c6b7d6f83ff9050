/* row_traits.c - what a row may have in common with others that are predicted as badly. */
#include "sim/study/row_trials.h"

/* As the row says, or what is left; 0: a file says it. */
static int64_t data_ways(const struct dl_training_row *r)
{
    return r->dp ? r->dp : r->devices / (r->tp * r->pp * r->cp);
}

const char *const *dl_row_traits(const struct dl_training_row *r, struct dl_arena *arena)
{
    const struct {
        const char *name, *text;
        int64_t number; /* if there is no text */
    } traits[] = {
        {"tensor ways", NULL, r->tp},  {"pipeline ways", NULL, r->pp},       {"data ways", NULL, data_ways(r)},
        {"context ways", NULL, r->cp}, {"expert ways", NULL, r->ep},         {"chunks", NULL, r->vpp},
        {"schedule", r->schedule, 0},  {"recompute", r->recompute, 0},       {"ZeRO", NULL, r->zero},
        {"sequence", NULL, r->seq},    {"micro-batch", NULL, r->microbatch}, {"hidden", NULL, r->hidden},
        {"devices", NULL, r->devices}, {"precision", r->precision, 0},       {"model", r->model, 0},
        {"system", r->topo, 0},
    };
    const char **const list = dl_arena_alloc(arena, (DL_COUNT(traits) + 1) * sizeof *list);
    for (size_t i = 0; i < DL_COUNT(traits); i++)
        list[i] = traits[i].text ? dl_arena_format(arena, "%s %s", traits[i].name, traits[i].text)
                                 : dl_arena_format(arena, "%s %lld", traits[i].name, (long long)traits[i].number);
    list[DL_COUNT(traits)] = NULL;
    return list;
}
