#include "sim/report/comparison.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- reading ---- */

/* Far more than any run can have, and so little that the ratio of two and its interval are finite. */
struct number {
    const char *key;
    size_t offset;
    double min, max;
};
#define LEAST 1e-100
#define MOST 1e100
#define MOST_ELASTICITY 1e6
#define MOST_OF_VALUE 1e6 /* the bounds of a constant over its value */
#define MOST_HALF_WIDTH 100.0

static const struct number of_effect[] = {
    {"value", offsetof(struct dl_effect, value), LEAST, MOST},
    {"low", offsetof(struct dl_effect, low), 0, MOST},
    {"high", offsetof(struct dl_effect, high), 0, MOST},
    {"elasticity", offsetof(struct dl_effect, elasticity), -MOST_ELASTICITY, MOST_ELASTICITY},
    {"if_less", offsetof(struct dl_effect, below), -MOST_ELASTICITY, MOST_ELASTICITY},
    {"if_more", offsetof(struct dl_effect, above), -MOST_ELASTICITY, MOST_ELASTICITY},
};

static const struct number of_model[] = {
    {"half_width", offsetof(struct dl_told_run, half_width), 0, MOST_HALF_WIDTH},
    {"ratio_half_width", offsetof(struct dl_told_run, ratio_half_width), 0, MOST_HALF_WIDTH},
};

static enum dl_status check(struct dl_json value, bool is_right, const char *wanted, struct dl_error *err)
{
    if (!value.value) return dl_fail(err, DL_KEY, value.where, "is missing, must be %s", wanted);
    return is_right ? DL_OK : dl_wrong_type(value, wanted, err);
}

static enum dl_status need_number(struct dl_json from, const struct number *n, void *out, struct dl_arena *arena,
                                  struct dl_error *err)
{
    const struct dl_json found = dl_json_member(from, n->key, arena);
    void *const place = (char *)out + n->offset;
    const double x = json_number_value(found.value);
    *(double *)place = x;
    if (check(found, json_is_number(found.value), "a number", err)) return err->status;
    if (x >= n->min && x <= n->max) return DL_OK;
    return dl_fail(err, DL_RANGE, found.where, "must be in [%g, %g], got %g", n->min, n->max, x);
}

static enum dl_status need_text(struct dl_json from, const char *key, const char **out, struct dl_arena *arena,
                                struct dl_error *err)
{
    const struct dl_json found = dl_json_member(from, key, arena);
    *out = json_string_value(found.value);
    return check(found, *out != NULL, "a string", err);
}

static enum dl_status read_effect(struct dl_json from, struct dl_arena *arena, struct dl_effect *out,
                                  struct dl_error *err)
{
    *out = (struct dl_effect){.dimension = DL_FACTOR};
    if (!json_is_object(from.value)) return dl_wrong_type(from, "an object", err);
    if (need_text(from, "path", &out->path, arena, err)) return err->status;
    for (size_t i = 0; i < DL_COUNT(of_effect); i++)
        if (need_number(from, &of_effect[i], out, arena, err)) return err->status;
    if (out->low <= MOST_OF_VALUE * out->value && out->high <= MOST_OF_VALUE * out->value) return DL_OK;
    return dl_fail(err, DL_RANGE, from.where, "low and high must be at most %g times value, %g", MOST_OF_VALUE,
                   out->value);
}

static enum dl_status read_effects(struct dl_json list, struct dl_arena *arena, struct dl_told_run *out,
                                   struct dl_error *err)
{
    const size_t n = json_array_size(list.value);
    out->effects = dl_arena_alloc(arena, n * sizeof *out->effects);
    for (; out->n_effects < n; out->n_effects++)
        if (read_effect(dl_json_element(list, out->n_effects, arena), arena, &out->effects[out->n_effects], err))
            return err->status;
    return DL_OK;
}

/* Reports of before have none, and are of tokens: nothing else was told apart. */
static enum dl_status read_domain(struct dl_json from, struct dl_arena *arena, int64_t *out, struct dl_error *err)
{
    const struct dl_json found = dl_json_member(from, "domain", arena);
    const char *const name = json_string_value(found.value);
    *out = DL_DOMAIN_TOKENS;
    if (!found.value) return DL_OK;
    for (int64_t i = 0; dl_domains[i] && name; i++)
        if (strcmp(dl_domains[i], name) == 0) {
            *out = i;
            return DL_OK;
        }
    return dl_fail(err, DL_RANGE, found.where, "must be %s, %s or %s", dl_domains[DL_DOMAIN_TOKENS],
                   dl_domains[DL_DOMAIN_IMAGES], dl_domains[DL_DOMAIN_FILES]);
}

static enum dl_status read_model(struct dl_json from, struct dl_arena *arena, struct dl_told_run *out,
                                 struct dl_error *err)
{
    const struct dl_json experts = dl_json_member(from, "experts", arena);
    if (need_text(from, "software", &out->setup.software, arena, err) ||
        need_text(from, "system", &out->setup.system, arena, err) || read_domain(from, arena, &out->setup.domain, err))
        return err->status;
    out->setup.experts = json_is_true(experts.value);
    if (check(experts, json_is_boolean(experts.value), "true or false", err)) return err->status;
    for (size_t i = 0; i < DL_COUNT(of_model); i++)
        if (need_number(from, &of_model[i], out, arena, err)) return err->status;
    return DL_OK;
}

