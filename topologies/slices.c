#include "topologies/slices.h"

#include <stdio.h>

enum { max_size = 1 << 14 };

struct options {
    struct dl_int_list dimensions;
    struct dl_json wrap;
};
static const struct dl_field fields[] = {
    {"dimensions", DL_INT_LIST, offsetof(struct options, dimensions), 1, max_size, false, NULL, "devices along each"},
    {"wrap", DL_LIST, offsetof(struct options, wrap), 0, 0, true, NULL,
     "true: a ring, false: a line (as the whole torus where the slice spans it, else lines)"},
};

enum dl_status dl_wrap_read(struct dl_json list, size_t n, bool *out, struct dl_arena *arena, struct dl_error *err)
{
    if (json_array_size(list.value) != n)
        return dl_fail(err, DL_IMPOSSIBLE, list.where, "must have %zu items, one for each of 'dimensions', got %zu", n,
                       json_array_size(list.value));
    for (size_t d = 0; d < n; d++) {
        const struct dl_json item = dl_json_element(list, d, arena);
        if (!json_is_boolean(item.value)) return dl_fail(err, DL_TYPE, item.where, "must be true or false");
        out[d] = json_is_true(item.value);
    }
    return DL_OK;
}

static enum dl_status read_slice(struct dl_json item, const struct dl_pod_slice *whole, struct dl_arena *arena,
                                 struct dl_pod_slice *out, struct dl_error *err)
{
    struct options o = {0};
    const size_t n = whole->n_dimensions;
    if (dl_read(item, fields, DL_COUNT(fields), &o, arena, err)) return err->status;
    if (o.dimensions.n != n)
        return dl_fail(err, DL_IMPOSSIBLE, item.where, "'dimensions' must have %zu items, as the torus, got %zu", n,
                       o.dimensions.n);
    double devices = 1;
    *out = (struct dl_pod_slice){.n_dimensions = n};
    for (size_t d = 0; d < n; d++) {
        devices *= (double)o.dimensions.items[d];
        out->size[d] = o.dimensions.items[d];
        out->wrap[d] = whole->wrap[d] && out->size[d] == whole->size[d];
    }
    out->n_devices = devices < whole->n_devices ? (uint32_t)devices : whole->n_devices;
    return o.wrap.value ? dl_wrap_read(o.wrap, n, out->wrap, arena, err) : DL_OK;
}

enum dl_status dl_slices_read(struct dl_json list, const struct dl_pod_slice *whole, uint32_t devices_per_node,
                              struct dl_arena *arena, struct dl_slices *out, struct dl_error *err)
{
    const size_t n = json_array_size(list.value);
    out->items = dl_arena_alloc(arena, n * sizeof *out->items);
    for (size_t i = 0; i < n; i++) {
        struct dl_pod_slice *const slice = &out->items[out->n];
        const struct dl_json item = dl_json_element(list, i, arena);
        if (read_slice(item, whole, arena, slice, err)) return err->status;
        if (slice->n_devices >= whole->n_devices) continue;
        if (slice->n_devices > devices_per_node && slice->n_devices % devices_per_node)
            return dl_fail(err, DL_IMPOSSIBLE, item.where, "%u devices are no whole number of nodes of %u",
                           slice->n_devices, devices_per_node);
        out->n++;
    }
    return DL_OK;
}

const struct dl_pod_slice *dl_slice_for(const struct dl_slices *slices, uint32_t n_devices)
{
    const struct dl_pod_slice *best = NULL;
    for (size_t i = 0; i < slices->n; i++) {
        const struct dl_pod_slice *const slice = &slices->items[i];
        if (slice->n_devices >= n_devices && (!best || slice->n_devices < best->n_devices)) best = slice;
    }
    return best;
}

/* Dimensions of one device neither wrap nor end. */
const char *dl_slice_text(const struct dl_pod_slice *slice, char *text)
{
    size_t used = 0, n_long = 0, n_wraps = 0;
    for (size_t d = 0; d < slice->n_dimensions; d++) {
        used += (size_t)snprintf(text + used, DL_SLICE_TEXT - used, "%s%lld", d ? "x" : "", (long long)slice->size[d]);
        n_long += slice->size[d] > 1;
        n_wraps += slice->size[d] > 1 && slice->wrap[d];
    }
    if (!n_wraps || n_wraps == n_long) {
        snprintf(text + used, DL_SLICE_TEXT - used, n_wraps ? " torus" : " mesh");
        return text;
    }
    const char *joint = ", wraps in dimension ";
    for (size_t d = 0; d < slice->n_dimensions; d++)
        if (slice->size[d] > 1 && slice->wrap[d]) {
            used += (size_t)snprintf(text + used, DL_SLICE_TEXT - used, "%s%zu", joint, d);
            joint = " and ";
        }
    return text;
}
