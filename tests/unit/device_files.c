/* device_files.c - what the shipped device files must have, and what a device file must not say. */
#include <gsl/gsl_statistics_double.h>

#include "sim/core/facts.h"
#include "tests/timed_rows.h"
#include "tests/unit/priced_device.h"

static void must_be_stated(void *user, const struct dl_fact *fact)
{
    (void)user;
    ck_assert_msg(fact->stated, "%s has no grade", fact->where);
}

START_TEST(every_figure_of_a_shipped_device_has_a_grade)
{
    open_device_number(_i);
    ck_assert_str_eq(device.name, device_names[_i]);
    dl_json_facts(doc, arena, must_be_stated, NULL);
}
END_TEST

static void check_size(const char *folder, const char *name)
{
    const long most_bytes = 200000;
    const char *path;
    ck_assert(!dl_find_file(folder, "device", name, arena, &path, &err));
    FILE *const file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    fseek(file, 0, SEEK_END);
    ck_assert_int_le(ftell(file), most_bytes);
    fclose(file);
}

START_TEST(every_shipped_file_is_small_enough_to_read)
{
    static const char *const folders[] = {"topologies/devices", "topologies/devices/measured"};
    for (size_t i = 0; i < DL_COUNT(folders); i++) {
        const char **names;
        const size_t n = dl_list_folder(folders[i], arena, &names);
        ck_assert_uint_gt(n, 0);
        for (size_t j = 0; j < n; j++) check_size(folders[i], names[j]);
    }
}
END_TEST

/* Every kind of kernel is in a file of its own, and after reading all of them are in the document. */
START_TEST(tables_of_other_files_are_put_into_the_document)
{
    const char *const kinds[] = {"gemm", "attention", "conv", "softmax"};
    load("topologies/devices", "h200");
    json_t *const list = json_object_get(doc.value, "measured");
    ck_assert_uint_eq(json_array_size(list), DL_COUNT(kinds));
    open_device("h200");
    for (size_t i = 0; i < DL_COUNT(kinds); i++) {
        size_t j, n = 0;
        json_t *table;
        json_array_foreach(json_object_get(doc.value, "measured"), j, table)
        {
            n += strcmp(timed_text(table, "kernel"), kinds[i]) == 0;
            ck_assert_ptr_null(json_object_get(table, "file"));
        }
        ck_assert_uint_gt(n, 1);
    }
}
END_TEST

START_TEST(every_device_that_a_system_names_is_shipped)
{
    const char **systems;
    const size_t n = dl_list_folder("topologies/systems", arena, &systems);
    ck_assert_uint_gt(n, 0);
    for (size_t i = 0; i < n; i++) {
        load("topologies/systems", systems[i]);
        const json_t *const name = json_object_get(json_object_get(doc.value, "node"), "device");
        ck_assert_msg(json_is_string(name), "%s names no device", systems[i]);
        open_device(dl_arena_string(arena, json_string_value(name)));
    }
}
END_TEST

/* Large products of cuBLAS as dlsim-profile found them, priced from what another profiler found: with calls one by one
 * the clock stays higher than within a step. */
START_TEST(two_profilers_of_one_device_agree)
{
    const double least_flop = 1e11, quickest = 0.8, slowest = 1.0;
    double *const ratios = dl_arena_alloc(arena, 10000 * sizeof *ratios);
    size_t n = 0, i, j;
    json_t *table, *row;
    load("topologies/devices", "h200-own");
    json_t *const measured = json_incref(json_object_get(doc.value, "measured"));
    open_device("h200");
    json_array_foreach(measured, i, table)
    {
        if (strcmp(timed_text(table, "kernel"), "gemm") || strcmp(timed_text(table, "precision"), "bf16")) continue;
        json_array_foreach(json_object_get(table, "rows"), j, row)
        {
            const struct dl_kernel k = timed_kernel(table, row);
            if (2 * k.batch * k.m * k.n * k.k < least_flop) continue;
            ratios[n++] = timed_cell(table, row, "seconds", 0) / dl_price(&device, &k, DL_BF16).seconds;
        }
    }
    json_decref(measured);
    ck_assert_uint_ge(n, 50);
    const double mean = gsl_stats_mean(ratios, 1, n), deviation = gsl_stats_sd(ratios, 1, n);
    ck_assert_msg(mean > quickest && mean < slowest, "the mean ratio of %zu is %g", n, mean);
    ck_assert_msg(deviation < 0.1, "the ratios of %zu spread by %g", n, deviation);
}
END_TEST

