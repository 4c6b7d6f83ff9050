/* campaign.c - whole training runs: steps, time and device hours follow from what is trained on. */
#include "sim/campaign/campaign.h"

#include <math.h>

#include "tests/unit/suite.h"

static const struct dl_campaign_step step = {
    .seconds = 2.5, .n_devices = 64, .samples = 1536, .tokens_per_sample = 2048};

static struct dl_campaign of(struct dl_amount amount)
{
    struct dl_error err = {0};
    ck_assert_int_eq(dl_amount_check(&amount, step.tokens_per_sample, &err), DL_OK);
    return dl_campaign_of(&amount, &step);
}

START_TEST(a_run_is_as_long_however_it_is_said)
{
    const double samples = 1e6;
    const struct dl_campaign runs[] = {of((struct dl_amount){.samples = samples}),
                                       of((struct dl_amount){.tokens = samples * step.tokens_per_sample}),
                                       of((struct dl_amount){.epochs = 4, .dataset = samples / 4})};
    for (size_t i = 0; i < DL_COUNT(runs); i++) {
        ck_assert_double_eq(runs[i].samples, samples);
        ck_assert_double_eq(runs[i].n_steps, ceil(samples / step.samples));
        ck_assert_double_eq(runs[i].tokens, samples * step.tokens_per_sample);
    }
}
END_TEST

START_TEST(time_and_device_time_grow_with_the_steps)
{
    for (double n = 1; n < 1e7; n *= 3) {
        const struct dl_campaign c = of((struct dl_amount){.samples = n * step.samples});
        ck_assert_double_eq(c.n_steps, n);
        ck_assert_double_eq(c.seconds, n * step.seconds);
        ck_assert_double_eq(c.device_s, n * step.seconds * step.n_devices);
    }
}
END_TEST

START_TEST(a_last_step_that_is_not_full_is_a_step)
{
    ck_assert_double_eq(of((struct dl_amount){.samples = step.samples + 1}).n_steps, 2);
    ck_assert_double_eq(of((struct dl_amount){.tokens = 1}).n_steps, 1);
}
END_TEST

START_TEST(nothing_is_given_unless_something_is)
{
    ck_assert(!dl_amount_is_given(&(struct dl_amount){0}));
    ck_assert(dl_amount_is_given(&(struct dl_amount){.tokens = 1}));
    ck_assert(dl_amount_is_given(&(struct dl_amount){.samples = 1}));
    ck_assert(dl_amount_is_given(&(struct dl_amount){.epochs = 1}));
    ck_assert(dl_amount_is_given(&(struct dl_amount){.dataset = 1}));
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("campaign");
    TCase *const tests = tcase_create("campaign");
    tcase_add_test(tests, a_run_is_as_long_however_it_is_said);
    tcase_add_test(tests, time_and_device_time_grow_with_the_steps);
    tcase_add_test(tests, a_last_step_that_is_not_full_is_a_step);
    tcase_add_test(tests, nothing_is_given_unless_something_is);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
