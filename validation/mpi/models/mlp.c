/* mlp.c - dlsim's MLP: pairs of fully connected layers, the first cut by columns, the second by rows. It is trained
 * with cross entropy, whether that is a layer of its own or not. */
#include "validation/mpi/models/models.h"

static void add_fc(struct dl_train *t, struct dl_real_layer *layer, const size_t *widths, bool bias,
                   enum dl_unit_cut cut)
{
    struct dl_unit *const u = dl_add_linear(t, layer, widths[0], widths[1], cut);
    u->is_first = layer->is->index == 0 && cut != DL_UNIT_BY_ROWS;
    if (cut == DL_UNIT_BY_ROWS) dl_add_mark(t, layer, &dl_unit_leave);
    if (bias) dl_add_vector(t, layer, &dl_unit_bias, 1, widths[1], cut == DL_UNIT_BY_COLUMNS);
}

static enum dl_status build(struct dl_train *t, struct dl_error *err)
{
    const json_t *const list = json_object_get(t->workload_doc.value, "widths");
    const json_t *const has_bias = json_object_get(t->workload_doc.value, "bias");
    const bool bias = !has_bias || json_is_true(has_bias);
    const size_t n = json_array_size(list) - 1;
    size_t *const widths = dl_arena_alloc(t->arena, (n + 1) * sizeof *widths);
    (void)err;
    for (size_t i = 0; i <= n; i++) widths[i] = (size_t)json_integer_value(json_array_get(list, i));
    for (size_t i = 0; i < n; i += 2) {
        struct dl_real_layer *const layer = &t->layers[i / 2];
        const bool is_pair = i + 1 < n;
        if (!dl_is_here(t, i / 2)) continue;
        if (is_pair) {
            dl_add_mark(t, layer, &dl_unit_enter);
            add_fc(t, layer, widths + i, bias, DL_UNIT_BY_COLUMNS);
            dl_add_unit(layer, &dl_unit_relu);
            add_fc(t, layer, widths + i + 1, bias, DL_UNIT_BY_ROWS);
        } else {
            add_fc(t, layer, widths + i, bias, DL_UNIT_WHOLE);
        }
        if (i + 2 < n) dl_add_unit(layer, &dl_unit_relu);
    }
    const size_t last = t->model.n_layers - 1;
    if (dl_is_here(t, last)) dl_add_unit(&t->layers[last], &dl_unit_loss);
    t->rows_per_sample = 1;
    t->sample_inputs = widths[0];
    t->n_classes = widths[n];
    return DL_OK;
}

const struct dl_model_kind dl_model_mlp = {.name = "mlp", .build = build, .sample = dl_sample_class};
