/* memory_operations.c - what devices know of operations is of kernels that there are, and of all optimizers. */
#include "sim/cost/operations.h"

#include "strategies/job.h"
#include "tests/unit/workload_fixture.h"

static bool does(const struct dl_work *work, size_t n, const char *operation)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(dl_kernel_operation(&work[i].kernel), operation) == 0) return true;
    return false;
}

static bool some_model_does(const char *operation)
{
    const char **shipped;
    const size_t n = dl_list_folder(MODELS, f.arena, &shipped);
    for (size_t m = 0; m < n; m++) {
        open_shipped(shipped[m], 1, "unfused");
        for (size_t i = 0; i < model.n_layers; i++)
            if (does(model.layers[i].forward, model.layers[i].n_forward, operation)) return true;
    }
    return false;
}

START_TEST(every_operation_that_devices_know_is_one_of_models_or_of_optimizers)
{
    const struct dl_operation *const operation = dl_operation_get((size_t)_i);
    const bool is_known = operation->is_function || operation->is_update || operation->stands_apart;
    if (is_known) ck_assert_int_ne(some_model_does(operation->name), operation->is_update);
    const struct dl_kernel kernel = {.kind = DL_KERNEL_MEMORY, .name = "a test", .operation = operation->name};
    ck_assert_ptr_eq(dl_operation_of(&kernel), operation);
}
END_TEST

static bool some_optimizer_does(const char *operation, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(dl_optimizer_operation(*names), operation) == 0) return true;
    return false;
}

START_TEST(optimizers_that_strategies_name_are_updates)
{
    size_t n_fields;
    const struct dl_field *field = dl_job_fields(&n_fields);
    while (strcmp(field->key, "optimizer")) field++;
    for (const char *const *name = field->choices; *name; name++)
        ck_assert(dl_operation_named(dl_optimizer_operation(*name))->is_update);
    for (size_t i = 0; i < dl_operation_count(); i++) { /* one that is like another is a second way to do that */
        const struct dl_operation *const operation = dl_operation_get(i);
        if (operation->is_update && !operation->like) ck_assert(some_optimizer_does(operation->name, field->choices));
    }
}
END_TEST

START_TEST(products_and_unknown_kernels_have_no_properties)
{
    static const struct dl_kernel kernels[] = {{.kind = DL_KERNEL_GEMM, .name = "adam"},
                                               {.kind = DL_KERNEL_MEMORY, .name = "optimizer"},
                                               {.kind = DL_KERNEL_MEMORY}};
    for (size_t i = 0; i < DL_COUNT(kernels); i++) {
        const struct dl_operation *const operation = dl_operation_of(&kernels[i]);
        ck_assert(!operation->is_function && !operation->is_update && !operation->stands_apart);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("memory_operations");
    TCase *const tests = tcase_create("memory_operations");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_loop_test(tests, every_operation_that_devices_know_is_one_of_models_or_of_optimizers, 0,
                        (int)dl_operation_count());
    tcase_add_test(tests, optimizers_that_strategies_name_are_updates);
    tcase_add_test(tests, products_and_unknown_kernels_have_no_properties);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