#define ROOFLINE(peaks, figures)                                                                                       \
    "{\"schema\": \"dlsim/device/1\", \"source\": \"none\", \"model\": \"roofline\", \"peak_flop_per_s\": " peaks      \
    ", \"memory_bytes\": 1e9, \"memory_bytes_per_s\": 1e10, \"launch_s\": 1e-6, \"figures\": " figures "}"

static const struct {
    const char *text, *message;
} bad[] = {
    {ROOFLINE("{}", "{\"compute_fraction\": 1, \"bandwidth_fraction\": 1}"),
     "d.json:/peak_flop_per_s: needs the peak of at least one precision"},
    {ROOFLINE("{\"fp33\": 1e12}", "{\"compute_fraction\": 1, \"bandwidth_fraction\": 1}"),
     "d.json:/peak_flop_per_s/fp33: unknown key, did you mean 'fp32'?"},
    {ROOFLINE("{\"fp32\": 1e12}", "{\"compute_fraction\": 1}"), "d.json:/figures: needs the key 'bandwidth_fraction'"},
    {ROOFLINE("{\"fp32\": 1e12}", "{\"compute_fraction\": 1.5, \"bandwidth_fraction\": 1}"),
     "d.json:/figures/compute_fraction: must be in [0.001, 1], got 1.5"},
    {"{\"schema\": \"dlsim/device/1\", \"source\": \"none\", \"model\": \"abacus\"}",
     "d.json:/model: must be one of cpu, dataflow, gpu, roofline, systolic, wafer, got 'abacus'"},
};

START_TEST(bad_files_are_refused_by_place)
{
    dl_json_parse(bad[_i].text, strlen(bad[_i].text), "d.json", arena, &doc, &err);
    check_ok();
    ck_assert_int_ne(dl_device_read(doc, arena, &device, &err), DL_OK);
    ck_assert_str_eq(err.text, bad[_i].message);
}
END_TEST

START_TEST(precisions_have_the_names_and_bytes_of_their_formats)
{
    static const struct {
        const char *name;
        double activation_bytes, operand_bytes, value_bytes;
    } wanted[DL_N_PRECISIONS] = {{"fp32", 4, 4, 4},
                                 {"tf32", 4, 4, 4},
                                 {"fp16", 2, 2, 2},
                                 {"bf16", 2, 2, 2},
                                 {"fp8", 2, 1, 1},
                                 {"mxfp8", 2, 1, 1},
                                 {"nvfp4", 2, (16 * 4 + 8) / 8.0 / 16, 0.5}};
    for (int p = 0; p < DL_N_PRECISIONS; p++) {
        ck_assert_str_eq(dl_precision_name((enum dl_precision)p), wanted[p].name);
        ck_assert_double_eq(dl_precision_bytes((enum dl_precision)p), wanted[p].activation_bytes);
        ck_assert_double_eq(dl_precision_operand_bytes((enum dl_precision)p), wanted[p].operand_bytes);
        ck_assert_double_eq(dl_precision_value_bytes((enum dl_precision)p), wanted[p].value_bytes);
    }
    open_device("v100-32");
    ck_assert(dl_device_supports(&device, DL_FP16) && !dl_device_supports(&device, DL_BF16));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, every_figure_of_a_shipped_device_has_a_grade, 0, n_devices);
    tcase_add_test(tests, every_shipped_file_is_small_enough_to_read);
    tcase_add_test(tests, tables_of_other_files_are_put_into_the_document);
    tcase_add_test(tests, every_device_that_a_system_names_is_shipped);
    tcase_add_test(tests, two_profilers_of_one_device_agree);
    tcase_add_loop_test(tests, bad_files_are_refused_by_place, 0, (int)DL_COUNT(bad));
    tcase_add_test(tests, precisions_have_the_names_and_bytes_of_their_formats);
}

int main(void) { return run_devices("device_files", add); }
