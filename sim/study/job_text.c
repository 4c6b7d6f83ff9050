#include "sim/study/job_text.h"

#include <stdlib.h>
#include <string.h>

static json_t *choice_json(const struct dl_field *field, int64_t index)
{
    return index < 0 ? json_null() : json_string(field->choices[index]); /* below 0: another file says it */
}

static json_t *list_json(const struct dl_int_list *list)
{
    json_t *const array = json_array();
    for (size_t i = 0; i < list->n; i++) json_array_append_new(array, json_integer(list->items[i]));
    return array;
}

static json_t *value_of(const struct dl_field *field, const void *options)
{
    const void *const place = (const char *)options + field->offset;
    switch (field->type) {
    case DL_INT: return json_integer(*(const int64_t *)place);
    case DL_NUMBER: return json_real(*(const double *)place);
    case DL_BOOL: return json_boolean(*(const bool *)place);
    case DL_TEXT: return *(const char *const *)place ? json_string(*(const char *const *)place) : json_null();
    case DL_CHOICE: return choice_json(field, *(const int64_t *)place);
    case DL_INT_LIST: return list_json(place);
    case DL_LIST:
    case DL_OBJECT:
    case DL_ANY: break;
    }
    json_t *const value = ((const struct dl_json *)place)->value;
    return value ? json_incref(value) : json_null();
}

static json_t *entry_json(const struct dl_stack *level)
{
    json_t *const entry = json_object();
    for (size_t i = 0; i < level->strategy->n_fields; i++) {
        const struct dl_field *const field = &level->strategy->fields[i];
        json_object_set_new(entry, field->key, value_of(field, level->options));
    }
    return entry;
}

static bool has_one_way(const json_t *entry)
{
    const json_t *const ways = json_object_get(entry, "ways");
    return json_is_integer(ways) && json_integer_value(ways) == 1;
}

static json_t *stack_json(const struct dl_job *job)
{
    const bool has_replicas = dl_copies(&job->setting, false) > 1;
    json_t *const stack = json_object();
    for (const struct dl_stack *level = job->stack; level->strategy; level++) {
        json_t *const entry = entry_json(level);
        if (!has_one_way(entry) && (has_replicas || !level->strategy->sums_gradients))
            json_object_set(stack, level->strategy->name, entry);
        json_decref(entry);
    }
    return stack;
}

static json_t *order_json(const struct dl_setting *s)
{
    json_t *const order = json_array();
    for (uint32_t i = 0; i < dl_n_axes(s); i++)
        if (s->ways[s->order[i]] > 1) json_array_append_new(order, json_string(dl_axis_name(s, s->order[i])));
    return order;
}

const char *dl_job_text(const struct dl_job *job, struct dl_arena *arena)
{
    const struct dl_setting *const s = &job->setting;
    json_t *const whole =
        json_pack("{sI sf sf ss ss so so}", "devices", (json_int_t)job->n_devices, "global_batch", s->global_batch,
                  "microbatch", s->microbatch, "precision", dl_precision_name(s->precision), "optimizer", s->optimizer,
                  "order", order_json(s), "stack", stack_json(job));
    json_object_set_new(whole, "wide_blocks", json_pack("[ii]", (int)s->wide_first_blocks, (int)s->wide_last_blocks));
    char *const text = json_dumps(whole, JSON_COMPACT | JSON_SORT_KEYS);
    const char *const kept = dl_arena_format(arena, "%s", text);
    free(text);
    json_decref(whole);
    return kept;
}
