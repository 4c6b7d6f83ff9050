#include "sim/cost/measured.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "sim/cost/operations.h"
#include "sim/cost/power.h"
#include "sim/cost/taken.h"

/* Micikevicius et al. 2022, FP8 Formats for Deep Learning: only the operands of matrix products are cast to fp8. MXFP8
 * has a scale for each 32 of them (Rouhani et al. 2023, arXiv 2310.10537), whose bytes products hardly notice. NVFP4
 * has 4 bits and a scale of one byte for each 16 values (NVIDIA 2025, Pretraining Large Language Models with NVFP4,
 * arXiv 2509.25149). */
static const struct {
    double activation_bytes, value_bytes, scale_bytes;
} precisions[DL_N_PRECISIONS] = {
    [DL_FP32] = {4, 4, 0}, [DL_TF32] = {4, 4, 0},  [DL_FP16] = {2, 2, 0},           [DL_BF16] = {2, 2, 0},
    [DL_FP8] = {2, 1, 0},  [DL_MXFP8] = {2, 1, 0}, [DL_NVFP4] = {2, 0.5, 1.0 / 16},
};
const char *const dl_precision_names[] = {
    [DL_FP32] = "fp32", [DL_TF32] = "tf32",   [DL_FP16] = "fp16",   [DL_BF16] = "bf16",
    [DL_FP8] = "fp8",   [DL_MXFP8] = "mxfp8", [DL_NVFP4] = "nvfp4", [DL_N_PRECISIONS] = NULL,
};

const char *dl_precision_name(enum dl_precision p) { return dl_precision_names[p]; }

double dl_precision_bytes(enum dl_precision p) { return precisions[p].activation_bytes; }

bool dl_precision_is_mixed(enum dl_precision p) { return dl_precision_bytes(p) < dl_precision_bytes(DL_FP32); }

double dl_precision_value_bytes(enum dl_precision p) { return precisions[p].value_bytes; }

double dl_precision_operand_bytes(enum dl_precision p) { return precisions[p].value_bytes + precisions[p].scale_bytes; }

bool dl_precision_is_quantised(enum dl_precision p) { return dl_precision_operand_bytes(p) < dl_precision_bytes(p); }

enum { no_model = -1 };
struct file {
    int64_t model;
    struct dl_json peaks, figures, interpolation, measured, power, taken_by_exchanges, taken_by_sends;
    const char *convolutions_as, *same_chip_as, *instructions_as;
    double memory_bytes, memory_bytes_per_s, launch_s;
    double older_kernels_fraction, gemm_workspace_bytes;
    bool waits_for_collectives;
};

static const struct dl_field peak_fields[] = {
    {"fp32", DL_NUMBER, sizeof(double) * DL_FP32, 1e6, 1e21, true, NULL, "dense, without tf32"},
    {"tf32", DL_NUMBER, sizeof(double) * DL_TF32, 1e6, 1e21, true, NULL, "dense"},
    {"fp16", DL_NUMBER, sizeof(double) * DL_FP16, 1e6, 1e21, true, NULL, "dense, sums in fp32"},
    {"bf16", DL_NUMBER, sizeof(double) * DL_BF16, 1e6, 1e21, true, NULL, "dense, sums in fp32"},
    {"fp8", DL_NUMBER, sizeof(double) * DL_FP8, 1e6, 1e21, true, NULL, "dense, sums in fp32"},
    {"mxfp8", DL_NUMBER, sizeof(double) * DL_MXFP8, 1e6, 1e21, true, NULL, "dense, scales of 32 in hardware"},
    {"nvfp4", DL_NUMBER, sizeof(double) * DL_NVFP4, 1e6, 1e21, true, NULL, "dense, scales of 16 in hardware"},
};

