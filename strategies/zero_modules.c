#include "strategies/zero_modules.h"

#include <math.h>
#include <string.h>

#include "strategies/recompute.h"

/* ---- a layer ---- */

/* Adapters go with the matrix that they are on: DeepSpeed takes as many parameters ahead as a limit allows, however
 * many tensors these are, so that small ones hold back no large one. */
static bool is_module(const struct dl_kernel *k) { return dl_kernel_is_linear(k) && !k->adapter; }

/* Among the first so many kernels of its forward. */
static uint32_t count_matrices(const struct dl_layer *layer, size_t n_kernels)
{
    uint32_t n = 0;
    for (size_t i = 0; i < n_kernels; i++) n += is_module(&layer->forward[i].kernel);
    return n;
}

/* Some of its matrices come again before its backward, and not all: it is simpler to gather it whole. */
static bool repeats_some(const struct dl_module_rules *r, const struct dl_layer *layer)
{
    const struct dl_setting *const s = r->setting;
    const dl_module_set modules = s->recompute == DL_RECOMPUTE_SELECTIVE ? s->recompute_modules : 0;
    for (size_t i = 0; i < layer->n_forward; i++) {
        const struct dl_kernel *const k = &layer->forward[i].kernel;
        const bool is_kept = r->recomputed && dl_recompute_keeps(r->recomputed, s, layer, i);
        if (dl_kernel_is_linear(k) && (modules >> k->module & 1 || is_kept)) return true;
    }
    return false;
}

static bool is_by_matrix(const struct dl_module_rules *r, const struct dl_layer *layer)
{
    const bool in_groups = r->recomputed && r->recomputed->every > 1;
    const uint32_t n = count_matrices(layer, layer->n_forward);
    return layer->is_block && layer->expert_parameters == 0 && !in_groups && !repeats_some(r, layer) && n > 0 &&
           n <= DL_MOST_MODULES;
}

void dl_modules_count_vectors(const struct dl_layer *layer, double *n_vectors, double *parameters)
{
    double n = layer->n_tensors, left = layer->parameters_inside + layer->parameters_outside;
    if (!layer->is_block || layer->expert_parameters > 0) return;
    for (size_t i = 0; i < layer->n_forward; i++) {
        const struct dl_kernel *const k = &layer->forward[i].kernel;
        if (!dl_kernel_is_linear(k)) continue;
        n--;
        left -= k->n * k->k;
    }
    *n_vectors += fmax(n, 0);
    *parameters += fmax(left, 0);
}

/* Vectors go with the matrices, in proportion. */
static void find_matrices(struct dl_visit *v)
{
    double weights = 0;
    for (size_t i = 0; i < v->layer->n_forward; i++) {
        const struct dl_kernel *const k = &v->layer->forward[i].kernel;
        if (!dl_kernel_is_linear(k)) continue;
        if (is_module(k)) v->names[v->n_modules++] = k->name;
        v->parts[v->n_modules - 1] += k->n * k->k;
        weights += k->n * k->k;
    }
    for (uint32_t i = 0; i < v->n_modules; i++) v->parts[i] /= weights;
}

static struct dl_visit visit_of(const struct dl_module_rules *r, const struct dl_layer *layer, enum dl_pass pass,
                                uint32_t block)
{
    struct dl_visit v = {.layer = layer, .pass = pass, .n_modules = 1, .n_uses = 1, .parts = {1}};
    if (!is_by_matrix(r, layer)) return v;
    v.n_modules = 0;
    v.parts[0] = 0;
    find_matrices(&v);
    if (pass == DL_BACKWARD && dl_recompute_of(r->recomputed, block) == DL_RECOMPUTE_BLOCKS)
        v.n_repeated = count_matrices(layer, dl_recompute_count(r->setting, layer));
    v.n_uses = v.n_repeated + v.n_modules;
    return v;
}

static uint32_t module_at(const struct dl_visit *v, uint32_t use)
{
    const bool forward = v->pass != DL_BACKWARD || use < v->n_repeated;
    return forward ? use : v->n_uses - 1 - use;
}

static double parameters(const struct dl_setting *s, const struct dl_visit *v, uint32_t module)
{
    return dl_layer_held(s, v->layer, false) * v->parts[module];
}

/* Between the repeated forward of a matrix and its backward each one after it is used twice, or once if it is not
 * repeated. */
static bool is_kept(const struct dl_module_rules *r, const struct dl_visit *v, uint32_t module)
{
    double between = 0;
    for (uint32_t i = module + 1; i < v->n_modules; i++)
        between += (i < v->n_repeated ? 2 : 1) * parameters(r->setting, v, i);
    return module < v->n_repeated && between < r->reuse_parameters;
}

static bool needs_gather(const struct dl_module_rules *r, const struct dl_visit *v, uint32_t use)
{
    return !(use >= v->n_repeated && is_kept(r, v, module_at(v, use)));
}

