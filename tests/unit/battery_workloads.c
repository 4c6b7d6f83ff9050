/* battery_workloads.c - every kind of workload on every model of devices: parameters and flop by closed forms, alone
 * and in two replicas, by both engines. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/battery.h"
#include "tests/unit/workload_examples.h"

static const double exactly = 1e-9;

enum { n_kinds = DL_COUNT(kinds), n_models = DL_COUNT(models), n_pairs = n_kinds * n_models };

START_TEST(every_kind_of_workload_has_an_example)
{
    const char *const name = dl_workload_get((size_t)_i)->name;
    size_t n = 0;
    for (size_t i = 0; i < n_kinds; i++) n += strcmp(kinds[i].kind, name) == 0;
    ck_assert_msg(n > 0, "workload %s has no example in tests/unit/workload_examples.h", name);
}
END_TEST

START_TEST(every_model_of_devices_has_an_example)
{
    const char *const name = dl_device_model_get((size_t)_i)->name;
    size_t n = 0;
    for (size_t i = 0; i < n_models; i++) n += strcmp(models[i].model, name) == 0;
    ck_assert_msg(n > 0, "device model %s has no example in tests/unit/workload_examples.h", name);
}
END_TEST

/* ---- what must hold ---- */

static void open_pair(struct dl_session *t, int pair, uint32_t replicas, uint32_t samples)
{
    char head[200];
    snprintf(head, sizeof head, "'devices':%u,'global_batch':%u,'microbatch':%u,'precision':'%s'", replicas,
             replicas * samples, samples, models[pair % n_models].precision);
    const struct training_inputs in = {.system = IDEAL_SYSTEM("1e10", "1e-6"),
                                       .device = models[pair % n_models].device,
                                       .software = PLAIN_SOFTWARE,
                                       .workload = kinds[pair / n_models].text};
    ck_assert_msg(!training_open_stack(t, in, head, "{'name':'data'}"), "%s", t->err.text);
    ck_assert_str_eq(t->device.model->name, models[pair % n_models].model);
}

/* By both engines, which agree; leaves the report of the step. */
static struct dl_training_result check_step(struct dl_session *t)
{
    const struct dl_training_result all = simulated(t, t->model.name), alone = estimated(t, t->model.name);
    check_close("engines", alone.step_s, all.step_s, exactly);
    check_causes(&all, t->model.name);
    check_memory(t, t->model.name);
    return all;
}

START_TEST(a_model_has_its_parameters_and_flop)
{
    struct dl_session t;
    open_pair(&t, _i, 1, 4);
    const struct counts c = kinds[_i / n_models].counts(t.workload_doc.value);
    const double flop = 4 * (3 * c.forward_flop - c.not_needed),
                 peak = t.device.peak_flop_per_s[t.job.setting.precision];
    check_close("parameters", dl_model_parameters(&t.model), c.parameters, exactly);
    check_close("flop of the model", t.lowered.model_flop[DL_FLOP_FULL], flop, exactly);
    ck_assert_double_ge(check_step(&t).step_s, flop / peak * (1 - exactly));
    check_close("flop spent", spent_flop(&t, DL_FLOP_FULL), flop, exactly);
    dl_session_close(&t);
}
END_TEST

START_TEST(replicas_do_as_much_each)
{
    struct dl_session one, two;
    open_pair(&one, _i, 1, 4);
    open_pair(&two, _i, 2, 4);
    check_step(&two);
    estimated(&one, "one device");
    check_close("flop", spent_flop(&two, DL_FLOP_FULL), 2 * spent_flop(&one, DL_FLOP_FULL), exactly);
    check_close("parameters", held_bytes(&two).parameters, 2 * held_bytes(&one).parameters, exactly);
    dl_session_close(&one);
    dl_session_close(&two);
}
END_TEST

START_TEST(more_samples_take_longer_and_need_more)
{
    struct dl_session few, many;
    open_pair(&few, _i, 1, 4);
    open_pair(&many, _i, 1, 16);
    ck_assert_double_ge(estimated(&many, "16 samples").step_s, estimated(&few, "4 samples").step_s);
    ck_assert_double_ge(fullest_bytes(&many), fullest_bytes(&few));
    check_close("states", held_bytes(&many).states, held_bytes(&few).states, exactly);
    dl_session_close(&few);
    dl_session_close(&many);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("every kind");
    tcase_add_loop_test(tests, every_kind_of_workload_has_an_example, 0, (int)dl_workload_count());
    tcase_add_loop_test(tests, every_model_of_devices_has_an_example, 0, (int)dl_device_model_count());
    tcase_add_loop_test(tests, a_model_has_its_parameters_and_flop, 0, n_pairs);
    tcase_add_loop_test(tests, replicas_do_as_much_each, 0, n_pairs);
    tcase_add_loop_test(tests, more_samples_take_longer_and_need_more, 0, n_pairs);
    Suite *const suite = suite_create("battery_workloads");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
