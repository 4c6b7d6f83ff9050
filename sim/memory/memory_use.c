#include "sim/memory/memory_use.h"

#include <math.h>
#include <string.h>

/* What comes and goes. */
struct moment {
    double activations, gradients, buffers, workspace;
};

static double total(const struct moment *m) { return m->activations + m->gradients + m->buffers + m->workspace; }

/* What an item does to the memory of its stage, from where it begins. */
struct footprint {
    struct moment fullest;
    double activations, gradients, copied; /* more at its end than at its begin; copied to the host */
};

/* By kind; the first backward of a chunk makes the gradients that later ones add to, unless these stay from step to
 * step. */
enum { N_KINDS = DL_ITEM_W + 1 };
struct chunk {
    struct footprint later[N_KINDS], first[N_KINDS];
    bool has_gradients;
};

static void look(struct footprint *f, const struct moment *now)
{
    if (total(now) > total(&f->fullest)) f->fullest = *now;
}

/* A pass through a chunk, from layer to layer. */
struct pass {
    const struct dl_layer_needs *needs;
    size_t n;
    size_t ahead; /* layers whose parameters are on their way while one is at work */
    bool splits_backward;
    double bucket_bytes;  /* of gradients that are scattered together; 0: those of each layer */
    bool scatters_beside; /* while the next layers are at work */
};

/* The layer at work, and those whose parameters are on their way. */
static double gathered(const struct pass *p, size_t at, bool backward)
{
    double sum = 0;
    for (size_t i = 0; i <= p->ahead && (backward ? i <= at : at + i < p->n); i++)
        sum += p->needs[backward ? at - i : at + i].gathered;
    return sum;
}

static struct footprint forward(const struct pass *p)
{
    const struct dl_layer_needs *const needs = p->needs;
    struct footprint f = {0};
    for (size_t i = 0; i < p->n; i++) {
        f.activations += needs[i].saved;
        f.copied += needs[i].copied;
        look(&f, &(struct moment){.activations = f.activations,
                                  .buffers = gathered(p, i, false) + needs[i].regathered + needs[i].copied +
                                             (i > 0 ? needs[i - 1].copied : 0)});
    }
    return f;
}

/* Whole gradients of a bucket that layers fill, and of the one before it on its way. */
struct buckets {
    double filling, sent;
};

static double unreduced(const struct pass *p, size_t at, struct buckets *b)
{
    b->filling += p->needs[at].unreduced;
    const double all = b->filling + b->sent;
    if (b->filling < p->bucket_bytes) return all;
    b->sent = p->scatters_beside ? b->filling : 0;
    b->filling = 0;
    return all;
}

/* What the blocks of a group that are not done yet have again. */
static struct moment group(const struct pass *p, size_t at)
{
    struct moment m = {.workspace = p->needs[at].recomputed, .buffers = p->needs[at].regathered};
    while (at > 0 && !p->needs[at].begins_group) {
        at--;
        m.workspace += p->needs[at].recomputed;
        m.buffers += p->needs[at].regathered;
    }
    return m;
}

static struct footprint backward(const struct pass *p, bool makes_gradients)
{
    const struct dl_layer_needs *const needs = p->needs;
    struct footprint f = {0};
    struct buckets buckets = {0};
    for (size_t i = p->n; i-- > 0;) {
        const struct moment again = group(p, i);
        const double scattered = p->splits_backward ? 0 : unreduced(p, i, &buckets);
        if (makes_gradients) f.gradients += needs[i].gradients;
        look(&f, &(struct moment){.activations = f.activations,
                                  .gradients = f.gradients,
                                  .buffers = gathered(p, i, true) + scattered + again.buffers + needs[i].copied +
                                             (i > 0 ? needs[i - 1].copied : 0),
                                  .workspace = again.workspace + needs[i].at_work});
        f.copied -= needs[i].copied;
        f.activations += (p->splits_backward ? needs[i].for_weights : 0) - needs[i].saved;
    }
    return f;
}

