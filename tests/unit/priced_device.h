/* priced_device.h - a shipped device file, opened for a test, and kernels to price on it. */
#ifndef DL_TESTS_PRICED_DEVICE_H
#define DL_TESTS_PRICED_DEVICE_H

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/core/inherit.h"
#include "sim/cost/device.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static struct dl_error err;
static struct dl_json doc;
static struct dl_device device;

static inline void set_up(void)
{
    arena = dl_arena_new();
    err = (struct dl_error){0};
    doc = (struct dl_json){0};
}

static inline void close_document(void)
{
    json_decref(doc.value);
    doc.value = NULL;
}

static inline void tear_down(void)
{
    close_document();
    dl_arena_free(arena);
}

static inline void check_ok(void) { ck_assert_msg(err.status == DL_OK, "%s", err.text); }

static inline void load(const char *folder, const char *name)
{
    close_document();
    const char *path;
    (void)(dl_find_file(folder, "file", name, arena, &path, &err) || dl_json_load(path, arena, &doc, &err) ||
           dl_json_inherit(doc, folder, "file", arena, &err));
    check_ok();
}

static inline const struct dl_device *open_device(const char *name)
{
    load("topologies/devices", name);
    dl_device_read(doc, arena, &device, &err);
    check_ok();
    return &device;
}

/* The device of the file with "path=JSON" applied to it. */
static inline const struct dl_device *change_device(const char *assignment)
{
    dl_json_set(doc, assignment, arena, &err);
    check_ok();
    dl_device_read(doc, arena, &device, &err);
    check_ok();
    return &device;
}

static const char **device_names;
static int n_devices;

static inline const struct dl_device *open_device_number(int index) { return open_device(device_names[index]); }

static inline double figure(const char *key)
{
    const json_t *const value = json_object_get(json_object_get(doc.value, "figures"), key);
    ck_assert_msg(json_is_number(value), "%s has no %s", device.name, key);
    return json_number_value(value);
}

static inline bool is_gpu(void) { return strcmp(device.model->name, "gpu") == 0; }

/* The one that training would use. */
static inline enum dl_precision fast_precision(void)
{
    static const enum dl_precision order[] = {DL_BF16, DL_FP16, DL_FP32};
    for (size_t i = 0; i < DL_COUNT(order); i++)
        if (dl_device_supports(&device, order[i])) return order[i];
    ck_abort_msg("%s has none of bf16, fp16, fp32", device.name);
}

static inline struct dl_kernel product(double m, double n, double k)
{
    return (struct dl_kernel){.kind = DL_KERNEL_GEMM, .batch = 1, .m = m, .n = n, .k = k};
}

static inline struct dl_kernel attention(double heads, double tokens, double head_size, bool causal, bool backward)
{
    return (struct dl_kernel){.kind = DL_KERNEL_ATTENTION,
                              .batch = heads,
                              .m = tokens,
                              .n = tokens,
                              .k = head_size,
                              .causal = causal,
                              .backward = backward};
}

static inline struct dl_kernel moving(double elements)
{
    return (struct dl_kernel){.kind = DL_KERNEL_MEMORY, .elements = elements};
}

static inline double seconds(struct dl_kernel k) { return dl_price(&device, &k, fast_precision()).seconds; }

/* Add the tests to the case, which may loop over n_devices. */
static inline int run_devices(const char *name, void (*add)(TCase *tests))
{
    struct dl_arena *const names_arena = dl_arena_new();
    n_devices = (int)dl_list_folder("topologies/devices", names_arena, &device_names);
    TCase *const tests = tcase_create(name);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    add(tests);
    Suite *const suite = suite_create(name);
    suite_add_tcase(suite, tests);
    const int failed = run_without_forking(suite);
    dl_arena_free(names_arena);
    return failed || !n_devices ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
