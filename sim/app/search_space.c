#include "sim/app/search_space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

static void add(struct dl_space *s, enum dl_space_axis axis, int64_t value)
{
    s->values[axis] = dl_realloc(s->values[axis], (s->n_values[axis] + 1) * sizeof *s->values[axis]);
    s->values[axis][s->n_values[axis]++] = value;
}

static void add_divisors(struct dl_space *s, enum dl_space_axis axis, uint64_t whole, uint64_t most)
{
    for (uint64_t i = 1; i <= whole && i <= most; i++)
        if (whole % i == 0) add(s, axis, (int64_t)i);
}

enum { most_ways = 65536, most_chunks = 64, most_microbatch = 65536 }; /* as strategies take them */

static void of_devices(struct dl_space *s, enum dl_space_axis axis)
{
    add_divisors(s, axis, s->request.devices, most_ways);
}

static void of_tokens(struct dl_space *s, enum dl_space_axis axis)
{
    if (s->tokens)
        of_devices(s, axis);
    else
        add(s, axis, 1);
}

static void of_experts(struct dl_space *s, enum dl_space_axis axis)
{
    const double experts = s->request.model->routing.experts;
    add_divisors(s, axis, experts > 0 ? (uint64_t)experts : 1, most_ways);
}

static void of_batch(struct dl_space *s, enum dl_space_axis axis)
{
    add_divisors(s, axis, s->request.global_batch, most_microbatch);
}

static void of_schedules(struct dl_space *s, enum dl_space_axis axis)
{
    for (size_t i = 0; i < dl_schedule_count(); i++) add(s, axis, (int64_t)i);
}

static void of_blocks(struct dl_space *s, enum dl_space_axis axis)
{
    add_divisors(s, axis, s->blocks ? s->blocks : 1, most_chunks);
}

static void up_to(struct dl_space *s, enum dl_space_axis axis, int64_t last)
{
    for (int64_t i = 0; i <= last; i++) add(s, axis, i);
}

static void no_or_yes(struct dl_space *s, enum dl_space_axis axis) { up_to(s, axis, 1); }

static void of_stages(struct dl_space *s, enum dl_space_axis axis) { up_to(s, axis, 3); }

static void of_recomputes(struct dl_space *s, enum dl_space_axis axis)
{
    add(s, axis, DL_RECOMPUTE_NOTHING);
    if (s->heads) add(s, axis, DL_RECOMPUTE_SELECTIVE);
    add(s, axis, DL_RECOMPUTE_BLOCKS);
}

/* ---- rules: each may use the values of its axis and of those before it ---- */

static const char same[] = "the same as another point";

static uint64_t ways(const struct dl_space_point *p, enum dl_space_axis axis) { return (uint64_t)p->of[axis]; }

static bool divides(uint64_t part, uint64_t whole) { return whole % part == 0; } /* nothing is divided by all */

static uint64_t in_step(const struct dl_space_point *p) { return ways(p, DL_SPACE_TENSOR) * ways(p, DL_SPACE_CONTEXT); }

static const char *refuse_tensor(const struct dl_space *s, const struct dl_space_point *p)
{
    const uint64_t tensor = ways(p, DL_SPACE_TENSOR);
    if (!divides(tensor, s->request.devices)) return "ways do not divide the devices";
    return divides(tensor, s->heads) && divides(tensor, s->key_heads) ? NULL : "tensor ways do not divide the heads";
}

/* In halves, because causal masks are shared out evenly: see dl_space_document. */
static const char *refuse_context(const struct dl_space *s, const struct dl_space_point *p)
{
    const uint64_t context = ways(p, DL_SPACE_CONTEXT);
    if (!divides(in_step(p), s->request.devices)) return "ways do not divide the devices";
    return context == 1 || divides(2 * context, s->tokens) ? NULL : "context ways do not divide the sequence";
}

static const char *refuse_pipeline(const struct dl_space *s, const struct dl_space_point *p)
{
    const uint64_t stages = ways(p, DL_SPACE_PIPELINE);
    if (!divides(in_step(p) * stages, s->request.devices)) return "ways do not divide the devices";
    return stages == 1 || stages <= s->blocks ? NULL : "more pipeline stages than blocks";
}

static const char *refuse_expert(const struct dl_space *s, const struct dl_space_point *p)
{
    (void)s;
    return divides(ways(p, DL_SPACE_EXPERT), p->data) ? NULL : "expert ways do not divide the data ways";
}

static const char *refuse_microbatch(const struct dl_space *s, const struct dl_space_point *p)
{
    return divides(p->data * ways(p, DL_SPACE_MICROBATCH), s->request.global_batch)
               ? NULL
               : "data ways x micro-batch do not divide the batch";
}

static const char usual_schedule[] = "1f1b"; /* as strategy files that name none */

static const char *schedule_of(const struct dl_space_point *p)
{
    return dl_schedule_get((size_t)p->of[DL_SPACE_SCHEDULE])->name;
}