static struct footprint weights(const struct pass *p, bool makes_gradients)
{
    struct footprint f = {0};
    struct buckets buckets = {0};
    for (size_t i = p->n; i-- > 0;) {
        if (makes_gradients) f.gradients += p->needs[i].gradients;
        look(&f, &(struct moment){
                     .activations = f.activations, .gradients = f.gradients, .buffers = unreduced(p, i, &buckets)});
        f.activations -= p->needs[i].for_weights;
    }
    return f;
}

static void measure_chunk(const struct pass *p, struct chunk *out)
{
    out->later[DL_ITEM_F] = out->first[DL_ITEM_F] = forward(p);
    out->later[DL_ITEM_B] = backward(p, false);
    out->first[DL_ITEM_B] = backward(p, !p->splits_backward);
    out->later[DL_ITEM_W] = weights(p, false);
    out->first[DL_ITEM_W] = weights(p, true);
}

/* ---- a stage ---- */

struct stage {
    const struct dl_setting *setting;
    const struct dl_memory_watch *watch; /* NULL: nobody looks */
    uint32_t index;
    struct chunk *chunks;
    struct dl_memory_use held; /* from begin to end */
    double gradients;
    double updating;        /* while the optimizer works, beside what is held */
    double chunk_gradients; /* whole ones of a chunk, until they are scattered */
};

static void add_chunk(struct stage *stage, const struct dl_layer *layers, const struct dl_position *p, bool splits,
                      struct chunk *out)
{
    const size_t n = p->end_layer - p->first_layer;
    const bool by_chunk = dl_accumulated(stage->setting) == DL_ACCUMULATES_CHUNK;
    double whole_gradients = 0;
    struct dl_layer_needs *const needs = dl_alloc((n + 1) * sizeof *needs);
    for (size_t i = 0; i < n; i++) {
        const size_t layer = p->first_layer + i;
        needs[i] = dl_layer_needs(stage->setting, &layers[layer], (uint32_t)(layer - p->first_block));
        stage->held.parameters += needs[i].parameters;
        stage->held.optimizer += needs[i].optimizer;
        stage->held.buffers += needs[i].kept;
        stage->gradients += needs[i].gradients;
        stage->updating += needs[i].updating;
        stage->held.on_host += needs[i].on_host;
        whole_gradients += needs[i].unreduced;
        if (by_chunk) needs[i].unreduced = 0;
    }
    if (by_chunk) stage->chunk_gradients = fmax(stage->chunk_gradients, whole_gradients);
    const struct pass pass = {.needs = needs,
                              .n = n,
                              .ahead = dl_gathers_ahead(stage->setting),
                              .splits_backward = splits,
                              .bucket_bytes = stage->setting->bucket_bytes,
                              .scatters_beside = stage->setting->exchanges_beside_work};
    measure_chunk(&pass, out);
    dl_free(needs);
}

/* One input that has come early and one output that is not gone yet. */
static double send_buffers(const struct dl_setting *s, const struct dl_program *p)
{
    const double in_step = s->ways[DL_AXIS_TENSOR] * s->ways[DL_AXIS_CONTEXT];
    return 2 * p->send_bytes / in_step;
}

static void sum_up(const struct stage *stage, const struct moment *fullest, struct dl_memory_use *u)
{
    *u = stage->held;
    u->gradients = fullest->gradients;
    u->activations = fullest->activations;
    u->buffers += fullest->buffers;
    u->workspace = fullest->workspace;
    u->peak = u->parameters + u->gradients + u->optimizer + u->activations + u->buffers + u->workspace;
    const struct dl_software *const software = stage->setting->software;
    u->fragmentation = software->fragmentation_fraction * total(fullest);
    u->beside = software->outside_bytes + (software->keeps_fragments ? u->fragmentation : 0);
}

