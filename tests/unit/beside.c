/* beside.c - what collectives and sends take from kernels on Hopper, against kernels that were timed beside blocks like
 * NCCL's (validation/measured/beside.json). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/inherit.h"
#include "sim/cost/device.h"
#include "tests/unit/measured_steps.h"

enum column { KIND, KERNEL, UNITS, MARGIN, COPIED, SECONDS };
enum { most_kernels = 64 };

static void open_measured(void) { open_measured_file("beside"); }

static bool is_of(const json_t *row, enum dl_kernel_class class)
{
    static const char *const kinds[DL_N_CLASSES][2] = {[DL_CLASS_PRODUCT] = {"product", "fp8 product"},
                                                       [DL_CLASS_ATTENTION] = {"attention"},
                                                       [DL_CLASS_MEMORY] = {"memory"}};
    for (int i = 0; i < 2; i++)
        if (kinds[class][i] && strcmp(text(row, KIND), kinds[class][i]) == 0) return true;
    return false;
}

/* The mean of the kernel alone, before and after; NAN: these differ by more than a share. */
static double alone_s(const json_t *rows, const char *kernel, double most_apart)
{
    double sum = 0, n = 0, first = 0;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *const row = json_array_get(rows, i);
        if (strcmp(text(row, KERNEL), kernel) || number(row, UNITS) > 0 || number(row, MARGIN) > 0) continue;
        if (n == 0) first = number(row, SECONDS);
        sum += number(row, SECONDS), n++;
    }
    ck_assert_double_eq(n, 2);
    return fabs(sum / first - 2) > most_apart ? NAN : sum / n;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the rate of kernels of this class, in the median, beside so many blocks that copy, or that only wait: of those
 * whose times alone differ by no more than a share. */
static double taken_beside(enum dl_kernel_class class, double units, bool copy, double most_apart)
{
    const json_t *const rows = json_object_get(measured.value, "rows");
    double longer[most_kernels];
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(rows) && n < most_kernels; i++) {
        const json_t *const row = json_array_get(rows, i);
        if (!is_of(row, class) || number(row, UNITS) != units || number(row, MARGIN) > 0) continue;
        if ((number(row, COPIED) > 0) != copy) continue;
        const double longer_by = number(row, SECONDS) / alone_s(rows, text(row, KERNEL), most_apart);
        if (!isnan(longer_by)) longer[n++] = longer_by;
    }
    ck_assert_uint_gt(n, 4);
    qsort(longer, n, sizeof *longer, by_size);
    return 1 - 2 / (longer[(n - 1) / 2] + longer[n / 2]);
}

static double taken(enum dl_kernel_class class, double units, double most_apart)
{
    return taken_beside(class, units, true, most_apart);
}

static const double rounding = 0.0051, exchange_units = 16, send_units = 4;

static void read_device(const char *name, struct dl_json *doc, struct dl_device *out)
{
    struct dl_error err = {0};
    const char *path;
    ck_assert(!dl_find_file("topologies/devices", "device", name, arena, &path, &err) &&
              !dl_json_load(path, arena, doc, &err) &&
              !dl_json_inherit(*doc, "topologies/devices", "device", arena, &err));
    ck_assert_msg(!dl_device_read(*doc, arena, out, &err), "%s", err.text);
}

/* What blocks hold goes with their share of the units, what copying takes is as on the H200. */
START_TEST(an_a100_loses_it_by_its_units)
{
    static const char *const names[] = {"a100-40", "a100-80"};
    for (size_t n = 0; n < DL_COUNT(names); n++) {
        struct dl_device device;
        struct dl_json doc;
        read_device(names[n], &doc, &device);
        for (int i = DL_CLASS_NONE + 1; i < DL_N_CLASSES; i++) {
            const enum dl_kernel_class class = (enum dl_kernel_class)i;
            const double waits = taken_beside(class, exchange_units, false, 1),
                         copies = taken(class, exchange_units, 1);
            ck_assert_double_eq_tol(device.taken_by_exchanges.fraction[i], waits * 132 / 108 + copies - waits,
                                    rounding);
        }
        json_decref(doc.value);
    }
}
END_TEST

START_TEST(hopper_loses_what_was_measured)
{
    static const char *const names[] = {"h100", "h200", "h800", "gh200"};
    const double close = 0.025, some = 0.05; /* times alone differ by up to a quarter: without those, too */
    struct dl_device device;
    struct dl_json doc;
    read_device(names[_i], &doc, &device);
    for (int i = DL_CLASS_NONE + 1; i < DL_N_CLASSES; i++) {
        const enum dl_kernel_class class = (enum dl_kernel_class)i;
        const double exchanges = device.taken_by_exchanges.fraction[i], sends = device.taken_by_sends.fraction[i];
        ck_assert_double_eq_tol(exchanges, taken(class, exchange_units, 1), rounding);
        ck_assert_double_eq_tol(exchanges, taken(class, exchange_units, some), close);
        ck_assert_double_eq_tol(sends, taken(class, send_units, 1), rounding);
        ck_assert_double_eq_tol(sends, taken(class, send_units, some), close);
    }
    json_decref(doc.value);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("beside");
    TCase *const tests = tcase_create("beside");
    tcase_add_checked_fixture(tests, open_measured, close_measured);
    tcase_add_loop_test(tests, hopper_loses_what_was_measured, 0, 4);
    tcase_add_test(tests, an_a100_loses_it_by_its_units);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