static enum dl_status read_file(struct dl_json doc, struct file *out, struct dl_arena *arena, struct dl_error *err)
{
    const char **const names = dl_arena_alloc(arena, (dl_device_model_count() + 1) * sizeof *names);
    for (size_t i = 0; i < dl_device_model_count(); i++) names[i] = dl_device_model_get(i)->name;
    const struct dl_field fields[] = {
        {"model", DL_CHOICE, offsetof(struct file, model), 0, 0, false, names, "how kernels are priced"},
        {"peak_flop_per_s", DL_OBJECT, offsetof(struct file, peaks), 0, 0, false, NULL, "by precision"},
        {"memory_bytes", DL_NUMBER, offsetof(struct file, memory_bytes), 1, 1e18, false, NULL,
         "capacity of its memory"},
        {"memory_bytes_per_s", DL_NUMBER, offsetof(struct file, memory_bytes_per_s), 1, 1e18, false, NULL,
         "peak bandwidth of its memory"},
        {"launch_s", DL_NUMBER, offsetof(struct file, launch_s), 0, 1, false, NULL,
         "time between the starts of two kernels"},
        {"taken_by_exchanges", DL_OBJECT, offsetof(struct file, taken_by_exchanges), 0, 0, true, NULL,
         "what collectives take from kernels that overlap with them; nothing if absent"},
        {"taken_by_sends", DL_OBJECT, offsetof(struct file, taken_by_sends), 0, 0, true, NULL,
         "what pipeline sends and receives take from kernels that overlap with them; nothing if absent"},
        {"waits_for_collectives", DL_BOOL, offsetof(struct file, waits_for_collectives), 0, 0, true, NULL,
         "it executes no kernel during a collective, whatever the software; false if absent"},
        {"older_kernels_fraction", DL_NUMBER, offsetof(struct file, older_kernels_fraction), 0.01, 1, true, NULL,
         "rate of kernels written for the generation before, over that of current ones; 1 if absent"},
        {"gemm_workspace_bytes", DL_NUMBER, offsetof(struct file, gemm_workspace_bytes), 0, 1e10, true, NULL,
         "memory that each caller of the library of matrix products keeps for it; 0 if absent"},
        {"convolutions_as", DL_TEXT, offsetof(struct file, convolutions_as), 0, 0, true, NULL,
         "a device whose measured convolutions tell how far those of this one are from its model; none if absent"},
        {"same_chip_as", DL_TEXT, offsetof(struct file, same_chip_as), 0, 0, true, NULL,
         "a device with the same chip and faster memory, where kernels were timed: attention and kernels that only "
         "PyTorch has take at least as long as there; none if absent"},
        {"instructions_as", DL_TEXT, offsetof(struct file, instructions_as), 0, 0, true, NULL,
         "a device of another chip, where kernels were timed: kernels that only PyTorch has and that are bound by "
         "their instructions take at least as many clocks of all units as there; of no effect beside measured; none if "
         "absent"},
        {"figures", DL_OBJECT, offsetof(struct file, figures), 0, 0, false, NULL, "the keys of the model"},
        {"interpolation", DL_OBJECT, offsetof(struct file, interpolation), 0, 0, true, NULL,
         "constants by which measured kernels predict others; the defaults if absent"},
        {"measured", DL_LIST, offsetof(struct file, measured), 0, 0, true, NULL,
         "tables of measured times; none if absent"},
        {"power", DL_OBJECT, offsetof(struct file, power), 0, 0, true, NULL, "what it draws; unknown if absent"},
    };
    return dl_read_document(doc, "device", fields, DL_COUNT(fields), out, arena, err);
}

static enum dl_status read_options(const struct dl_device_model *model, struct dl_json figures, struct dl_arena *arena,
                                   const void **out, struct dl_error *err)
{
    void *const options = dl_arena_alloc(arena, model->options_size);
    memcpy(options, model->defaults, model->options_size);
    *out = options;
    if (dl_read(figures, model->fields, model->n_fields, options, arena, err)) return err->status;
    const char *const fault = model->fault ? model->fault(options) : NULL;
    return fault ? dl_fail(err, DL_RANGE, figures.where, "%s", fault) : DL_OK;
}

