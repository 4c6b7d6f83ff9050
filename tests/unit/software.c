/* software.c - what a framework does with a step: how it gets its batches, and with which libraries it computes. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"

#define MODEL                                                                                                          \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':16,'seq':32,"  \
    "'vocab':512}"
#define BATCH "'global_batch':8,'microbatch':8"
#define SOFTWARE(keys)                                                                                                 \
    "{'schema':'dlsim/software/1','source':'a test','collective_host_s':0,'gradient_bytes':4,'attention':'flash'" keys \
    "}"

/* The host waits for the device, gets a batch, and only then launches the forward. */
START_TEST(a_batch_is_got_before_each_forward)
{
    struct dl_session at_once, gets;
    struct step step = {.system = FAST_SYSTEM, .workload = MODEL, .head = BATCH, .stack = "{'name':'data'}"};
    step.software = SOFTWARE("");
    open_step(&at_once, &step);
    step.software = SOFTWARE(",'batch_host_s':0.25");
    open_step(&gets, &step);
    check_close("seconds", item(&gets, DL_ITEM_F)->total.seconds, item(&at_once, DL_ITEM_F)->total.seconds + 0.25,
                1e-9);
    check_close("host", cause_s(&gets, DL_ITEM_F, DL_CAUSE_HOST), 0.25, 1e-9);
    ck_assert_int_eq(item(&gets, DL_ITEM_F)->instructions[0].kind, DL_DRAIN);
    check_close("backward", item(&gets, DL_ITEM_B)->total.seconds, item(&at_once, DL_ITEM_B)->total.seconds, 1e-12);
    dl_session_close(&at_once);
    dl_session_close(&gets);
}
END_TEST

/* An older library: attention at half its rate takes twice as long, and nothing else changes. */
START_TEST(a_rule_makes_a_kernel_slower)
{
    struct dl_session fast, slow;
    struct step step = {.system = FAST_SYSTEM, .workload = MODEL, .head = BATCH, .stack = "{'name':'data'}"};
    step.software = SOFTWARE("");
    open_step(&fast, &step);
    step.software = SOFTWARE(",'kernels':[{'operation':'attention','launches':1,'rate':0.5}]");
    open_step(&slow, &step);
    const struct dl_template *const a = item(&fast, DL_ITEM_F), *const b = item(&slow, DL_ITEM_F);
    ck_assert_uint_eq(a->n_instructions, b->n_instructions);
    for (size_t i = 0; i < a->n_instructions; i++) {
        const double factor = strcmp(a->instructions[i].name, "attention") == 0 ? 2 : 1;
        check_close(a->instructions[i].name, b->instructions[i].device_s, factor * a->instructions[i].device_s, 1e-12);
    }
    dl_session_close(&fast);
    dl_session_close(&slow);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("software");
    tcase_add_test(tests, a_batch_is_got_before_each_forward);
    tcase_add_test(tests, a_rule_makes_a_kernel_slower);
    Suite *const suite = suite_create("software");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
