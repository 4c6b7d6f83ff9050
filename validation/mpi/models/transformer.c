/* transformer.c - dlsim's transformer with plain attention, GELU or ReLU, LayerNorm, and experts if it has any. */
#include "validation/mpi/models/models.h"
#include "validation/mpi/models/transformer_options.h"

struct building {
    struct dl_train *t;
    const struct dl_transformer_options *o;
    struct dl_real_layer *layer;
};

static void add_norm(const struct building *b)
{
    const size_t vectors = 2; /* gain and bias */
    dl_add_vector(b->t, b->layer, &dl_unit_layernorm, vectors, b->o->hidden, false);
}

static void add_linear(const struct building *b, size_t inputs, size_t outputs, enum dl_unit_cut cut)
{
    dl_add_linear(b->t, b->layer, inputs, outputs, cut);
    if (cut == DL_UNIT_BY_ROWS) dl_add_mark(b->t, b->layer, &dl_unit_leave);
    if (b->o->bias) dl_add_vector(b->t, b->layer, &dl_unit_bias, 1, outputs, cut == DL_UNIT_BY_COLUMNS);
}

static void add_attention(const struct building *b)
{
    const size_t hidden = b->o->hidden, width = b->o->heads * b->o->head_size;
    const int ways = b->t->summa ? b->t->row.n : b->t->tensor.n;
    struct dl_attention_shape *const shape = dl_arena_alloc(b->t->arena, sizeof *shape);
    *shape = (struct dl_attention_shape){
        .heads = b->o->heads / (size_t)ways, .head_size = b->o->head_size, .seq = b->o->seq, .causal = b->o->causal};
    dl_add_mark(b->t, b->layer, &dl_unit_enter);
    add_linear(b, hidden, 3 * width, DL_UNIT_BY_COLUMNS);
    dl_add_unit(b->layer, &dl_unit_attention)->more = shape;
    add_linear(b, width, hidden, DL_UNIT_BY_ROWS);
}

static const struct dl_unit_kind *activation(const struct dl_transformer_options *o)
{
    return o->gelu ? &dl_unit_gelu : &dl_unit_relu;
}

static void add_feed_forward(const struct building *b)
{
    const size_t hidden = b->o->hidden, ffn = b->o->ffn;
    dl_add_mark(b->t, b->layer, &dl_unit_enter);
    add_linear(b, hidden, ffn, DL_UNIT_BY_COLUMNS);
    dl_add_unit(b->layer, activation(b->o));
    add_linear(b, ffn, hidden, DL_UNIT_BY_ROWS);
}

static bool has_experts(const struct dl_transformer_options *o, size_t block)
{
    return o->experts && block >= o->dense_layers && (block - o->dense_layers + 1) % o->moe_every == 0;
}

static void add_half(const struct building *b, void (*inside)(const struct building *b))
{
    const size_t fork = b->layer->n_units;
    dl_add_unit(b->layer, &dl_unit_fork);
    add_norm(b);
    inside(b);
    struct dl_unit *const join = dl_add_unit(b->layer, &dl_unit_join);
    join->other = b->layer->n_units - 1 - fork;
}

static void add_experts(const struct building *b)
{
    dl_add_experts(b->t, b->layer,
                   &(struct dl_experts_shape){.n = b->o->experts,
                                              .chosen = b->o->top_k,
                                              .hidden = b->o->hidden,
                                              .ffn = b->o->expert_ffn,
                                              .activation = activation(b->o)});
}

static void add_embedding(const struct building *b)
{
    const size_t hidden = b->o->hidden, vocab = b->o->vocab;
    const struct dl_team *const team = b->t->summa ? &b->t->column : &b->t->tensor;
    struct dl_unit *const table =
        dl_add_parameters(b->layer, &dl_unit_look_up, vocab, hidden,
                          dl_part_of(vocab, (size_t)team->rank, (size_t)team->n), dl_cols_outside(b->t, hidden));
    table->scale = 1;
    dl_add_mark(b->t, b->layer, &dl_unit_leave);
    if (b->o->learned_positions)
        dl_add_vector(b->t, b->layer, &dl_unit_positions, b->o->seq, hidden, false)->scale = 0.1;
    if (b->o->embedding_norm) add_norm(b);
}

static void add_head(const struct building *b)
{
    if (b->o->final_norm) add_norm(b);
    dl_add_mark(b->t, b->layer, &dl_unit_enter);
    dl_add_linear(b->t, b->layer, b->o->hidden, b->o->vocab, DL_UNIT_BY_COLUMNS);
    dl_add_unit(b->layer, &dl_unit_parallel_loss);
}

static enum dl_status build(struct dl_train *t, struct dl_error *err)
{
    struct dl_transformer_options o;
    if (dl_transformer_options_read(t->workload_doc, t->tensor.n > 1, t->arena, &o, err)) return err->status;
    for (size_t i = 0; i < t->model.n_layers; i++) {
        const struct building b = {.t = t, .o = &o, .layer = &t->layers[i]};
        if (!dl_is_here(t, i)) continue;
        if (i == 0) {
            add_embedding(&b);
        } else if (i + 1 == t->model.n_layers) {
            add_head(&b);
        } else {
            add_half(&b, add_attention);
            add_half(&b, has_experts(&o, i - 1) ? add_experts : add_feed_forward);
        }
    }
    t->input_is_whole = true;
    t->rows_per_sample = t->sample_inputs = o.seq;
    t->n_classes = o.vocab;
    return DL_OK;
}

const struct dl_model_kind dl_model_transformer = {.name = "transformer", .build = build, .sample = dl_sample_tokens};
