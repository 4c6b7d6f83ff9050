/* power.c - the clock of a device follows the power of the whole step, and kernels follow the clock. */
#include "sim/cost/power.h"

#include "tests/unit/divided_step.h"
#include "tests/unit/priced_device.h"

#define POWER(limit, share)                                                                                            \
    ",'power':{'limit_w':" limit                                                                                       \
    ",'idle_w':100,'older_power_fraction':0.8,'memory_w':1,'function_w':200,'optimizer_w':1,'product_w':900,"          \
    "'convolution_w':900,'fallback_w':900,'attention_w':600,'attention_backward_w':500,'function_clock_share':0.3,"    \
    "'product_clock_share':" share ",'fallback_clock_share':1,'attention_clock_share':0.7,"                            \
    "'product_timed_clock_fraction':1}"
#define MLP "{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[512,1024,512]}"
#define HEAD "'global_batch':8192,'microbatch':4096,'precision':'fp16'"

static const double exact = 1e-12;

static struct dl_kernel product_of(double m, double n, double k, enum dl_kernel_pass pass)
{
    return (struct dl_kernel){
        .kind = DL_KERNEL_GEMM, .pass = pass, .name = "product", .batch = 1, .m = m, .n = n, .k = k};
}

static struct dl_draw draw_of(const struct dl_kernel *k)
{
    const struct dl_price alone = dl_price(&device, k, DL_BF16);
    return dl_draw_of(&device, k, DL_BF16, &alone);
}

static double watts(const struct dl_power *p, const struct dl_draw *work, double idle_s, double clock)
{
    return p->idle_w + (work->memory_j + work->arithmetic_j * clock) / (idle_s + dl_draw_seconds(work, clock));
}

/* ---- kernels ---- */

START_TEST(a_product_takes_what_was_timed_at_the_clock_it_was_timed_at)
{
    open_device("h200");
    for (double m = 8; m <= 32768; m *= 8)
        for (int pass = DL_PASS_FORWARD; pass <= DL_PASS_WEIGHT_GRADIENT; pass++) {
            const struct dl_kernel k = product_of(m, 4096, 1024, (enum dl_kernel_pass)pass);
            const struct dl_draw draw = draw_of(&k);
            const double alone_s = dl_price(&device, &k, DL_BF16).seconds;
            check_close("timed", dl_draw_seconds(&draw, device.power->product_timed_clock_fraction), alone_s, exact);
            ck_assert_double_lt(dl_draw_seconds(&draw, 1), alone_s);
        }
}
END_TEST

START_TEST(what_a_kernel_costs_alone_does_not_depend_on_its_power)
{
    const struct dl_kernel kernels[] = {product_of(8192, 8192, 8192, DL_PASS_FORWARD),
                                        product_of(777, 50257, 333, DL_PASS_INPUT_GRADIENT),
                                        {.kind = DL_KERNEL_MEMORY, .name = "gelu", .elements = 1e8}};
    double with_s[DL_COUNT(kernels)];
    open_device("h200");
    for (size_t i = 0; i < DL_COUNT(kernels); i++) with_s[i] = dl_price(&device, &kernels[i], DL_BF16).seconds;
    json_object_del(doc.value, "power");
    dl_device_read(doc, arena, &device, &err);
    check_ok();
    ck_assert_ptr_null(device.power);
    for (size_t i = 0; i < DL_COUNT(kernels); i++)
        ck_assert_double_eq(dl_price(&device, &kernels[i], DL_BF16).seconds, with_s[i]);
}
END_TEST