enum dl_status dl_told_run_read(struct dl_json report, struct dl_arena *arena, struct dl_told_run *out,
                                struct dl_error *err)
{
    static const struct number speed = {"samples_per_s", offsetof(struct dl_told_run, samples_per_s), LEAST, MOST};
    const struct dl_json effects = dl_json_member(report, "sensitivity", arena),
                         model = dl_json_member(report, "discrepancy", arena);
    *out = (struct dl_told_run){.name = dl_document_name(report, arena),
                                .inputs = json_object_get(report.value, "inputs")};
    if (!json_is_array(effects.value) || !json_is_object(model.value))
        return dl_fail(err, DL_KEY, report.where, "is no report of `dlsim run --sensitivity --json FILE`");
    if (need_number(report, &speed, out, arena, err)) return err->status;
    return read_effects(effects, arena, out, err) || read_model(model, arena, out, err) ? err->status : DL_OK;
}

struct dl_told_run dl_told_run_of(const char *name, double samples_per_s, const struct dl_sensitivity *s)
{
    return (struct dl_told_run){.name = name,
                                .samples_per_s = samples_per_s,
                                .effects = s->items,
                                .n_effects = s->n,
                                .setup = s->model.of,
                                .half_width = dl_discrepancy_half_width(&s->model),
                                .ratio_half_width = dl_discrepancy_ratio_half_width(&s->model)};
}

/* ---- comparing ---- */

/* The same path with another value or interval is of another file. */
static bool is_same(const struct dl_effect *a, const struct dl_effect *b)
{
    return strcmp(a->path, b->path) == 0 && a->value == b->value && a->low == b->low && a->high == b->high;
}

static struct dl_effect *find(struct dl_effect *among, size_t n, const struct dl_effect *like)
{
    for (size_t i = 0; i < n; i++)
        if (is_same(&among[i], like)) return &among[i];
    return NULL;
}

/* A longer step is less speed. */
static void subtract(struct dl_effect *from, const struct dl_effect *e)
{
    from->elasticity -= e->elasticity;
    from->below -= e->below;
    from->above -= e->above;
}

/* Of the ratio: those of the first less those of the second. */
static struct dl_effect *join(const struct dl_told_run *first, const struct dl_told_run *second, size_t *n,
                              struct dl_arena *arena)
{
    struct dl_effect *const joined = dl_arena_alloc(arena, (first->n_effects + second->n_effects) * sizeof *joined);
    for (*n = 0; *n < first->n_effects; ++*n) joined[*n] = first->effects[*n];
    for (size_t i = 0; i < second->n_effects; i++) {
        struct dl_effect *shared = find(joined, first->n_effects, &second->effects[i]);
        if (!shared) {
            shared = &joined[(*n)++];
            *shared = second->effects[i];
            shared->elasticity = shared->below = shared->above = 0;
        }
        subtract(shared, &second->effects[i]);
    }
    return joined;
}

struct dl_comparison dl_compare_runs(const struct dl_told_run *first, const struct dl_told_run *second,
                                     struct dl_arena *arena)
{
    size_t n;
    struct dl_effect *const effects = join(first, second, &n, arena);
    struct dl_comparison c = {.first = first,
                              .second = second,
                              .speedup = dl_sensitivity_of(second->samples_per_s / first->samples_per_s, effects, n),
                              .half_width = dl_is_same_setup(&first->setup, &second->setup)
                                                ? fmax(first->ratio_half_width, second->ratio_half_width)
                                                : hypot(first->half_width, second->half_width)};
    dl_sensitivity_widen(&c.speedup, (struct dl_open){.low = -c.half_width, .high = c.half_width});
    return c;
}

bool dl_told_apart(const struct dl_comparison *c) { return c->speedup.step_s_low > 1 || c->speedup.step_s_high < 1; }

/* ---- telling ---- */

static const char *verdict(const struct dl_comparison *c)
{
    return !dl_told_apart(c) ? "they cannot be told apart" : c->speedup.step_s > 1 ? "it is faster" : "it is slower";
}

void dl_comparison_print(const struct dl_comparison *c)
{
    const struct dl_sensitivity *const s = &c->speedup;
    const size_t most_shown = 5;
    printf("%s has %.3f times the samples a second of %s (%.3f to %.3f with 95 %%): %s\n", c->second->name, s->step_s,
           c->first->name, s->step_s_low, s->step_s_high, verdict(c));
    printf("  model: %+.1f to %+.1f %%, %s\n", 100 * expm1(-c->half_width), 100 * expm1(c->half_width),
           dl_is_same_setup(&c->first->setup, &c->second->setup)
               ? "the same software on the same system"
               : "each by itself, as it is another system or software");
    printf("  constants: %+.1f to %+.1f %%; percent of the ratio for one percent more\n",
           100 * (s->constants_s_low / s->step_s - 1), 100 * (s->constants_s_high / s->step_s - 1));
    for (size_t i = 0; i < s->n && i < most_shown; i++)
        printf("    %+7.3f  %s %.4g (%.4g to %.4g)\n", s->items[i].elasticity, s->items[i].path, s->items[i].value,
               s->items[i].low, s->items[i].high);
}

json_t *dl_comparison_json(const struct dl_comparison *c)
{
    const struct dl_sensitivity *const s = &c->speedup;
    json_t *const list = json_array();
    for (size_t i = 0; i < s->n; i++)
        json_array_append_new(list, dl_json_pack("{s:s, s:f, s:f, s:f, s:f}", "path", s->items[i].path, "value",
                                                 s->items[i].value, "low", s->items[i].low, "high", s->items[i].high,
                                                 "elasticity", s->items[i].elasticity));
    return dl_json_pack("{s:O?, s:O?, s:f, s:f, s:f, s:b, s:f, s:f, s:f, s:o}", "first", c->first->inputs, "second",
                        c->second->inputs, "speedup", s->step_s, "speedup_low", s->step_s_low, "speedup_high",
                        s->step_s_high, "told_apart", dl_told_apart(c), "constants_low", s->constants_s_low,
                        "constants_high", s->constants_s_high, "model_half_width", c->half_width, "sensitivity", list);
}
