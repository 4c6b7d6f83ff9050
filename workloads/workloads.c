#include "workloads/workloads.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The only list; a new workload is one file and one line here. */
static const struct dl_workload_kind *const workloads[] = {&dl_workload_transformer, &dl_workload_convnet,
                                                           &dl_workload_mlp};

size_t dl_workload_count(void) { return DL_COUNT(workloads); }

const struct dl_workload_kind *dl_workload_get(size_t index) { return workloads[index]; }

static enum dl_status find_kind(struct dl_json doc, const struct dl_workload_kind **kind, struct dl_arena *arena,
                                struct dl_error *err)
{
    const char *choices[DL_COUNT(workloads) + 1] = {NULL};
    for (size_t i = 0; i < DL_COUNT(workloads); i++) choices[i] = workloads[i]->name;
    int64_t chosen = 0;
    const struct dl_field field = {"kind", DL_CHOICE, 0, 0, 0, false, choices, "which builder makes the model"};
    struct dl_json only_kind = {.value = json_object(), .where = doc.where};
    json_t *const name = json_object_get(doc.value, "kind");
    if (name) json_object_set(only_kind.value, "kind", name);
    dl_read(only_kind, &field, 1, &chosen, arena, err);
    json_decref(only_kind.value);
    *kind = workloads[chosen];
    return err->status;
}

static enum dl_status read_options(struct dl_json doc, const struct dl_workload_kind *kind, void *options,
                                   struct dl_arena *arena, struct dl_error *err)
{
    struct dl_json rest = {.value = json_copy(doc.value), .where = doc.where};
    json_object_del(rest.value, "kind");
    json_object_del(rest.value, "samples");
    memcpy(options, kind->defaults, kind->options_size);
    dl_read_document(rest, "workload", kind->fields, kind->n_fields, options, arena, err);
    json_decref(rest.value); /* a shallow copy: the members that the fields point to stay with doc */
    return err->status;
}

const char *const dl_modules[] = {"core_attn", "layernorm",      "mla_up_proj", "mlp",
                                  "moe_act",   "shared_experts", "moe",         NULL};
const char *const dl_adapter_targets[] = {"qkv", "projection", "fc1", "fc2", NULL};
const char *const dl_results[] = {"qkv", "context", "projection", "fc1", NULL};

void dl_saved_add(struct dl_saved *sum, const struct dl_saved *part)
{
    sum->outside_bytes += part->outside_bytes;
    sum->inside_bytes += part->inside_bytes;
    sum->scores_bytes += part->scores_bytes;
    sum->input_bytes += part->input_bytes;
    sum->weighed_bytes += part->weighed_bytes;
    sum->norm_bytes += part->norm_bytes;
    sum->operands_outside_bytes += part->operands_outside_bytes;
    sum->operands_inside_bytes += part->operands_inside_bytes;
    sum->copied_outside_bytes += part->copied_outside_bytes;
    sum->copied_inside_bytes += part->copied_inside_bytes;
    sum->adapted_bytes += part->adapted_bytes;
    sum->gathered_bytes += part->gathered_bytes;
    sum->pooled_elements += part->pooled_elements;
}

const char *const dl_packings[] = {"raw", "gzip", "jpeg", NULL};
static const struct dl_field sample_fields[] = {
    {"count", DL_NUMBER, offsetof(struct dl_samples, count), 1, 1e15, false, NULL, "that training goes through"},
    {"stored_bytes", DL_NUMBER, offsetof(struct dl_samples, stored_bytes), 1, 1e12, false, NULL,
     "of one, as it is stored"},
    {"device_bytes", DL_NUMBER, offsetof(struct dl_samples, device_bytes), 1, 1e12, true, NULL,
     "of one, as it goes to the device; as stored if absent"},
    {"packing", DL_CHOICE, offsetof(struct dl_samples, packing), 0, 0, true, dl_packings,
     "that the host undoes; raw if absent"},
};