static void show(const struct stage *stage, const struct dl_item *item, const struct moment *fullest,
                 const struct moment *left)
{
    struct dl_memory_use at_most, after;
    if (!stage->watch) return;
    sum_up(stage, fullest, &at_most);
    sum_up(stage, left, &after);
    stage->watch->see(stage->watch->user, stage->index, item, &at_most, &after);
}

/* Also finds the most that is copied to the host at once. */
static struct moment fullest_moment(const struct stage *stage, const struct dl_item *items, uint32_t n_items,
                                    double *most_copied)
{
    const bool keeps_gradients = stage->setting->software->gradients_persist;
    struct moment now = {.gradients = keeps_gradients ? stage->gradients : 0}, before = now, fullest = now;
    double copied = 0;
    for (uint32_t i = 0; i < n_items; i++) {
        const struct dl_item *const item = &items[i];
        struct chunk *const chunk = &stage->chunks[item->chunk];
        const bool first = !keeps_gradients && !chunk->has_gradients;
        const struct footprint *const f = first ? &chunk->first[item->kind] : &chunk->later[item->kind];
        const struct moment then = {.activations = now.activations + f->fullest.activations,
                                    .gradients = now.gradients + f->fullest.gradients,
                                    .buffers = f->fullest.buffers,
                                    .workspace = f->fullest.workspace};
        if (total(&then) > total(&fullest)) fullest = then;
        now.activations = fmax(now.activations + f->activations, 0); /* sums may end a rounding below nothing */
        now.gradients += f->gradients;
        copied += f->copied;
        *most_copied = fmax(*most_copied, copied);
        chunk->has_gradients |= f->gradients > 0;
        show(stage, item, &then, &now);
    }
    const struct moment update = {.gradients = stage->gradients, .workspace = stage->updating};
    show(stage, NULL, &update, &before);
    return total(&update) > total(&fullest) ? update : fullest;
}

void dl_memory_watch_stages(const struct dl_setting *s, const struct dl_lowered *l, struct dl_memory_use *use,
                            const struct dl_memory_watch *watch)
{
    const struct dl_schedule *const schedule = &l->schedule;
    struct chunk *const chunks = dl_alloc(s->chunks * sizeof *chunks);
    for (uint32_t i = 0; i < s->ways[DL_AXIS_PIPELINE]; i++) {
        struct stage stage = {.setting = s,
                              .watch = watch,
                              .index = i,
                              .chunks = chunks,
                              .held = {.buffers = send_buffers(s, &l->programs[i])}};
        memset(chunks, 0, s->chunks * sizeof *chunks);
        for (uint32_t chunk = 0; chunk < s->chunks; chunk++)
            add_chunk(&stage, l->layers, &l->positions[schedule->position_of[i * s->chunks + chunk]],
                      schedule->splits_backward, &chunks[chunk]);
        stage.held.buffers += (s->exchanges_beside_work ? 2 : 1) * stage.chunk_gradients; /* one fills, one goes */
        double most_copied = 0;
        const struct moment fullest = fullest_moment(&stage, schedule->items[i], schedule->n_items[i], &most_copied);
        sum_up(&stage, &fullest, &use[i]);
        use[i].on_host += most_copied;
    }
    dl_free(chunks);
}

void dl_memory_of_stages(const struct dl_setting *s, const struct dl_lowered *l, struct dl_memory_use *use)
{
    dl_memory_watch_stages(s, l, use, NULL);
}

double dl_memory_of_host(const struct dl_topology *t, const struct dl_job *job, const struct dl_memory_use *use)
{
    const uint32_t per_node = t->node.n_devices, n = job->n_devices;
    double most = 0;
    for (uint32_t i = 0; i < job->setting.ways[DL_AXIS_PIPELINE]; i++) most = fmax(most, use[i].on_host);
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
    return dl_model_parameters(model) * (dl_precision_bytes(s->precision) + dl_optimizer_state_bytes(s));
}
