#include "sim/report/slice_report.h"

#include <stdio.h>

/* The largest slice that is smaller than the one that holds the job; 0: there is none. */
static uint32_t next_smaller(const struct dl_slices *slices, uint32_t n_devices)
{
    uint32_t best = 0;
    for (size_t i = 0; i < slices->n; i++) {
        const uint32_t n = slices->items[i].n_devices;
        if (n < n_devices && n > best) best = n;
    }
    return best;
}

void dl_slice_print(const struct dl_topology *t, uint32_t n_devices)
{
    const struct dl_network *const net = &t->network;
    char text[DL_SLICE_TEXT];
    if (!net->slices.n) return;
    printf("  slice          %s", dl_slice_text(&net->shape, text));
    if (n_devices < t->n_devices) {
        const uint32_t smaller = next_smaller(&net->slices, n_devices);
        printf(": %u of its %u devices; nearest whole slices: ", n_devices, t->n_devices);
        if (smaller) printf("%u, ", smaller);
        printf("%u", t->n_devices);
    }
    putchar('\n');
}

json_t *dl_slice_json(const struct dl_topology *t)
{
    const struct dl_pod_slice *const shape = &t->network.shape;
    if (!t->network.slices.n) return json_null();
    json_t *const dimensions = json_array(), *const wrap = json_array();
    for (size_t d = 0; d < shape->n_dimensions; d++) {
        json_array_append_new(dimensions, json_integer(shape->size[d]));
        json_array_append_new(wrap, json_boolean(shape->wrap[d]));
    }
    return dl_json_pack("{s:o, s:o, s:I}", "dimensions", dimensions, "wrap", wrap, "devices", (json_int_t)t->n_devices);
}