static struct dl_module module_of(const struct dl_visit *v, uint32_t use)
{
    const uint32_t index = module_at(v, use);
    return (struct dl_module){v->layer, index, v->parts[index], v->is_first};
}

/* ---- from layer to layer ---- */

static struct dl_visit next_visit(const struct dl_module_rules *r, const struct dl_event *ev)
{
    const int step = ev->pass == DL_BACKWARD ? -1 : 1;
    if (!ev->n_after || ev->pass == DL_RECOMPUTE) return (struct dl_visit){0};
    struct dl_visit next = visit_of(r, ev->layer + step, ev->pass, ev->block + (uint32_t)step);
    next.is_first = ev->first_micro;
    return next;
}

void dl_modules_begin(struct dl_module_walk *w, const struct dl_module_rules *r, const struct dl_event *ev)
{
    const bool goes_on = !ev->first && w->next.layer == ev->layer && w->next.pass == ev->pass;
    const uint32_t beyond = goes_on && w->fetched > w->now.n_uses ? w->fetched - w->now.n_uses : 0;
    if (!goes_on) *w = (struct dl_module_walk){0};
    w->now = visit_of(r, ev->layer, ev->pass, ev->block);
    w->now.is_first = ev->first_micro;
    w->next = next_visit(r, ev);
    w->begun = 0;
    w->fetched = beyond;
}

bool dl_modules_left(const struct dl_module_walk *w) { return w->begun < w->now.n_uses; }

bool dl_modules_is_use(const struct dl_module_walk *w, const struct dl_event *ev)
{
    const struct dl_visit *const v = &w->now;
    if (!dl_modules_left(w)) return false;
    const char *const name = v->names[module_at(v, w->begun)];
    const enum dl_pass pass = w->begun < v->n_repeated ? DL_RECOMPUTE : v->pass;
    if (!name) return ev->kind == DL_EV_LAYER;
    return ev->kind == DL_EV_COMPUTE && ev->pass == pass && ev->layer == v->layer && ev->kernel.name &&
           strcmp(ev->kernel.name, name) == 0;
}

/* The next use that lacks its parameters, if there is room for more. */
static struct dl_module gather_ahead(struct dl_module_walk *w, const struct dl_module_rules *r)
{
    const uint32_t n = w->now.n_uses, all = n + (w->next.layer ? w->next.n_uses : 0);
    while (w->live < r->live_parameters && w->fetched < all) {
        const uint32_t use = w->fetched++;
        const struct dl_visit *const v = use < n ? &w->now : &w->next;
        const uint32_t of_visit = use < n ? use : use - n;
        if (!needs_gather(r, v, of_visit)) continue;
        w->live += parameters(r->setting, v, module_at(v, of_visit));
        return module_of(v, of_visit);
    }
    return (struct dl_module){0};
}

struct dl_module_turn dl_modules_use(struct dl_module_walk *w, const struct dl_module_rules *r)
{
    const struct dl_visit *const v = &w->now;
    const uint32_t use = w->begun++, module = module_at(v, use);
    const bool comes_again = use < v->n_repeated && is_kept(r, v, module);
    struct dl_module_turn turn = {0};
    w->live -= w->leaving;
    w->leaving = comes_again ? 0 : parameters(r->setting, v, module);
    if (needs_gather(r, v, use)) turn.wait = module_of(v, use);
    if (use >= w->fetched) {
        turn.now = turn.wait;
        w->live += turn.now.layer ? parameters(r->setting, v, module) : 0;
        w->fetched = use + 1;
    }
    turn.ahead = gather_ahead(w, r);
    return turn;
}

/* A matrix that no longer fits in the bucket begins the next. */
uint32_t dl_modules_buckets(const struct dl_module_rules *r, const struct dl_layer *layer,
                            double parts[DL_MOST_MODULES])
{
    const struct dl_visit v = visit_of(r, layer, DL_BACKWARD, 0);
    const double trained = dl_layer_trained(r->setting, layer);
    uint32_t n = 0;
    double filled = 0;
    for (uint32_t i = v.n_modules; i-- > 0;) {
        const double more = trained * v.parts[i];
        const bool fits = n > 0 && filled + more <= r->bucket_parameters;
        filled = fits ? filled + more : more;
        if (fits)
            parts[n - 1] += v.parts[i];
        else
            parts[n++] = v.parts[i];
    }
    return n;
}

double dl_modules_most_live(const struct dl_module_rules *r, const struct dl_layer *layer, uint32_t block)
{
    const struct dl_event backward = {
        .kind = DL_EV_LAYER, .pass = DL_BACKWARD, .layer = layer, .first = true, .block = block};
    struct dl_module_walk w = {0};
    double most = 0;
    dl_modules_begin(&w, r, &backward);
    while (dl_modules_left(&w)) {
        dl_modules_use(&w, r);
        most = fmax(most, w.live);
    }
    return most;
}