/* Clocks of kernels that ran alone for 1.6 s on an H200, of 1980 MHz. */
START_TEST(kernels_alone_are_throttled_as_measured)
{
    static const struct {
        struct dl_kernel kernel;
        double clock_hz;
    } measured[] = {
        {{.kind = DL_KERNEL_GEMM, .name = "a", .batch = 1, .m = 8192, .n = 8192, .k = 8192}, 1457e6},
        {{.kind = DL_KERNEL_GEMM, .name = "a", .batch = 1, .m = 16384, .n = 5120, .k = 1280}, 1538e6},
        {{.kind = DL_KERNEL_GEMM, .name = "a", .batch = 1, .m = 8192, .n = 2560, .k = 10240}, 1490e6},
        {{.kind = DL_KERNEL_GEMM, .name = "a", .batch = 1, .m = 4096, .n = 768, .k = 3072}, 1592e6},
        {{.kind = DL_KERNEL_GEMM, .name = "a", .batch = 1, .m = 16384, .n = 50257, .k = 1024}, 1980e6},
        {{.kind = DL_KERNEL_ATTENTION,
          .name = "a",
          .batch = 256,
          .m = 1024,
          .n = 1024,
          .k = 64,
          .causal = true,
          .kv_share = 1},
         1823e6},
        {{.kind = DL_KERNEL_MEMORY, .name = "gelu", .elements = 2 * 268435456.0}, 1818e6},
        {{.kind = DL_KERNEL_MEMORY, .name = "copy", .elements = 2 * 268435456.0}, 1980e6},
    };
    const double highest_hz = 1980e6, tolerance = 0.1; /* watts are means of many shapes */
    open_device("h200");
    for (size_t i = 0; i < DL_COUNT(measured); i++) {
        const struct dl_draw draw = draw_of(&measured[i].kernel);
        check_close(measured[i].kernel.name, dl_power_clock(device.power, &draw, 0), measured[i].clock_hz / highest_hz,
                    tolerance);
    }
}
END_TEST

/* ---- the clock ---- */

START_TEST(at_its_clock_work_draws_the_limit_or_less_at_the_highest)
{
    gsl_rng *const rng = dl_random_new(1, "power", 0);
    uint32_t n_throttled = 0;
    open_device("h200");
    for (int i = 0; i < 1000; i++) {
        const double seconds = 1e-3 + gsl_rng_uniform(rng),
                     idle_s = gsl_rng_uniform(rng) < 0.5 ? 0 : gsl_rng_uniform(rng);
        const struct dl_draw work = {.seconds = seconds,
                                     .clock_s = seconds * gsl_rng_uniform(rng),
                                     .memory_j = device.power->memory_w * seconds * gsl_rng_uniform(rng),
                                     .arithmetic_j = 2000 * seconds * gsl_rng_uniform(rng)};
        const double clock = dl_power_clock(device.power, &work, idle_s),
                     is_w = watts(device.power, &work, idle_s, clock);
        ck_assert(clock > 0 && clock <= 1);
        if (clock < 1) check_close("watts", is_w, device.power->limit_w, 1e-9);
        ck_assert_double_le(is_w, device.power->limit_w * (1 + 1e-9));
        n_throttled += clock < 1;
    }
    ck_assert(n_throttled > 100 && n_throttled < 900);
    gsl_rng_free(rng);
}
END_TEST

/* ---- steps ---- */

/* Products alone, whose time is all of the step's and goes with the clock: idle_w + product_w c^2 is the limit. */
START_TEST(a_step_of_products_runs_at_the_clock_of_the_closed_form)
{
    static const char *const limited[] = {IDEAL_DEVICE_WITH(POWER("325", "1")), IDEAL_DEVICE_WITH(POWER("676", "1"))};
    static const double clocks[] = {0.5, 0.8};
    struct step step = {.device = IDEAL_DEVICE_WITH(POWER("1000", "1")), .workload = MLP, .head = HEAD, .stack = ""};
    struct dl_session free, t;
    open_step(&free, &step);
    ck_assert_double_eq(free.lowered.clock, 1);
    for (size_t i = 0; i < DL_COUNT(limited); i++) {
        step.device = limited[i];
        open_step(&t, &step);
        check_close("clock", t.lowered.clock, clocks[i], 1e-5);
        for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
            check_close("products", kernels_s(&t, (enum dl_item_kind)kind, "fc"),
                        kernels_s(&free, (enum dl_item_kind)kind, "fc") / t.lowered.clock, exact);
        dl_session_close(&t);
    }
    dl_session_close(&free);
}
END_TEST

