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

/* One that does not wait issues the forward while the device still works. */
START_TEST(a_host_may_get_its_batch_while_the_device_works)
{
    struct dl_session t;
    open_step(&t, &(struct step){.system = FAST_SYSTEM,
                                 .software = SOFTWARE(",'batch_host_s':0.25,'drains_at_batches':false"),
                                 .workload = MODEL,
                                 .head = BATCH,
                                 .stack = "{'name':'data'}"});
    const struct dl_template *const f = item(&t, DL_ITEM_F);
    for (size_t i = 0; i < f->n_instructions; i++) ck_assert_int_ne(f->instructions[i].kind, DL_DRAIN);
    check_close("host", f->instructions[0].host_s, 0.25, 1e-12);
    dl_session_close(&t);
}
END_TEST

static uint32_t count_drains(const struct dl_template *t)
{
    uint32_t n = 0;
    for (size_t i = 0; i < t->n_instructions; i++) n += t->instructions[i].kind == DL_DRAIN;
    return n;
}

/* Of the clocks of host and device, one instruction after the other. */
static double clocked_s(const struct dl_template *t)
{
    double host = 0, device = 0;
    for (size_t i = 0; i < t->n_instructions; i++) {
        const struct dl_instruction *const in = &t->instructions[i];
        host = (in->kind == DL_DRAIN ? fmax(host, device) : host) + in->host_s;
        device = fmax(host, device) + in->device_s;
    }
    return fmax(host, device);
}

/* Before and after each pass of each of two blocks; else the host is done long before the device. */
START_TEST(a_host_may_wait_at_both_ends_of_recomputed_blocks)
{
    static const char *const recompute[] = {"full", "selective"};
    static const char software[] = SOFTWARE(",'host_s_per_launch':1e-9,'drains_at_recompute':true");
    static const char at_once[] = SOFTWARE(",'host_s_per_launch':1e-9");
    for (size_t i = 0; i < DL_COUNT(recompute); i++) {
        char head[100];
        struct dl_session waits, goes_on;
        snprintf(head, sizeof head, BATCH ",'devices':1,'recompute':'%s'", recompute[i]);
        struct step step = {.system = FAST_SYSTEM, .workload = MODEL, .head = head, .stack = "", .software = software};
        open_step(&waits, &step);
        step.software = at_once;
        open_step(&goes_on, &step);
        for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
            const struct dl_template *const t = item(&waits, kind);
            ck_assert_uint_eq(count_drains(t), i == 0 ? 2 * 2 : 0);
            ck_assert_uint_eq(count_drains(item(&goes_on, kind)), 0);
            check_close("seconds", t->total.seconds, clocked_s(t), 1e-12);
            ck_assert(i == 0 ? t->total.seconds > item(&goes_on, kind)->total.seconds
                             : t->total.seconds == item(&goes_on, kind)->total.seconds);
        }
        dl_session_close(&waits);
        dl_session_close(&goes_on);
    }
}
END_TEST

/* Seconds of the device at the end of a step of the model, where nothing is exchanged. */
static double update_s(const char *software, const char *precision)
{
    struct dl_session t;
    char head[100];
    snprintf(head, sizeof head, BATCH ",'devices':1,'optimizer':'adam','precision':'%s'", precision);
    open_step(
        &t, &(struct step){.system = FAST_SYSTEM, .software = software, .workload = MODEL, .head = head, .stack = ""});
    const struct dl_template *const end = &t.lowered.programs[0].end;
    double sum = 0;
    for (size_t i = 0; i < end->n_instructions; i++) sum += end->instructions[i].device_s;
    dl_session_close(&t);
    return sum;
}

/* Of a block four products with a bias each and two norms of two vectors; two tables and the last norm. */
START_TEST(an_update_takes_the_device_for_each_tensor)
{
    const double n_tensors = 2 * (4 * 2 + 2 * 2) + 2 + 2;
    const double without = update_s(SOFTWARE(",'kernels':[{'operation':'adam','launches':1}]"), "fp32"),
                 with = update_s(SOFTWARE(",'kernels':[{'operation':'adam','launches':1,'tensor_s':0.5}]"), "fp32");
    check_close("update", with, without + 0.5 * n_tensors, 1e-12);
}
END_TEST

