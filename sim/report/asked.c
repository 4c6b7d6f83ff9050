#include "sim/report/asked.h"

#include "sim/core/version.h"

static json_t *count_or_null(double n) { return n > 0 ? json_integer((json_int_t)n) : json_null(); }

static json_t *bytes_or_null(double bytes) { return bytes > 0 ? dl_json_real(bytes) : json_null(); }

static json_t *ways_json(const struct dl_setting *s)
{
    json_t *const ways = json_object();
    for (uint32_t i = 0; i < dl_n_axes(s); i++) {
        const enum dl_axis axis = dl_axis_by_default(s, i);
        json_object_set_new(ways, dl_axis_name(s, axis), json_integer(s->ways[axis]));
        if (axis == DL_AXIS_DATA) json_object_set_new(ways, "expert", json_integer(dl_n_expert_ranks(s)));
    }
    return ways;
}

/* Those of a set whose bits begin with the second. */
static json_t *names_json(const char *const *names, uint64_t set)
{
    json_t *const list = json_array();
    for (size_t i = 0; names[i]; i++)
        if (set >> (i + 1) & 1) json_array_append_new(list, json_string(names[i]));
    return list;
}

/* What parts of blocks are repeated, and what blocks that are repeated as a whole keep; null where that is not asked.
 */
static void add_recomputation(const struct dl_setting *s, json_t *inputs)
{
    const bool selective = s->recompute == DL_RECOMPUTE_SELECTIVE, full = s->recompute == DL_RECOMPUTE_BLOCKS;
    json_t *const all =
        dl_json_pack("{s:o, s:s?, s:o, s:o}", "recompute_modules",
                     selective ? names_json(dl_modules, s->recompute_modules) : json_null(), "recompute_keeps",
                     full ? dl_recompute_keeps_name(s) : NULL, "recompute_kept_results",
                     full ? names_json(dl_results, s->kept_results) : json_null(), "recompute_kept_before_bias",
                     full ? json_boolean(s->kept_before_bias) : json_null());
    json_object_update(inputs, all);
    json_decref(all);
}

/* How a step is made; all null for what is none. */
static void add_setting(const struct dl_asked *a, json_t *inputs)
{
    static const struct dl_setting none = {0};
    const struct dl_setting *const s = a->setting ? a->setting : &none;
    json_t *const setting = dl_json_pack(
        "{s:s?, s:o, s:o, s:o, s:o, s:o, s:s?, s:o, s:s?}", "precision",
        a->setting ? dl_precision_name(s->precision) : NULL, "ways", a->setting ? ways_json(s) : json_null(),
        "global_batch", count_or_null(s->global_batch), "microbatch", count_or_null(s->microbatch), "microbatches",
        count_or_null(s->micros), "sequence_tokens", count_or_null(a->tokens_per_sample), "schedule", s->schedule,
        "zero_stage", a->setting ? json_integer(s->zero_asked) : json_null(), "recompute",
        a->setting ? dl_recompute_name(s->recompute) : NULL);
    json_object_update(inputs, setting);
    json_decref(setting);
    json_object_set_new(inputs, "wide_first_blocks", a->setting ? json_integer(s->wide_first_blocks) : json_null());
    json_object_set_new(inputs, "wide_last_blocks", a->setting ? json_integer(s->wide_last_blocks) : json_null());
    add_recomputation(s, inputs);
}

static json_t *overrides_json(const struct dl_asked *a)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < a->n_overrides; i++) json_array_append_new(list, json_string(a->overrides[i]));
    return list;
}

static json_t *inputs_json(const struct dl_asked *a)
{
    json_t *const inputs =
        dl_json_pack("{s:s, s:s, s:s, s:s?, s:s?, s:o, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:o}", "command", a->command,
                     "version", dl_version(), "sha256", a->sha256, "topology", a->topology, "device", a->device,
                     "device_memory_bytes", bytes_or_null(a->device_memory_bytes), "transport", a->transport,
                     "workload", a->workload, "strategy", a->strategy, "software", a->software, "scenario", a->scenario,
                     "program", a->program, "devices", count_or_null(a->n_devices));
    add_setting(a, inputs);
    json_object_set_new(inputs, "placement", a->placement ? json_string(a->placement) : json_null());
    json_object_set_new(inputs, "seed", a->placement ? json_integer((json_int_t)a->seed) : json_null());
    json_object_set_new(inputs, "engine", a->engine ? json_string(a->engine) : json_null());
    json_object_set_new(inputs, "fidelity", a->fidelity ? json_string(a->fidelity) : json_null());
    json_object_set_new(inputs, "overrides", overrides_json(a));
    return inputs;
}

json_t *dl_answer(const struct dl_asked *asked, json_t *report)
{
    json_t *const answer =
        json_pack("{s:o, s:o}", "schema", json_sprintf("dlsim/%s/1", asked->command), "inputs", inputs_json(asked));
    json_object_update(answer, report);
    json_decref(report);
    return answer;
}
