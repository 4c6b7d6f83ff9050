#include "sim/study/search_space.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/study/search_axes.h"

/* ---- the space ---- */

void dl_space_add(struct dl_space *s, enum dl_space_axis axis, int64_t value)
{
    s->values[axis] = dl_realloc(s->values[axis], (s->n_values[axis] + 1) * sizeof *s->values[axis]);
    s->values[axis][s->n_values[axis]++] = value;
}

static uint64_t common_divisor(uint64_t a, uint64_t b) { return b ? common_divisor(b, a % b) : a; }

static void look_at_layer(struct dl_space *s, const struct dl_layer *layer, double samples)
{
    s->blocks += layer->is_block;
    s->key_heads = common_divisor(s->key_heads, (uint64_t)layer->key_heads);
    s->state_groups = common_divisor(s->state_groups, (uint64_t)layer->state_groups);
    for (size_t i = 0; i < layer->n_forward; i++) {
        const struct dl_kernel *const k = &layer->forward[i].kernel;
        if (!dl_kernel_is_core_attention(k) || !(k->by.batch & DL_BY_INNER)) continue;
        s->heads = common_divisor(s->heads, (uint64_t)(k->batch / samples));
        if (k->kind == DL_KERNEL_ATTENTION) s->tokens = (uint64_t)k->m;
    }
}

bool dl_space_shares_keys(const struct dl_space *s, uint64_t tensor_ways)
{
    return s->key_heads && tensor_ways > s->key_heads && tensor_ways % s->key_heads == 0;
}

static bool is_searched(const struct dl_space_request *request, size_t axis)
{
    return !dl_space_axes[axis].if_asked || request->also & 1U << axis;
}

void dl_space_init(struct dl_space *s, const struct dl_space_request *request)
{
    *s = (struct dl_space){.request = *request};
    for (size_t i = 0; i < request->model->n_layers; i++)
        look_at_layer(s, &request->model->layers[i], request->model->samples);
    for (size_t i = 0; i < DL_N_SPACE_AXES; i++)
        if (is_searched(request, i))
            dl_space_axes[i].values(s, (enum dl_space_axis)i);
        else
            dl_space_add(s, (enum dl_space_axis)i, 0);
}

void dl_space_release(struct dl_space *s)
{
    for (size_t i = 0; i < DL_N_SPACE_AXES; i++) dl_free(s->values[i]);
    dl_free(s->points);
    dl_refusals_release(&s->refused);
}

/* ---- fixed values ---- */

/* Words may have their quotes or not. */
static bool read_value(const struct dl_space_axis_kind *axis, const char *text, int64_t *out)
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
        used += dl_space_axes[axis].name
                    ? (size_t)snprintf(text + used, DL_HINT - used, "%s%s", gap, dl_space_axes[axis].name(value))
                    : (size_t)snprintf(text + used, DL_HINT - used, "%s%lld", gap, (long long)value);
    }
    return text;
}

static size_t find_axis(const char *assignment)
{
    const size_t length = strcspn(assignment, "=");
    size_t i = 0;
    while (i < DL_N_SPACE_AXES && (dl_space_axes[i].if_asked || strncmp(dl_space_axes[i].key, assignment, length) ||
                                   dl_space_axes[i].key[length]))
        i++;
    return i;
}

enum dl_status dl_space_also(const char *name, unsigned *also, struct dl_error *err)
{
    const char *names[DL_N_SPACE_AXES];
    size_t n = 0;
    char hint[DL_HINT];
    for (size_t i = 0; i < DL_N_SPACE_AXES; i++) {
        if (!dl_space_axes[i].if_asked) continue;
        names[n++] = dl_space_axes[i].key;
        if (strcmp(dl_space_axes[i].key, name)) continue;
        *also |= 1U << i;
        return DL_OK;
    }
    return dl_fail(err, DL_RANGE, "--also", "no such axis: '%.60s'%s", name, dl_hint(name, names, n, hint));
}

bool dl_space_has_axis(const char *assignment) { return find_axis(assignment) < DL_N_SPACE_AXES; }

enum dl_status dl_space_fix(struct dl_space *s, const char *assignment, struct dl_error *err)
{
    const size_t axis = find_axis(assignment);
    const char *const text = strchr(assignment, '=') + 1;
    char all[DL_HINT];
    int64_t value = 0;
    if (!read_value(&dl_space_axes[axis], text, &value) || !has_value(s, axis, value))
        return dl_fail(err, DL_RANGE, "--fix", "%s must be one of %s here, got '%.60s'", dl_space_axes[axis].key,
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

static uint64_t in_step(const struct dl_space_point *p)
{
    return (uint64_t)(p->of[DL_SPACE_TENSOR] * p->of[DL_SPACE_CONTEXT]);
}

/* What is left for data is known when the others are; before, what would be left. */
static void set_data(const struct dl_space *s, struct dl_space_point *p)
{
    p->data = s->request.devices / (in_step(p) * (uint64_t)p->of[DL_SPACE_PIPELINE]);
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
        const char *const reason = dl_space_axes[axis].refuse ? dl_space_axes[axis].refuse(s, p) : NULL;
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
    for (size_t i = 0; i < DL_N_SPACE_AXES && !reason; i++)
        reason = dl_space_axes[i].refuse ? dl_space_axes[i].refuse(s, p) : NULL;
    return reason;
}
