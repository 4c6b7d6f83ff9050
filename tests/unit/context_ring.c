/* context_ring.c - a block's attention over context ways, against PyTorch's ring on an H200, whose processes send
 * nothing (validation/measured/context_ring.json). */
#include "tests/unit/divided_step.h"
#include "tests/unit/measured_steps.h"

enum { WAYS, RANK, KEYS, BALANCED, FORWARD, BACKWARD };
static const int tokens = 32768;

/* The mean of ranks is what is priced where they differ. */
static bool is_priced(const json_t *row)
{
    return json_is_true(json_array_get(row, BALANCED)) && strcmp(text(row, KEYS), "alltoall") != 0;
}

static double seconds(const struct dl_session *t, enum dl_item_kind kind)
{
    return kernels_s(t, kind, "attention") + kernels_s(t, kind, "merge");
}

static void check(const json_t *row)
{
    const int ways = (int)number(row, WAYS);
    const double most_error = ways > 1 ? 0.06 : 0.09;
    char workload[300], stack[100];
    struct dl_session t;
    snprintf(workload, sizeof workload,
             "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':1,'hidden':4096,'heads':32,"
             "'seq':%d,'vocab':512,'dropout':false}",
             ways * tokens);
    snprintf(stack, sizeof stack, "{'name':'context','ways':%d,'zigzag':true},{'name':'data'}", ways);
    open_step(&t, &(struct step){.system = FAST_SYSTEM,
                                 .device = "h200",
                                 .software = "torchtitan-2024",
                                 .workload = workload,
                                 .head = "'global_batch':1,'microbatch':1,'precision':'bf16'",
                                 .stack = stack});
    check_close("forward", seconds(&t, DL_ITEM_F), number(row, FORWARD), most_error);
    check_close("backward", seconds(&t, DL_ITEM_B), number(row, BACKWARD), most_error);
    dl_session_close(&t);
}

START_TEST(a_ring_takes_as_long_as_pytorchs)
{
    const json_t *row;
    size_t i, n_checked = 0;
    open_measured_file("context_ring");
    json_array_foreach(json_object_get(measured.value, "rows"), i, row) if (is_priced(row))
    {
        check(row);
        n_checked++;
    }
    ck_assert_uint_eq(n_checked, 6);
    close_measured();
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("context_ring");
    tcase_add_test(tests, a_ring_takes_as_long_as_pytorchs);
    Suite *const suite = suite_create("context_ring");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