static bool computes(const struct dl_device *d)
{
    for (int p = 0; p < DL_N_PRECISIONS; p++)
        if (dl_device_supports(d, (enum dl_precision)p)) return true;
    return false;
}

/* What is left to read when the figures are there: what was measured on it, how to go between, and what it draws. */
struct left {
    struct dl_tables tables;
    struct dl_power *power;
};

static enum dl_status check_instructions(struct dl_json doc, const struct dl_device *d, struct dl_arena *arena,
                                         struct dl_error *err)
{
    if (!d->instructions_as) return DL_OK;
    const char *const where = dl_json_member(doc, "instructions_as", arena).where;
    if (d->same_chip_as) return dl_fail(err, DL_KEY, where, "means nothing beside 'same_chip_as': it is another chip");
    if (d->model->clocks_per_s) return DL_OK;
    return dl_fail(err, DL_KEY, where, "is for devices whose units and clock are known, not for the model '%s'",
                   d->model->name);
}

/* All but the tables, whose places are told. */
static enum dl_status read_figures(struct dl_json doc, struct dl_arena *arena, struct dl_device *out, struct left *left,
                                   struct dl_error *err)
{
    struct file file = {.model = no_model, .older_kernels_fraction = 1};
    const size_t told = err->n_told;
    if (read_file(doc, &file, arena, err) && !dl_go_on(err)) return err->status;
    *left = (struct left){.tables = {file.measured, file.interpolation, DL_ALL_KINDS}};
    left->tables.list.file = doc.file;
    *out = (struct dl_device){.name = dl_document_name(doc, arena),
                              .model = file.model == no_model ? NULL : dl_device_model_get((size_t)file.model),
                              .memory_bytes = file.memory_bytes,
                              .memory_bytes_per_s = file.memory_bytes_per_s,
                              .launch_s = file.launch_s,
                              .convolutions_as = file.convolutions_as,
                              .same_chip_as = file.same_chip_as,
                              .instructions_as = file.instructions_as,
                              .waits_for_collectives = file.waits_for_collectives,
                              .older_kernels_fraction = file.older_kernels_fraction,
                              .gemm_workspace_bytes = file.gemm_workspace_bytes};
    if ((file.peaks.value &&
         dl_read(file.peaks, peak_fields, DL_COUNT(peak_fields), out->peak_flop_per_s, arena, err) && !dl_go_on(err)) ||
        (out->model && file.figures.value && read_options(out->model, file.figures, arena, &out->options, err) &&
         !dl_go_on(err)) ||
        dl_taken_read(file.taken_by_exchanges, arena, &out->taken_by_exchanges, err) ||
        dl_taken_read(file.taken_by_sends, arena, &out->taken_by_sends, err) ||
        (file.power.value && dl_power_read(file.power, arena, &left->power, err) && !dl_go_on(err)) ||
        dl_stop_if_told(err, told))
        return err->status;
    out->power = left->power;
    if (!computes(out)) return dl_fail(err, DL_KEY, file.peaks.where, "needs the peak of at least one precision");
    return check_instructions(doc, out, arena, err);
}

static enum dl_status read_tables(const struct left *left, struct dl_arena *arena, struct dl_device *out,
                                  struct dl_error *err)
{
    const struct dl_tables *const tables = &left->tables;
    if (!tables->list.value && tables->interpolation.value)
        return dl_fail(err, DL_KEY, tables->interpolation.where, "is of use only beside 'measured'");
    if (tables->list.value && dl_measured_read(tables, arena, out, err)) return err->status;
    if (out->measured) out->instructions_as = NULL; /* its own times tell */
    if (left->power) dl_power_complete(left->power, out);
    return DL_OK;
}

enum dl_status dl_device_read(struct dl_json doc, struct dl_arena *arena, struct dl_device *out, struct dl_error *err)
{
    struct left left;
    return read_figures(doc, arena, out, &left, err) ? err->status : read_tables(&left, arena, out, err);
}