static const char *refuse_schedule(const struct dl_space *s, const struct dl_space_point *p)
{
    (void)s;
    return ways(p, DL_SPACE_PIPELINE) > 1 || strcmp(schedule_of(p), usual_schedule) == 0 ? NULL : same;
}

/* Unequal chunks are left out, unequal stages are not: many models have no other. */
static const char *refuse_chunks(const struct dl_space *s, const struct dl_space_point *p)
{
    const uint64_t chunks = ways(p, DL_SPACE_CHUNKS), stages = ways(p, DL_SPACE_PIPELINE);
    const struct dl_schedule_request request = {
        .stages = (uint32_t)stages,
        .micros = (uint32_t)(s->request.global_batch / p->data / ways(p, DL_SPACE_MICROBATCH)),
        .chunks = (uint32_t)chunks};
    struct dl_error err = {0};
    if (stages == 1) return chunks == 1 ? NULL : same;
    if (chunks > 1 && !divides(stages * chunks, s->blocks)) return "stages x chunks do not divide the blocks";
    return dl_schedule_check(schedule_of(p), &request, &err) ? "not a number of chunks or micro-batches of its schedule"
                                                             : NULL;
}

static const char *refuse_sequence(const struct dl_space *s, const struct dl_space_point *p)
{
    (void)s;
    return !p->of[DL_SPACE_SEQUENCE] || ways(p, DL_SPACE_TENSOR) > 1 ? NULL : same;
}

static const char *refuse_zero(const struct dl_space *s, const struct dl_space_point *p)
{
    const uint64_t stage = ways(p, DL_SPACE_ZERO);
    if (stage > 0 && p->data * ways(p, DL_SPACE_CONTEXT) == 1) return same;
    if (ways(p, DL_SPACE_PIPELINE) == 1 || stage <= s->request.software->zero_in_pipeline) return NULL;
    return "the software has no such ZeRO stage in a pipeline";
}

/* ---- the axes ---- */

static const char *name_of_schedule(int64_t value)
{
    return value < (int64_t)dl_schedule_count() ? dl_schedule_get((size_t)value)->name : NULL;
}

static const char *name_of_recompute(int64_t value)
{
    return value <= DL_RECOMPUTE_BLOCKS ? dl_recompute_name((enum dl_recompute)value) : NULL;
}

static const char *name_of_truth(int64_t value) { return value == 0 ? "false" : value == 1 ? "true" : NULL; }

static const struct axis {
    const char *key;
    void (*values)(struct dl_space *s, enum dl_space_axis axis);
    const char *(*refuse)(const struct dl_space *s, const struct dl_space_point *p); /* OPTIONAL */
    const char *(*name)(int64_t value); /* of a value, NULL after the last; NULL: they are numbers */
} axes[DL_N_SPACE_AXES] = {
    [DL_SPACE_TENSOR] = {"stack.tensor.ways", of_devices, refuse_tensor, NULL},
    [DL_SPACE_CONTEXT] = {"stack.context.ways", of_tokens, refuse_context, NULL},
    [DL_SPACE_PIPELINE] = {"stack.pipeline.ways", of_devices, refuse_pipeline, NULL},
    [DL_SPACE_EXPERT] = {"stack.expert.ways", of_experts, refuse_expert, NULL},
    [DL_SPACE_MICROBATCH] = {"microbatch", of_batch, refuse_microbatch, NULL},
    [DL_SPACE_SCHEDULE] = {"stack.pipeline.schedule", of_schedules, refuse_schedule, name_of_schedule},
    [DL_SPACE_CHUNKS] = {"stack.pipeline.chunks", of_blocks, refuse_chunks, NULL},
    [DL_SPACE_SEQUENCE] = {"stack.tensor.sequence", no_or_yes, refuse_sequence, name_of_truth},
    [DL_SPACE_ZERO] = {"stack.zero.stage", of_stages, refuse_zero, NULL},
    [DL_SPACE_RECOMPUTE] = {"recompute", of_recomputes, NULL, name_of_recompute},
};

/* ---- the space ---- */

static uint64_t common_divisor(uint64_t a, uint64_t b) { return b ? common_divisor(b, a % b) : a; }

static void look_at_layer(struct dl_space *s, const struct dl_layer *layer, double samples)
{
    s->blocks += layer->is_block;
    s->key_heads = common_divisor(s->key_heads, (uint64_t)layer->key_heads);
    for (size_t i = 0; i < layer->n_forward; i++) {
        const struct dl_kernel *const k = &layer->forward[i].kernel;
        if (layer->forward[i].kind != DL_WORK_KERNEL || !k->attention_core || k->cut != DL_CUT_BATCH) continue;
        s->heads = common_divisor(s->heads, (uint64_t)(k->batch / samples));
        if (k->kind == DL_KERNEL_ATTENTION) s->tokens = (uint64_t)k->m;
    }
}

void dl_space_init(struct dl_space *s, const struct dl_space_request *request)
{
    *s = (struct dl_space){.request = *request};
    for (size_t i = 0; i < request->model->n_layers; i++)
        look_at_layer(s, &request->model->layers[i], request->model->samples);
    for (size_t i = 0; i < DL_N_SPACE_AXES; i++) axes[i].values(s, (enum dl_space_axis)i);
}