/* Adam reads gradient, parameter and two moments in fp32 and writes all but the first; a copy in bf16 is written too
 * where there is one. */
START_TEST(an_update_writes_the_copies_that_persist)
{
    const double fp32_bytes = 7 * 4, copy_bytes = 2;
    const double kept = update_s(SOFTWARE(""), "bf16"), cast = update_s(SOFTWARE(",'copies_persist':false"), "bf16");
    check_close("bytes", kept / cast, (fp32_bytes + copy_bytes) / fp32_bytes, 1e-9);
    check_close("as fp32", cast, update_s(SOFTWARE(""), "fp32"), 1e-9);
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

/* However little they do, so many kernels follow each other no faster than the device takes them. */
START_TEST(kernels_of_a_rule_take_the_device_that_often)
{
    static const char device[] = "{'schema':'dlsim/device/1','source':'a test','model':'roofline','peak_flop_per_s':"
                                 "{'fp32':1e15,'fp16':1e15,'bf16':1e15},'memory_bytes':1e18,'memory_bytes_per_s':1e18,"
                                 "'launch_s':1e-3,'figures':{'compute_fraction':1,'bandwidth_fraction':1}}";
    static const char software[] = SOFTWARE(",'kernels':[{'operation':'layernorm','pass':'forward','launches':40}]");
    const double launch_s = 1e-3, one = 1, many = 40;
    struct dl_session t;
    open_step(&t, &(struct step){.system = FAST_SYSTEM,
                                 .device = device,
                                 .software = software,
                                 .workload = MODEL,
                                 .head = BATCH,
                                 .stack = "{'name':'data'}"});
    const struct dl_template *const f = item(&t, DL_ITEM_F);
    for (size_t i = 0; i < f->n_instructions; i++) {
        const bool meant = strncmp(f->instructions[i].name, "norm", strlen("norm")) == 0;
        if (meant) check_close("by a rule", f->instructions[i].device_s, many * launch_s, 1e-12);
        if (strcmp(f->instructions[i].name, "residual") == 0)
            check_close("without", f->instructions[i].device_s, one * launch_s, 1e-12);
    }
    dl_session_close(&t);
}
END_TEST

/* On a device for which it was not written. */
START_TEST(an_older_kernel_is_slower_on_a_newer_device)
{
    struct dl_session own, older;
    struct step step = {.system = FAST_SYSTEM, .workload = MODEL, .head = BATCH, .stack = "{'name':'data'}"};
    step.software = SOFTWARE("");
    open_step(&own, &step);
    step.software = SOFTWARE(",'kernels':[{'operation':'attention','launches':1,'rate':0.5,'older':true}]");
    step.device = IDEAL_DEVICE_WITH(",'older_kernels_fraction':0.8");
    open_step(&older, &step);
    check_close("attention", kernels_s(&older, DL_ITEM_F, "attention"), kernels_s(&own, DL_ITEM_F, "attention") / 0.4,
                1e-12);
    check_close("fc1", kernels_s(&older, DL_ITEM_F, "fc1"), kernels_s(&own, DL_ITEM_F, "fc1"), 1e-12);
    dl_session_close(&own);
    dl_session_close(&older);
}
END_TEST

/* Each tensor rank has two heads of four samples, or one of three: the softmax knows of both. */
START_TEST(matrices_of_scores_are_divided_with_the_heads)
{
    static const struct {
        const char *head, *stack;
        double launches;
    } cases[] = {{"'global_batch':4,'microbatch':4,'devices':8", "{'name':'tensor','ways':8}", 1},
                 {"'global_batch':3,'microbatch':3,'devices':8", "{'name':'tensor','ways':8}", 5},
                 {"'global_batch':3,'microbatch':3,'devices':4", "{'name':'tensor','ways':4}", 1},
                 {"'global_batch':3,'microbatch':3,'devices':16", "{'name':'tensor','ways':16}", 5}};
    const double host_s = 0.5;
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        struct dl_session t;
        open_step(&t, &(struct step){.system = FAST_SYSTEM,
                                     .software = "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':"
                                                 "0.5,'attention':'unfused','kernels':[{'operation':'softmax',"
                                                 "'unless_multiple_of':4,'launches':5}]}",
                                     .workload = MODEL,
                                     .head = cases[i].head,
                                     .stack = cases[i].stack});
        const struct dl_template *const f = item(&t, DL_ITEM_F);
        for (size_t k = 0; k < f->n_instructions; k++)
            if (strcmp(f->instructions[k].name, "softmax") == 0)
                ck_assert_double_eq(f->instructions[k].host_s, host_s * cases[i].launches);
        dl_session_close(&t);
    }
}
END_TEST

