#include "topologies/kinds.h"

#include <stdalign.h>
#include <string.h>

enum dl_status dl_read_kind(struct dl_json object, const char *const *names, int64_t *chosen, struct dl_arena *arena,
                            struct dl_error *err)
{
    if (!json_is_object(object.value)) return dl_fail(err, DL_TYPE, object.where, "must be an object, {...}");
    const struct dl_field field = {.key = "kind", .type = DL_CHOICE, .choices = names};
    struct dl_json only_kind = {.where = object.where};
    only_kind.value = json_pack("{s:O*}", "kind", json_object_get(object.value, "kind"));
    dl_read(only_kind, &field, 1, chosen, arena, err);
    json_decref(only_kind.value);
    return err->status;
}

enum dl_status dl_read_two(struct dl_json object, const struct dl_options *own, const struct dl_options *common,
                           struct dl_two_options *out, struct dl_arena *arena, struct dl_error *err)
{
    const size_t unit = alignof(max_align_t);
    const size_t common_offset = (own->size + unit - 1) / unit * unit;
    const size_t n = own->n_fields + common->n_fields;
    struct dl_field *const fields = dl_arena_alloc(arena, n * sizeof *fields);
    memcpy(fields, own->fields, own->n_fields * sizeof *fields);
    memcpy(fields + own->n_fields, common->fields, common->n_fields * sizeof *fields);
    for (size_t i = own->n_fields; i < n; i++) fields[i].offset += common_offset;

    out->own = dl_arena_alloc(arena, common_offset + common->size);
    out->common = (char *)out->own + common_offset;
    memcpy(out->own, own->defaults, own->size);
    memcpy(out->common, common->defaults, common->size);
    return dl_read(object, fields, n, out->own, arena, err);
}
