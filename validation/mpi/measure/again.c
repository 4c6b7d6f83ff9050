/* again.c - what was measured earlier, from the file that tells it: times of messages, to be fitted anew, and kernels.
 */
#include "validation/mpi/measure/measure.h"

struct file {
    const char *schema;
    int64_t ranks;
    struct dl_json messages, small, large, pieces;
    double small_until_bytes, pieces_above_bytes;
    struct dl_measured measured;
};
#define AT(member) offsetof(struct file, member)
static const double most = 1e15;
static const struct dl_field fields[] = {
    {"schema", DL_TEXT, AT(schema), 0, 0, false, NULL, "dlsim/measured/1"},
    {"ranks", DL_INT, AT(ranks), 2, 1e6, false, NULL, "that were busy"},
    {"messages", DL_OBJECT, AT(messages), 0, 0, false, NULL, "seconds by bytes"},
    {"small", DL_OBJECT, AT(small), 0, 0, true, NULL, "a line, fitted earlier"},
    {"large", DL_OBJECT, AT(large), 0, 0, true, NULL, "a line, fitted earlier"},
    {"pieces", DL_OBJECT, AT(pieces), 0, 0, true, NULL, "a line, fitted earlier"},
    {"small_until_bytes", DL_NUMBER, AT(small_until_bytes), 0, most, true, NULL, "where the lines part"},
    {"pieces_above_bytes", DL_NUMBER, AT(pieces_above_bytes), 0, most, true, NULL, "where the lines part"},
    {"reduction_s_per_byte", DL_NUMBER, AT(measured.reduction_s_per_byte), 0, 1, false, NULL, "to add"},
    {"pack_s_per_byte", DL_NUMBER, AT(measured.pack_s_per_byte), 0, 1, false, NULL, "to pack or unpack"},
    {"gemm_flop_per_s", DL_NUMBER, AT(measured.gemm_flop_per_s), 1, most, false, NULL, "products of all ranks"},
    {"gemm_alone_flop_per_s", DL_NUMBER, AT(measured.gemm_alone_flop_per_s), 1, most, false, NULL, "of one"},
    {"slowest_over_mean", DL_NUMBER, AT(measured.slowest_over_mean), 1, 1e6, false, NULL, "of ranks that wait"},
};

static enum dl_status read_row(struct dl_json row, struct dl_messages *m, struct dl_error *err)
{
    double fitted_s; /* by the earlier fit */
    if (json_unpack(row.value, "[F, F, F]", &m->bytes[m->n], &m->seconds[m->n], &fitted_s) || m->seconds[m->n] <= 0)
        return dl_fail(err, DL_TYPE, row.where, "must be bytes, seconds above 0, seconds by the fit");
    m->n++;
    return DL_OK;
}

static enum dl_status read_messages(struct dl_json table, struct dl_messages *m, struct dl_arena *arena,
                                    struct dl_error *err)
{
    const struct dl_json rows = dl_json_member(table, "rows", arena);
    const size_t n = json_array_size(rows.value);
    if (n < DL_LEAST_MESSAGES || n > DL_MOST_SIZES)
        return dl_fail(err, DL_RANGE, table.where, "must have %d to %d rows", DL_LEAST_MESSAGES, DL_MOST_SIZES);
    for (size_t i = 0; i < n; i++)
        if (read_row(dl_json_element(rows, i, arena), m, err)) return err->status;
    return DL_OK;
}

enum dl_status dl_measured_read(const char *path, struct dl_measured *out, struct dl_error *err)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_json doc = {0};
    struct file f = {0};
    if (!dl_json_load(path, arena, &doc, err) && !dl_check_schema(doc, "measured", arena, err) &&
        !dl_read(doc, fields, DL_COUNT(fields), &f, arena, err) &&
        !read_messages(f.messages, &f.measured.messages, arena, err)) {
        *out = f.measured;
        out->n_ranks = (int)f.ranks;
    }
    json_decref(doc.value);
    dl_arena_free(arena);
    return err->status;
}