enum dl_status dl_device_read_other(struct dl_json doc, struct dl_json timed, struct dl_arena *arena,
                                    struct dl_device *out, struct dl_error *err)
{
    struct left left, ignored;
    struct dl_device *const first = dl_arena_alloc(arena, sizeof *first);
    if (read_figures(doc, arena, out, &left, err) || read_figures(timed, arena, first, &ignored, err))
        return err->status;
    out->timed = first;
    return read_tables(&left, arena, out, err);
}

/* What another device takes from one that was timed. */
struct taken {
    const char *by, *what; /* for the message */
    unsigned kinds;        /* of kernels, as in struct dl_tables: reading the tables of all takes long */
};

static enum dl_status read_timed(const struct taken *taken, struct dl_json timed, struct dl_arena *arena,
                                 const struct dl_device **out, struct dl_error *err)
{
    struct dl_device *const other = dl_arena_alloc(arena, sizeof *other);
    struct left left;
    *out = other;
    if (read_figures(timed, arena, other, &left, err)) return err->status;
    left.tables.kinds = taken->kinds;
    if (read_tables(&left, arena, other, err)) return err->status;
    if (other->measured) return DL_OK;
    return dl_fail(err, DL_KEY, timed.where, "has no measured kernels, but %s takes its %s", taken->by, taken->what);
}

/* How far libraries are from a model tells of another device only where both models are of the same kernels. */
static const struct dl_device *modelled_as(const struct dl_device *there, const struct dl_device *here,
                                           struct dl_arena *arena)
{
    struct dl_device *const modelled = dl_arena_alloc(arena, sizeof *modelled);
    *modelled = *there;
    if (there->model != here->model || !here->model->take_kernels) return modelled;
    void *const options = dl_arena_alloc(arena, here->model->options_size);
    memcpy(options, there->options, here->model->options_size);
    here->model->take_kernels(options, here->options);
    modelled->options = options;
    return modelled;
}

enum dl_status dl_device_take_convolutions(struct dl_device *d, struct dl_json timed, struct dl_arena *arena,
                                           struct dl_error *err)
{
    const struct taken taken = {d->name, "convolutions", 1u << DL_KERNEL_CONV};
    if (read_timed(&taken, timed, arena, &d->convolutions, err)) return err->status;
    d->convolutions_modelled = modelled_as(d->convolutions, d, arena);
    return DL_OK;
}

enum dl_status dl_device_take_chip(struct dl_device *d, struct dl_json timed, struct dl_arena *arena,
                                   struct dl_error *err)
{
    const struct taken taken = {d->name, "attention", 1u << DL_KERNEL_ATTENTION | 1u << DL_KERNEL_MEMORY};
    return read_timed(&taken, timed, arena, &d->chip, err);
}

enum dl_status dl_device_take_instructions(struct dl_device *d, struct dl_json timed, struct dl_arena *arena,
                                           struct dl_error *err)
{
    const struct taken taken = {d->name, "instructions", 1u << DL_KERNEL_MEMORY};
    if (read_timed(&taken, timed, arena, &d->instructions, err)) return err->status;
    if (d->instructions->model->clocks_per_s) return DL_OK;
    return dl_fail(err, DL_KEY, timed.where, "has no units that are known, but %s takes its instructions", d->name);
}

bool dl_device_throttles(const struct dl_device *d) { return d->power && d->power->throttles; }

bool dl_device_supports(const struct dl_device *d, enum dl_precision precision)
{
    return d->peak_flop_per_s[precision] > 0;
}

const char *dl_device_precisions(const struct dl_device *d, struct dl_arena *arena)
{
    const char *all = "";
    for (int p = 0; p < DL_N_PRECISIONS; p++)
        if (dl_device_supports(d, (enum dl_precision)p))
            all = dl_arena_format(arena, "%s%s%s", all, *all ? ", " : "", dl_precision_names[p]);
    return all;
}

