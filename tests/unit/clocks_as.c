/* clocks_as.c - kernels that their instructions bound take as many clocks as on a device where they were timed. */
#include "tests/unit/priced_device.h"

static struct dl_json timed; /* the device where they were */

static void remember_timed(const char *name)
{
    open_device(name);
    timed = dl_json_shared(doc);
}

static void take_clocks(void)
{
    ck_assert_msg(!dl_device_take_instructions(&device, timed, arena, &err), "%s", err.text);
}

static struct dl_kernel named(const char *name, double elements)
{
    struct dl_kernel k = moving(elements);
    k.name = name;
    return k;
}

static struct dl_price price_of(struct dl_kernel k) { return dl_price(&device, &k, DL_BF16); }

/* What only PyTorch has takes as many clocks as on the H200 where its memory is not the limit there; other kernels, and
 * those that memory bounds, are the device's own. */
START_TEST(kernels_of_pytorch_take_as_many_clocks_as_on_another_device)
{
    const struct dl_kernel rotation = named("rotary_parts", 5.4e8), activation = named("swiglu_parts", 4.5e8),
                           norm = named("rmsnorm", 2.7e8);
    remember_timed("h200");
    const double there_s = price_of(rotation).seconds;
    open_device("a100-80");
    ck_assert_str_eq(device.instructions_as, "h200");
    const double activation_s = price_of(activation).seconds, norm_s = price_of(norm).seconds;
    ck_assert_double_lt(price_of(rotation).seconds, there_s); /* on fewer units at a lower clock, with less memory */
    take_clocks();
    ck_assert_double_eq_tol(price_of(rotation).seconds, there_s * 132 * 1.98 / (108 * 1.41), 1e-9);
    ck_assert_double_eq(price_of(activation).seconds, activation_s);
    ck_assert_double_eq(price_of(norm).seconds, norm_s);
    ck_assert_int_eq(price_of(rotation).ground, DL_GROUND_MODELLED);
    json_decref(timed.value);
}
END_TEST

/* So it is on every other chip: with more units than the H200, and with memory of a fifth of its rate. */
START_TEST(no_chip_does_kernels_of_pytorch_in_fewer_clocks)
{
    static const struct {
        const char *name;
        double clocks_per_s;
    } chips[] = {{"a100-40", 108 * 1.41e9}, {"b200", 148 * 1.98e9}, {"gh200", 132 * 1.98e9}, {"v100-32", 80 * 1.53e9}};
    const struct dl_kernel rotation = named("rotary_parts", 5.4e8);
    remember_timed("h200");
    const double clocks = dl_price(&device, &rotation, DL_FP16).seconds * 132 * 1.98e9;
    for (size_t i = 0; i < DL_COUNT(chips); i++) {
        open_device(chips[i].name);
        take_clocks();
        const double here_s = dl_price(&device, &rotation, DL_FP16).seconds; /* which all of them have */
        ck_assert_double_ge(here_s * chips[i].clocks_per_s, (1 - 1e-9) * clocks);
    }
    json_decref(timed.value);
}
END_TEST

/* Which then tells nothing that they do not. */
START_TEST(own_times_are_in_the_place_of_clocks_of_another_device)
{
    open_device("a100-80");
    ck_assert_str_eq(device.instructions_as, "h200");
    change_device("measured=[{\"kernel\": \"gemm\", \"precision\": \"bf16\", \"library\": \"none\", \"columns\":"
                  " [\"m\", \"n\", \"k\", \"seconds\"], \"rows\": [[1024, 2048, 512, 1e-3]]}]");
    ck_assert_ptr_null(device.instructions_as);
}
END_TEST

/* Not those that memory bounds on the H200, where that of others is faster. */
START_TEST(faster_memory_helps_kernels_that_it_bounds)
{
    static const char *const names[] = {"swiglu_parts", "foreach_adam"};
    remember_timed("h200");
    open_device("b200");
    take_clocks();
    for (size_t i = 0; i < DL_COUNT(names); i++) {
        const struct dl_kernel k = named(names[i], 4.5e8);
        ck_assert_double_eq(price_of(k).seconds, device.model->price(&device, &k, DL_BF16).seconds);
    }
    json_decref(timed.value);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, kernels_of_pytorch_take_as_many_clocks_as_on_another_device);
    tcase_add_test(tests, no_chip_does_kernels_of_pytorch_in_fewer_clocks);
    tcase_add_test(tests, own_times_are_in_the_place_of_clocks_of_another_device);
    tcase_add_test(tests, faster_memory_helps_kernels_that_it_bounds);
}

int main(void) { return run_devices("clocks_as", add); }
