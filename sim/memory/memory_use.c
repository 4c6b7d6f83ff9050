#include "sim/memory/memory_use.h"

#include <math.h>
#include <string.h>

#include "sim/memory/footprint.h"

/* The footprint of a block is valid as long as the version of what is there is the same, and it changes nothing. */
struct block {
    struct dl_memory_footprint footprint;
    uint32_t version;
    bool is_known;
    uint32_t item;           /* the last that ran it, with its footprint known */
    struct dl_moment before; /* what was there then */
};

struct stage {
    const struct dl_program *program;
    const struct dl_software *software;
    const struct dl_memory_watch *watch; /* NULL: nobody looks */
    struct dl_live live;
    struct block *blocks;  /* as the program's items */
    struct dl_moment held; /* from the first step on */
    struct dl_moment now, fullest;
    double most_on_host; /* the last three: more than is held */
};

static struct dl_moment sum_of(const struct dl_moment *a, const struct dl_moment *b)
{
    struct dl_moment sum = *a;
    for (int i = 0; i < DL_N_MEMORY_CATEGORIES; i++) sum.bytes[i] += b->bytes[i];
    return sum;
}

/* Gradients that stay from step to step count as what comes and goes, for they are as fragmented. */
static struct dl_memory_use use_of(const struct stage *stage, const struct dl_moment *more)
{
    const struct dl_moment all = sum_of(&stage->held, more);
    const double moving = dl_moment_total(more) + stage->held.bytes[DL_MEMORY_GRADIENTS];
    struct dl_memory_use u = {.parameters = all.bytes[DL_MEMORY_PARAMETERS],
                              .gradients = all.bytes[DL_MEMORY_GRADIENTS],
                              .optimizer = all.bytes[DL_MEMORY_OPTIMIZER],
                              .activations = all.bytes[DL_MEMORY_ACTIVATIONS],
                              .buffers = all.bytes[DL_MEMORY_BUFFERS],
                              .workspace = all.bytes[DL_MEMORY_WORKSPACE],
                              .peak = dl_moment_total(&all),
                              .fragmentation = stage->software->fragmentation_fraction * moving,
                              .on_host = all.bytes[DL_MEMORY_HOST]};
    u.beside = stage->software->outside_bytes + (stage->software->keeps_fragments ? u.fragmentation : 0);
    return u;
}

static void show(const struct stage *stage, const struct dl_sequenced *item, const struct dl_moment *fullest,
                 const struct dl_moment *left)
{
    if (!stage->watch) return;
    const struct dl_memory_use at_most = use_of(stage, fullest), after = use_of(stage, left);
    stage->watch->see(stage->watch->user, stage->program->stage, item, &at_most, &after);
}

static const struct dl_memory_footprint *look_up(struct stage *stage, uint32_t block)
{
    struct block *const known = &stage->blocks[block];
    if (known->is_known && known->version == stage->live.version) return &known->footprint;
    known->version = stage->live.version;
    known->footprint = dl_memory_footprint(&stage->program->items[block]->memory, &stage->live);
    known->is_known = known->version == stage->live.version;
    return &known->footprint;
}

/* Returns its fullest moment. */
static struct dl_moment run(struct stage *stage, const struct dl_memory_footprint *f)
{
    const struct dl_moment then = sum_of(&stage->now, &f->fullest);
    if (dl_moment_total(&then) > dl_moment_total(&stage->fullest)) stage->fullest = then;
    stage->most_on_host = fmax(stage->most_on_host, stage->now.bytes[DL_MEMORY_HOST] + f->most_on_host);
    stage->now = sum_of(&stage->now, &f->left);
    for (int i = 0; i < DL_N_MEMORY_CATEGORIES; i++) /* sums may end a rounding below nothing */
        if (stage->now.bytes[i] < 0) stage->now.bytes[i] = 0;
    return then;
}

/* How many items from this one on only repeat what was: the same as before is there as when its block ran the last
 * time, and the same blocks follow, as often as there is room for all of them. */