static enum dl_precision unquantised(const struct dl_device *d, enum dl_precision precision)
{
    return dl_precision_is_quantised(precision) && dl_device_supports(d, DL_BF16) ? DL_BF16 : precision;
}

/* DeepSeek-V3 (arXiv 2412.19437), section 3.3.1: embedding, output head, gating, norms and attention keep their
 * precision; so do they in Transformer Engine. */
enum dl_precision dl_kernel_precision(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    const bool is_exact = dl_kernel_is_core_attention(k) || k->stays_wide || k->in_wide_block;
    return is_exact ? unquantised(d, precision) : precision;
}

/* They are never quantised. */
double dl_inner_products_s(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    return 2 * k->elements * k->products_per_element / d->peak_flop_per_s[unquantised(d, precision)];
}

/* How far measured kernels are from the model tells of memory, not of instructions: these are a bound beside it. */
static struct dl_price bound_by_instructions(const struct dl_device *d, const struct dl_kernel *k,
                                             enum dl_precision precision, double instructions_s)
{
    struct dl_kernel moved = *k;
    moved.unit_s = moved.products_per_element = 0;
    struct dl_price price = dl_price(d, &moved, precision);
    price.seconds = fmax(price.seconds, instructions_s);
    return price;
}

/* Libraries lose as much of a convolution of that shape on this device as on the one that was timed; in fp32 only if
 * its vector units are the same, as those of Hopper do twice as much in a clock as Ampere's and are fed as little. */
static struct dl_price as_there(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                struct dl_price modelled)
{
    const struct dl_device *const there = d->convolutions, *const modelled_there = d->convolutions_modelled;
    const bool is_other = precision == DL_FP32 && d->peak_flop_per_s[DL_FP32] != there->peak_flop_per_s[DL_FP32];
    if (is_other || !dl_device_supports(there, precision)) return modelled;
    const double model_s = there->model->price(modelled_there, k, precision).seconds;
    modelled.seconds *= dl_price(there, k, precision).seconds / model_s;
    return modelled;
}

/* Where --set gives it another peak or faster memory than its chip has, what that chip takes follows. */
static struct dl_price no_faster(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                 struct dl_price modelled)
{
    const struct dl_device *const chip = d->chip;
    if (!dl_device_supports(chip, precision)) return modelled;
    const double slower = k->kind == DL_KERNEL_MEMORY
                              ? fmin(1, chip->memory_bytes_per_s / d->memory_bytes_per_s)
                              : chip->peak_flop_per_s[precision] / d->peak_flop_per_s[precision];
    modelled.seconds = fmax(modelled.seconds, dl_price(chip, k, precision).seconds * slower);
    return modelled;
}

static struct dl_price as_many_clocks(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision,
                                      struct dl_price modelled)
{
    const struct dl_device *const there = d->instructions;
    if (!dl_device_supports(there, precision)) return modelled;
    const double slower = there->model->clocks_per_s(there->options) / d->model->clocks_per_s(d->options);
    modelled.seconds = fmax(modelled.seconds, dl_price(there, k, precision).seconds * slower);
    return modelled;
}

static bool is_pytorchs(const struct dl_kernel *k)
{
    return k->kind == DL_KERNEL_MEMORY && dl_operation_of(k)->is_pytorchs;
}

static bool is_issued(const struct dl_kernel *k)
{
    return k->kind == DL_KERNEL_MEMORY && dl_operation_of(k)->is_issued;
}

static bool is_of_chip(const struct dl_kernel *k) { return k->kind == DL_KERNEL_ATTENTION || is_pytorchs(k); }