static enum dl_status read_samples(struct dl_json doc, struct dl_samples *out, struct dl_arena *arena,
                                   struct dl_error *err)
{
    const struct dl_json data = dl_json_member(doc, "samples", arena);
    if (!data.value) return DL_OK;
    if (dl_read(data, sample_fields, DL_COUNT(sample_fields), out, arena, err)) return err->status;
    if (out->device_bytes == 0) out->device_bytes = out->stored_bytes;
    return DL_OK;
}

static const struct attention {
    const char *name;
    bool flash;
} attentions[] = {{"unfused", false}, {"flash", true}};

/* NULL: there is none. */
static const struct attention *find_attention(const char *name)
{
    for (size_t i = 0; i < DL_COUNT(attentions); i++)
        if (strcmp(attentions[i].name, name) == 0) return &attentions[i];
    return NULL;
}

enum dl_status dl_workload_read(struct dl_json doc, double samples, struct dl_model_code code, struct dl_arena *arena,
                                struct dl_model *out, struct dl_error *err)
{
    assert(samples > 0);
    const struct attention *const attention = find_attention(code.attention);
    if (!attention)
        return dl_fail(err, DL_RANGE, "attention", "must be one of unfused, flash, got '%.60s'", code.attention);
    const struct dl_build build = {.doc = doc,
                                   .samples = samples,
                                   .flash = attention->flash,
                                   .unfused_groups = code.unfused_groups,
                                   .projections_apart = code.projections_apart,
                                   .without_dropout = code.without_dropout,
                                   .gathers_key_heads = code.gathers_key_heads,
                                   .head_ways = code.head_ways,
                                   .adapters = code.adapters,
                                   .arena = arena};
    const struct dl_workload_kind *kind;
    if (dl_check_schema(doc, "workload", arena, err) || find_kind(doc, &kind, arena, err)) return err->status;
    void *const options = dl_arena_alloc(arena, kind->options_size);
    *out = (struct dl_model){
        .name = dl_document_name(doc, arena), .samples = samples, .lacks_adapters = "it is no transformer"};
    if (read_options(doc, kind, options, arena, err) || read_samples(doc, &out->data, arena, err)) return err->status;
    if (kind->build(options, &build, out, err)) return err->status;
    for (size_t i = 0; i < out->n_layers; i++) out->layers[i].index = (uint32_t)i;
    dl_model_widen(out, code.wide_first, code.wide_last, arena);
    return DL_OK;
}

double dl_kernel_flop(const struct dl_kernel *k)
{
    const double flop_per_multiply_add = 2;
    const double products = k->batch * k->m * k->n * k->k;
    switch (k->kind) {
    case DL_KERNEL_GEMM:
    case DL_KERNEL_CONV: return flop_per_multiply_add * products;
    case DL_KERNEL_ATTENTION: {
        /* Forward has two products; backward four and the scores once more (Dao et al. 2022, algorithm 4). */
        const double n_products = k->backward ? 5 : 2;
        return flop_per_multiply_add * n_products * products * (k->causal ? 0.5 : 1);
    }
    case DL_KERNEL_MEMORY: return k->elements * k->flop_per_element;
    }
    return 0;
}

double dl_counted_flop(const struct dl_kernel *k, double flop, enum dl_flop_count count)
{
    const double of_mask = 2; /* all scores over those that a causal mask leaves */
    const enum dl_flop_count done = k->kind == DL_KERNEL_ATTENTION ? DL_FLOP_CAUSAL : DL_FLOP_FULL;
    if (!k->masked || done == count) return flop;
    return count == DL_FLOP_FULL ? flop * of_mask : flop / of_mask;
}

const char *dl_kernel_operation(const struct dl_kernel *k)
{
    switch (k->kind) {
    case DL_KERNEL_GEMM: return dl_kernel_is_of_experts(k) ? "grouped_gemm" : "gemm";
    case DL_KERNEL_CONV: return "conv";
    case DL_KERNEL_ATTENTION: return "attention";
    case DL_KERNEL_MEMORY: break;
    }
    return k->operation ? k->operation : k->name;
}