/* With half the rate a product takes as many joules in twice the time; one for older devices has a power of its own. */
START_TEST(slower_products_draw_less_and_older_ones_what_the_device_says)
{
#define RULES(keys)                                                                                                    \
    "{'schema':'dlsim/software/1','source':'a test','kernels':[{'operation':'gemm','launches':1," keys "}]}"
    static const char *const rules[] = {RULES("'rate':0.5"), RULES("'older':true"), RULES("'rate':0.5,'older':true")};
    static const double shares[] = {0.5, 0.8, 0.4};
    for (size_t i = 0; i < DL_COUNT(rules); i++) {
        struct dl_session t;
        open_step(&t, &(struct step){.device = IDEAL_DEVICE_WITH(",'older_kernels_fraction':0.6" POWER("325", "1")),
                                     .software = rules[i],
                                     .workload = MLP,
                                     .head = HEAD,
                                     .stack = ""});
        check_close("clock", t.lowered.clock, sqrt(225 / (900 * shares[i])), 1e-5);
        dl_session_close(&t);
    }
}
END_TEST

/* A device that waits most of the time draws little. */
START_TEST(a_slow_host_leaves_the_highest_clock)
{
    struct dl_session t;
    open_step(&t, &(struct step){.device = IDEAL_DEVICE_WITH(POWER("325", "1")),
                                 .software = "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':1}",
                                 .workload = MLP,
                                 .head = HEAD,
                                 .stack = ""});
    ck_assert_double_eq(t.lowered.clock, 1);
    dl_session_close(&t);
}
END_TEST

START_TEST(a_device_that_does_not_tell_its_power_has_no_clock)
{
    struct dl_session t;
    open_step(&t, &(struct step){.workload = MLP, .head = HEAD, .stack = ""});
    ck_assert_double_eq(t.lowered.clock, 0);
    dl_session_close(&t);
}
END_TEST

static size_t count_instructions(const struct dl_session *t)
{
    size_t n = t->lowered.programs[0].end.n_instructions;
    for (int kind = 0; kind < DL_N_TEMPLATES; kind++) n += item(t, (enum dl_item_kind)kind)->n_instructions;
    return n;
}

/* The step is lowered again for it: strategies must not remember the first time. */
START_TEST(another_clock_changes_nothing_but_times)
{
    static const char *const stacks[] = {"{'name':'data'}", "{'name':'data'},{'name':'zero','stage':3}",
                                         "{'name':'data'},{'name':'tensor','ways':2,'overlap_chunks':2}"};
    struct step step = {
        .system = FAST_SYSTEM, .workload = FOUR_BLOCKS, .head = HEAD ",'devices':2", .stack = stacks[_i]};
    if (strstr(stacks[_i], "tensor")) step.head = HEAD ",'devices':4";
    struct dl_session plain, t;
    open_step(&plain, &step);
    step.device = IDEAL_DEVICE_WITH(POWER("325", "1"));
    open_step(&t, &step);
    ck_assert(t.lowered.clock > 0 && t.lowered.clock < 1);
    ck_assert_uint_eq(t.lowered.n_calls, plain.lowered.n_calls);
    ck_assert_uint_eq(count_instructions(&t), count_instructions(&plain));
    for (size_t i = 0; i < plain.lowered.n_calls; i++)
        ck_assert_double_eq(t.lowered.calls[i].bytes, plain.lowered.calls[i].bytes);
    dl_session_close(&plain);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("power");
    TCase *const tests = tcase_create("power");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_product_takes_what_was_timed_at_the_clock_it_was_timed_at);
    tcase_add_test(tests, what_a_kernel_costs_alone_does_not_depend_on_its_power);
    tcase_add_test(tests, kernels_alone_are_throttled_as_measured);
    tcase_add_test(tests, at_its_clock_work_draws_the_limit_or_less_at_the_highest);
    tcase_add_test(tests, a_step_of_products_runs_at_the_clock_of_the_closed_form);
    tcase_add_test(tests, slower_products_draw_less_and_older_ones_what_the_device_says);
    tcase_add_test(tests, a_slow_host_leaves_the_highest_clock);
    tcase_add_test(tests, a_device_that_does_not_tell_its_power_has_no_clock);
    tcase_add_loop_test(tests, another_clock_changes_nothing_but_times, 0, 3);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
