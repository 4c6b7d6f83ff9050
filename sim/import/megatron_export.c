/* megatron_export.c - the whole of an export to Megatron-LM, and what its parts share. */
#include "sim/import/megatron_export.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void dl_megatron_put(struct dl_megatron_export *x, const char *format, ...)
{
    char text[300];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    dl_words_add(&x->flags, dl_arena_string(x->arena, text), 0);
}

void dl_megatron_without(struct dl_megatron_export *x, struct dl_json object, const char *key, const char *why)
{
    const json_t *const value = json_object_get(object.value, key);
    dl_leave_out(&x->without,
                 (struct dl_left_out){.key = dl_json_member(object, key, x->arena).where,
                                      .value = value ? dl_shown_value(value, x->arena) : NULL,
                                      .why = why,
                                      .matters = true},
                 x->arena);
}

int64_t dl_megatron_count(struct dl_json object, const char *key, int64_t absent)
{
    const json_t *const value = json_object_get(object.value, key);
    return json_is_number(value) ? (int64_t)json_number_value(value) : absent;
}

bool dl_megatron_is(struct dl_json object, const char *key, const char *word)
{
    const char *const value = json_string_value(json_object_get(object.value, key));
    return value && strcmp(value, word) == 0;
}

bool dl_megatron_true(struct dl_json object, const char *key, bool absent)
{
    const json_t *const value = json_object_get(object.value, key);
    return value ? json_is_true(value) : absent;
}

void dl_megatron_without_others(struct dl_megatron_export *x, struct dl_json object, const char *const *known,
                                const char *why)
{
    static const char *const silent[] = {"schema", "source", "facts", "like", "name", "kind", NULL};
    const char *key;
    json_t *value;
    json_object_foreach(object.value, key, value)
    {
        bool is_known = false;
        for (size_t i = 0; silent[i]; i++) is_known |= strcmp(silent[i], key) == 0;
        for (size_t i = 0; known[i]; i++) is_known |= strcmp(known[i], key) == 0;
        if (!is_known) dl_megatron_without(x, object, key, why);
    }
}

enum dl_status dl_megatron_export(struct dl_megatron_export *x, struct dl_error *err)
{
    if (!dl_megatron_is(x->workload, "kind", "transformer"))
        return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(x->workload, "kind", x->arena).where,
                       "must be transformer: Megatron-LM trains no other model");
    if (json_object_get(x->workload.value, "pattern"))
        return dl_fail(err, DL_IMPOSSIBLE, dl_json_member(x->workload, "pattern", x->arena).where,
                       "must be absent: dlsim writes no flags of hybrids, and without them another model is trained");
    const struct dl_json stack = dl_json_member(x->strategy, "stack", x->arena);
    for (size_t i = 0; i < json_array_size(stack.value); i++) {
        const struct dl_json entry = dl_json_element(stack, i, x->arena);
        if (dl_megatron_is(entry, "name", "lora"))
            return dl_fail(err, DL_IMPOSSIBLE, entry.where,
                           "must be absent: Megatron-LM has no flags of adapters, and without them all is trained");
    }
    dl_megatron_export_workload(x);
    dl_megatron_export_strategy(x);
    return DL_OK;
}

void dl_megatron_export_print(const struct dl_megatron_export *x, FILE *to)
{
    const struct dl_imported *const w = &x->without;
    fputs("#!/bin/sh\n", to);
    for (size_t i = 0; i < w->n_left_out; i++)
        fprintf(to, "# no flag for %s %s: %s\n", w->left_out[i].key, w->left_out[i].value, w->left_out[i].why);
    if (x->devices) fprintf(to, "srun --ntasks=%lld ", (long long)x->devices);
    fprintf(to, "python pretrain_%s.py", x->is_bert ? "bert" : x->has_encoder ? "t5" : "gpt");
    for (size_t i = 0; i < x->flags.n; i++) fprintf(to, " \\\n    %s", x->flags.items[i].text);
    fputc('\n', to);
}

void dl_megatron_export_release(struct dl_megatron_export *x)
{
    dl_free(x->flags.items);
    dl_imported_release(&x->without);
    x->flags = (struct dl_shell_words){0};
}