dl_dimensions dl_kernel_all_dimensions(const struct dl_kernel *k)
{
    return k->by.batch | k->by.m | k->by.n | k->by.k | k->by.elements;
}

bool dl_kernel_is_of_experts(const struct dl_kernel *k) { return dl_kernel_all_dimensions(k) & DL_BY_EXPERT; }

bool dl_kernel_is_core_attention(const struct dl_kernel *k)
{
    return k->kind == DL_KERNEL_ATTENTION || k->module == DL_MODULE_CORE_ATTENTION;
}

bool dl_kernel_is_product(const struct dl_kernel *k) { return k->kind == DL_KERNEL_GEMM || k->kind == DL_KERNEL_CONV; }

bool dl_kernel_is_linear(const struct dl_kernel *k)
{
    return k->kind == DL_KERNEL_GEMM && !dl_kernel_is_core_attention(k);
}

bool dl_work_has_pieces(const struct dl_work *work)
{
    return work->kernel.kind == DL_KERNEL_GEMM && work->gradient == DL_GRADIENT_INPUT;
}

double dl_layer_tokens(const struct dl_layer *layer)
{
    for (const struct dl_work *at = layer->forward; at < layer->forward + layer->n_forward; at++)
        if (at->kernel.tokens > 0) return at->kernel.tokens * at->kernel.elements;
    return 0;
}

double dl_layer_parameters(const struct dl_layer *layer)
{
    return layer->parameters_inside + layer->parameters_outside + layer->expert_parameters;
}

double dl_model_parameters(const struct dl_model *model)
{
    double sum = 0;
    for (size_t i = 0; i < model->n_layers; i++) sum += dl_layer_parameters(&model->layers[i]);
    return sum;
}

double dl_model_frozen(const struct dl_model *model)
{
    double sum = 0;
    for (size_t i = 0; i < model->n_layers; i++)
        sum += model->layers[i].frozen_inside + model->layers[i].frozen_outside;
    return sum;
}

const struct dl_kernel *dl_model_find(const struct dl_model *model, bool (*is_it)(const struct dl_kernel *))
{
    for (size_t i = 0; i < model->n_layers; i++)
        for (size_t j = 0; j < model->layers[i].n_forward; j++) {
            const struct dl_kernel *const k = &model->layers[i].forward[j].kernel;
            if (is_it(k)) return k;
        }
    return NULL;
}

double dl_layer_model_flop(const struct dl_layer *layer, double expert_padding, enum dl_flop_count count)
{
    double sum = 0;
    for (size_t i = 0; i < layer->n_forward; i++) {
        const struct dl_kernel *const k = &layer->forward[i].kernel;
        if (!k->moves_tokens)
            sum += dl_counted_flop(k, dl_kernel_flop(k), count) / (dl_kernel_is_of_experts(k) ? expert_padding : 1);
    }
    return sum;
}

double dl_layer_unneeded_flop(const struct dl_layer *layer, enum dl_flop_count count)
{
    double sum = 0;
    for (size_t i = 0; i < layer->n_forward; i++) {
        const struct dl_kernel *const k = &layer->forward[i].kernel;
        const double of_input = dl_kernel_is_core_attention(k) ? 2 : 1;
        sum += dl_counted_flop(k, dl_kernel_flop(k), count) * (k->frozen + (k->is_below ? of_input : 0));
    }
    return sum;
}

static double work_flop(const struct dl_work *work, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += dl_kernel_flop(&work[i].kernel);
    return sum;
}

void dl_model_set_flop(struct dl_model *model)
{
    double sum = 0;
    for (size_t i = 0; i < model->n_layers; i++) {
        const struct dl_layer *const layer = &model->layers[i];
        sum += work_flop(layer->forward, layer->n_forward) + work_flop(layer->backward, layer->n_backward);
    }
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++) model->model_flop_per_sample[count] = sum / model->samples;
}

enum dl_status dl_refuse(const struct dl_build *build, const char *key, struct dl_error *err, const char *format, ...)
{
    char text[320];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(build->doc, key, build->arena).where, "%s", text);
}