struct dl_price dl_price(const struct dl_device *d, const struct dl_kernel *k, enum dl_precision precision)
{
    assert(dl_device_supports(d, precision));
    const struct dl_price modelled = d->model->price(d, k, precision);
    if (d->convolutions && k->kind == DL_KERNEL_CONV) return as_there(d, k, precision, modelled);
    if (d->chip && is_of_chip(k)) return no_faster(d, k, precision, modelled);
    if (!d->measured) return d->instructions && is_issued(k) ? as_many_clocks(d, k, precision, modelled) : modelled;
    if (dl_kernel_unit_s(k) > 0) return bound_by_instructions(d, k, precision, modelled.seconds);
    return dl_measured_price(d, k, precision, &modelled);
}

/* Sums in fp32 are read and written. */
static double product_bytes(const struct dl_kernel *k, enum dl_precision precision)
{
    const double result_bytes = k->accumulates ? 2 * dl_precision_bytes(DL_FP32) : dl_precision_bytes(precision);
    return k->batch * ((k->m + k->n) * k->k * dl_precision_operand_bytes(precision) + k->m * k->n * result_bytes);
}

/* A pixel is in several windows of a convolution, but their columns (im2col) are made on chip: it is moved once. */
static double repeated_bytes(const struct dl_kernel *k, enum dl_precision precision)
{
    if (!(k->window > k->stride && k->stride > 0)) return 0;
    const double windows = k->window * k->window / (k->stride * k->stride);
    const double in_windows = k->batch * k->m * (k->pass == DL_PASS_INPUT_GRADIENT ? k->n : k->k);
    return in_windows * (1 - 1 / windows) * dl_precision_operand_bytes(precision);
}

/* Queries, keys, values and output; backward reads these and the output's gradient and writes three gradients. */
static double attention_bytes(const struct dl_kernel *k, enum dl_precision precision)
{
    const double of_queries = k->m * k->k, of_keys = k->n * k->k;
    const double elements = k->backward ? 4 * of_queries + 4 * of_keys : 2 * of_queries + 2 * of_keys;
    return k->batch * elements * dl_precision_bytes(precision);
}

double dl_kernel_bytes(const struct dl_kernel *k, enum dl_precision precision)
{
    switch (k->kind) {
    case DL_KERNEL_GEMM: return product_bytes(k, precision);
    case DL_KERNEL_CONV: return product_bytes(k, precision) - repeated_bytes(k, precision);
    case DL_KERNEL_ATTENTION: return attention_bytes(k, precision);
    case DL_KERNEL_MEMORY: break;
    }
    return k->elements * dl_precision_bytes(precision);
}

double dl_kernel_channels(const struct dl_kernel *k)
{
    const double in_windows = k->pass == DL_PASS_FORWARD ? k->k : k->pass == DL_PASS_INPUT_GRADIENT ? k->n : k->m;
    return k->window > 0 ? round(in_windows / (k->window * k->window)) : 0;
}

double dl_kernel_filters(const struct dl_kernel *k) { return k->pass == DL_PASS_INPUT_GRADIENT ? k->k : k->n; }

bool dl_kernel_is_regrouped(const struct dl_kernel *k)
{
    int exponent;
    const double mantissa_of_powers = 0.5, channels = dl_kernel_channels(k);
    return k->batch > 1 && channels > 0 && frexp(channels, &exponent) != mantissa_of_powers;
}

bool dl_kernel_is_without_product(const struct dl_kernel *k, enum dl_precision precision)
{
    return k->kind == DL_KERNEL_CONV && precision == DL_FP32 && k->batch > 1 && dl_kernel_filters(k) == 1 &&
           dl_kernel_channels(k) == 1;
}

enum dl_alignment dl_kernel_alignment(const struct dl_kernel *k, enum dl_precision precision)
{
    const double whole = 16, half = 4, value_bytes = dl_precision_value_bytes(precision);
    const double n = k->n * value_bytes;
    const double other = (k->pass == DL_PASS_WEIGHT_GRADIENT ? k->m : k->k) * value_bytes;
    if (fmod(n, whole) == 0 && fmod(other, whole) == 0) return DL_ALIGNED;
    return fmod(n, half) == 0 && fmod(other, half) == 0 ? DL_HALF_ALIGNED : DL_UNALIGNED;
}