static uint32_t gathers_before_the_first_wait(const struct dl_template *f)
{
    uint32_t n = 0;
    for (size_t i = 0; i < f->n_instructions && f->instructions[i].kind != DL_WAIT; i++)
        n += f->instructions[i].kind == DL_START;
    return n;
}

/* How far it looks ahead is the software's, unless the strategy says it. */
START_TEST(gathers_go_as_far_ahead_as_the_software_does)
{
    static const struct {
        const char *software, *zero;
        uint32_t ahead;
    } cases[] = {{SOFTWARE(""), "'stage':3", 1},
                 {SOFTWARE(",'gathers_ahead':0"), "'stage':3", 0},
                 {SOFTWARE(",'gathers_ahead':2"), "'stage':3", 2},
                 {SOFTWARE(",'gathers_ahead':0"), "'stage':3,'prefetch':1", 1},
                 {SOFTWARE(""), "'stage':3,'prefetch':0", 0}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        struct dl_session t;
        char stack[100];
        snprintf(stack, sizeof stack, "{'name':'data'},{'name':'zero',%s}", cases[i].zero);
        open_step(&t, &(struct step){.workload = MODEL,
                                     .software = cases[i].software,
                                     .head = "'global_batch':16,'microbatch':8,'devices':2",
                                     .stack = stack});
        ck_assert_uint_eq(gathers_before_the_first_wait(item(&t, DL_ITEM_F)), cases[i].ahead + 1);
        dl_session_close(&t);
    }
}
END_TEST

/* Seconds of the product that makes the logits of so many words. */
static double logits_s(const char *software, int vocab)
{
    struct dl_session t;
    char workload[300];
    double seconds = 0;
    snprintf(workload, sizeof workload,
             "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':1,'hidden':64,'heads':16,"
             "'seq':32,'vocab':%d}",
             vocab);
    open_step(&t, &(struct step){.system = FAST_SYSTEM,
                                 .software = software,
                                 .workload = workload,
                                 .head = BATCH,
                                 .stack = "{'name':'data'}"});
    const struct dl_template *const f = item(&t, DL_ITEM_F);
    for (size_t i = 0; i < f->n_instructions; i++)
        if (strcmp(f->instructions[i].name, "logits") == 0) seconds += f->instructions[i].device_s;
    dl_session_close(&t);
    return seconds;
}

/* Padded if that is faster, which it is not on a device without tiles. */
START_TEST(products_may_be_padded)
{
    const char *const padding = SOFTWARE(",'pads_products_to':64"), *const plain = SOFTWARE("");
    ck_assert_double_eq(logits_s(padding, 513), fmin(logits_s(plain, 513), logits_s(plain, 576)));
    ck_assert_double_eq(logits_s(padding, 512), logits_s(plain, 512));
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("software");
    tcase_add_test(tests, a_batch_is_got_before_each_forward);
    tcase_add_test(tests, a_host_may_get_its_batch_while_the_device_works);
    tcase_add_test(tests, a_host_may_wait_at_both_ends_of_recomputed_blocks);
    tcase_add_test(tests, an_update_takes_the_device_for_each_tensor);
    tcase_add_test(tests, an_update_writes_the_copies_that_persist);
    tcase_add_test(tests, a_rule_makes_a_kernel_slower);
    tcase_add_test(tests, kernels_of_a_rule_take_the_device_that_often);
    tcase_add_test(tests, an_older_kernel_is_slower_on_a_newer_device);
    tcase_add_test(tests, matrices_of_scores_are_divided_with_the_heads);
    tcase_add_test(tests, products_may_be_padded);
    tcase_add_test(tests, gathers_go_as_far_ahead_as_the_software_does);
    Suite *const suite = suite_create("software");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