void dl_space_release(struct dl_space *s)
{
    for (size_t i = 0; i < DL_N_SPACE_AXES; i++) dl_free(s->values[i]);
    dl_free(s->points);
    dl_refusals_release(&s->refused);
}

/* ---- fixed values ---- */

/* Words may have their quotes or not. */
static bool read_value(const struct axis *axis, const char *text, int64_t *out)
{
    const size_t quoted = *text == '"', length = strlen(text);
    char *end;
    if (!axis->name) {
        *out = strtoll(text, &end, 10);
        return *text && !*end;
    }
    for (*out = 0; axis->name(*out); ++*out) {
        const char *const name = axis->name(*out);
        if (strncmp(text + quoted, name, strlen(name)) == 0 && length == strlen(name) + 2 * quoted) return true;
    }
    return false;
}

static bool has_value(const struct dl_space *s, size_t axis, int64_t value)
{
    for (size_t i = 0; i < s->n_values[axis]; i++)
        if (s->values[axis][i] == value) return true;
    return false;
}

static const char *values_in_words(const struct dl_space *s, size_t axis, char text[DL_HINT])
{
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < s->n_values[axis] && used < DL_HINT - 40; i++) {
        const int64_t value = s->values[axis][i];
        const char *const gap = i ? ", " : "";
        used += axes[axis].name ? (size_t)snprintf(text + used, DL_HINT - used, "%s%s", gap, axes[axis].name(value))
                                : (size_t)snprintf(text + used, DL_HINT - used, "%s%lld", gap, (long long)value);
    }
    return text;
}

static size_t find_axis(const char *assignment)
{
    const size_t length = strcspn(assignment, "=");
    size_t i = 0;
    while (i < DL_N_SPACE_AXES && (strncmp(axes[i].key, assignment, length) || axes[i].key[length])) i++;
    return i;
}

bool dl_space_has_axis(const char *assignment) { return find_axis(assignment) < DL_N_SPACE_AXES; }

enum dl_status dl_space_fix(struct dl_space *s, const char *assignment, struct dl_error *err)
{
    const size_t axis = find_axis(assignment);
    const char *const text = strchr(assignment, '=') + 1;
    char all[DL_HINT];
    int64_t value = 0;
    if (!read_value(&axes[axis], text, &value) || !has_value(s, axis, value))
        return dl_fail(err, DL_RANGE, "--fix", "%s must be one of %s here, got '%.60s'", axes[axis].key,
                       values_in_words(s, axis, all), text);
    s->values[axis][0] = value;
    s->n_values[axis] = 1;
    return DL_OK;
}

/* ---- the points ---- */

static uint64_t n_after(const struct dl_space *s, size_t axis)
{
    uint64_t n = 1;
    for (size_t i = axis + 1; i < DL_N_SPACE_AXES; i++) n *= s->n_values[i];
    return n;
}

/* What is left for data is known when the others are; before, what would be left. */
static void set_data(const struct dl_space *s, struct dl_space_point *p)
{
    p->data = s->request.devices / (in_step(p) * ways(p, DL_SPACE_PIPELINE));
}

static void walk(struct dl_space *s, size_t axis, uint64_t number, struct dl_space_point *p)
{
    if (axis == DL_N_SPACE_AXES) {
        if (s->n_points >= DL_SPACE_MOST) return;
        DL_GROW(s->points, s->n_points, s->capacity);
        s->points[s->n_points++] = number;
        return;
    }
    for (size_t i = 0; i < s->n_values[axis]; i++) {
        p->of[axis] = s->values[axis][i];
        if (axis == DL_SPACE_PIPELINE) set_data(s, p);
        const char *const reason = axes[axis].refuse ? axes[axis].refuse(s, p) : NULL;
        if (reason)
            dl_refusals_add(&s->refused, reason, n_after(s, axis));
        else
            walk(s, axis + 1, number * s->n_values[axis] + i, p);
    }
}

enum dl_status dl_space_list(struct dl_space *s, struct dl_error *err)
{
    struct dl_space_point p;
    s->n_combinations = s->n_values[0] * n_after(s, 0);
    walk(s, 0, 0, &p);
    if (s->n_points < DL_SPACE_MOST) return DL_OK;
    return dl_fail(err, DL_RANGE, "search", "has more than %d points; fix some of their values with --fix",
                   DL_SPACE_MOST);
}

struct dl_space_point dl_space_point(const struct dl_space *s, uint64_t number)
{
    struct dl_space_point p;
    for (size_t i = DL_N_SPACE_AXES; i-- > 0; number /= s->n_values[i]) p.of[i] = s->values[i][number % s->n_values[i]];
    set_data(s, &p);
    return p;
}

const char *dl_space_refuse(const struct dl_space *s, const struct dl_space_point *p)
{
    const char *reason = NULL;
    for (size_t i = 0; i < DL_N_SPACE_AXES && !reason; i++) reason = axes[i].refuse ? axes[i].refuse(s, p) : NULL;
    return reason;
}