static uint32_t count_repeated(const struct stage *stage, uint32_t item)
{
    const struct dl_program *const p = stage->program;
    const struct block *const b = &stage->blocks[p->sequence[item].block];
    const bool comes_again = b->is_known && b->version == stage->live.version;
    if (!comes_again || memcmp(&b->before, &stage->now, sizeof stage->now) != 0) return 0;
    const uint32_t period = item - b->item;
    uint32_t end = item;
    while (end < p->n_sequence && p->sequence[end].block == p->sequence[end - period].block) end++;
    return (end - item) / period * period;
}

static void walk_item(struct stage *stage, uint32_t item)
{
    const struct dl_sequenced *const at = &stage->program->sequence[item];
    struct block *const block = &stage->blocks[at->block];
    block->item = item;
    block->before = stage->now;
    const struct dl_moment then = run(stage, look_up(stage, at->block));
    show(stage, at, &then, &stage->now);
}

static void walk(struct stage *stage)
{
    const struct dl_program *const p = stage->program;
    const struct dl_moment nothing = {0};
    stage->held = dl_memory_footprint(&p->begin, &stage->live).left;
    for (uint32_t i = 0; i < p->n_sequence; i++) {
        if (!stage->watch) i += count_repeated(stage, i);
        if (i < p->n_sequence) walk_item(stage, i);
    }
    const struct dl_memory_footprint end = dl_memory_footprint(&p->end.memory, &stage->live);
    const struct dl_moment then = run(stage, &end);
    show(stage, NULL, &then, &nothing);
}

void dl_memory_watch_programs(const struct dl_program *programs, uint32_t n_stages, const struct dl_software *software,
                              struct dl_memory_use *use, const struct dl_memory_watch *watch)
{
    for (uint32_t i = 0; i < n_stages; i++) {
        struct stage stage = {.program = &programs[i], .software = software, .watch = watch};
        stage.blocks = dl_alloc((size_t)programs[i].n_chunks * DL_N_TEMPLATES * sizeof *stage.blocks);
        dl_live_init(&stage.live, &programs[i]);
        walk(&stage);
        use[i] = use_of(&stage, &stage.fullest);
        use[i].on_host = stage.held.bytes[DL_MEMORY_HOST] + stage.most_on_host;
        dl_live_release(&stage.live);
        dl_free(stage.blocks);
    }
}

void dl_memory_of_programs(const struct dl_program *programs, uint32_t n_stages, const struct dl_software *software,
                           struct dl_memory_use *use)
{
    dl_memory_watch_programs(programs, n_stages, software, use, NULL);
}

double dl_memory_of_host(const struct dl_topology *t, const struct dl_job *job, const struct dl_memory_use *use)
{
    const uint32_t per_node = t->node.n_devices, n = job->n_devices;
    double most = 0;
    for (uint32_t i = 0; i < dl_n_stages(&job->setting); i++) most = fmax(most, use[i].on_host);
    return most * (n < per_node ? n : per_node);
}

bool dl_memory_fits_host(const struct dl_topology *t, const struct dl_job *job, const struct dl_memory_use *use)
{
    const double memory_bytes = t->node.host.memory_bytes;
    return memory_bytes == 0 || dl_memory_of_host(t, job, use) <= memory_bytes;
}

double dl_memory_outside(const struct dl_setting *s, const struct dl_model *model)
{
    const double bytes = dl_precision_bytes(s->precision) + dl_gradient_bytes(s) + dl_optimizer_state_bytes(s);
    return s->streams_weights ? dl_model_parameters(model) * bytes : 0;
}

bool dl_memory_fits_outside(const struct dl_topology *t, const struct dl_setting *s, const struct dl_model *model)
{
    return t->weight_memory_bytes == 0 || dl_memory_outside(s, model) <= t->weight_memory_bytes;
}

double dl_memory_of_checkpoint(const struct dl_setting *s, const struct dl_model *model)
{
    const double parameters = dl_model_parameters(model) - model->copied_parameters;
    return parameters * (dl_precision_bytes(s->precision) + dl_optimizer_state_bytes(s));
}
