/* payload.c - bytes on the wire of lossy payloads, and what the command line may say of them. */
#include <check.h>
#include <math.h>

#include "sim/collective/payload.h"
#include "tests/unit/suite.h"

static const double dense_bytes = 4 * 1024 * 1024;

static struct dl_payload parsed(const char *text)
{
    struct dl_payload payload;
    struct dl_error err = {0};
    ck_assert_msg(dl_payload_parse(text, &payload, &err) == DL_OK, "%s", err.text);
    return payload;
}

START_TEST(dense_stays_as_it_is)
{
    const struct dl_payload dense = parsed("dense");
    ck_assert(!dl_payload_is_packed(&dense));
    ck_assert_double_eq(dl_payload_bytes(&dense, dense_bytes, 7), dense_bytes);
}
END_TEST

START_TEST(quantized_sends_bits_and_scales)
{
    for (int bits = 1; bits <= 32; bits *= 2) {
        const struct dl_payload q = {.kind = DL_QUANTIZED, .bits = bits};
        const double n_values = dense_bytes / 4, bucket_bits = 512.0 * bits + 32;
        ck_assert(dl_payload_is_packed(&q));
        ck_assert_double_eq_tol(dl_payload_bytes(&q, dense_bytes, 1), n_values / 512 * bucket_bits / 8, 1e-6);
        ck_assert_double_eq(dl_payload_bytes(&q, dense_bytes, 9), dl_payload_bytes(&q, dense_bytes, 1));
    }
}
END_TEST

START_TEST(sparse_union_grows_by_inclusion_and_exclusion)
{
    const struct dl_payload sparse = parsed("topk:0.01");
    const double p = 0.01, n_values = dense_bytes / 4;
    ck_assert_double_eq_tol(dl_payload_bytes(&sparse, dense_bytes, 1), n_values * p * 8, 1e-6);
    ck_assert_double_eq_tol(dl_payload_bytes(&sparse, dense_bytes, 2), n_values * (2 * p - p * p) * 8, 1e-6);
    const double three = 3 * p - 3 * p * p + p * p * p;
    ck_assert_double_eq_tol(dl_payload_bytes(&sparse, dense_bytes, 3), n_values * three * 8, 1e-6);
}
END_TEST

START_TEST(sparse_turns_dense_when_that_is_smaller)
{
    const struct dl_payload sparse = parsed("topk:0.01");
    double before = 0;
    for (uint32_t merged = 1; merged <= 1024; merged++) {
        const double now = dl_payload_bytes(&sparse, dense_bytes, merged);
        ck_assert(now >= before && now <= dense_bytes);
        /* A value and its index take twice a value's bytes: dense wins from one half of the values on. */
        ck_assert_int_eq(now == dense_bytes, 1 - pow(0.99, merged) >= 0.5);
        before = now;
    }
    const struct dl_payload all = parsed("topk:1");
    ck_assert_double_eq(dl_payload_bytes(&all, dense_bytes, 1), dense_bytes);
}
END_TEST

static const struct {
    const char *text, *message;
} bad[] = {
    {"", "--payload: must be dense, quantized:BITS or topk:RATIO, got ''"},
    {"Dense", "--payload: must be dense, quantized:BITS or topk:RATIO, got 'Dense'"},
    {"quantized", "--payload: must be dense, quantized:BITS or topk:RATIO, got 'quantized'"},
    {"quantized:", "--payload: the bits of quantized:BITS must be a number, got ''"},
    {"quantized:4x", "--payload: the bits of quantized:BITS must be a number, got '4x'"},
    {"quantized:0", "--payload: quantized:BITS needs a whole number from 1 to 32, got '0'"},
    {"quantized:33", "--payload: quantized:BITS needs a whole number from 1 to 32, got '33'"},
    {"quantized:1.5", "--payload: quantized:BITS needs a whole number from 1 to 32, got '1.5'"},
    {"quantized:nan", "--payload: quantized:BITS needs a whole number from 1 to 32, got 'nan'"},
    {"topk:0", "--payload: topk:RATIO needs a ratio above 0 and at most 1, got '0'"},
    {"topk:-1", "--payload: topk:RATIO needs a ratio above 0 and at most 1, got '-1'"},
    {"topk:1.01", "--payload: topk:RATIO needs a ratio above 0 and at most 1, got '1.01'"},
    {"topk:nan", "--payload: topk:RATIO needs a ratio above 0 and at most 1, got 'nan'"},
    {"topk:inf", "--payload: topk:RATIO needs a ratio above 0 and at most 1, got 'inf'"},
};

START_TEST(bad_payloads_are_told_what_is_right)
{
    struct dl_payload payload;
    struct dl_error err = {0};
    ck_assert_int_ne(dl_payload_parse(bad[_i].text, &payload, &err), DL_OK);
    ck_assert_str_eq(err.text, bad[_i].message);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("payload");
    TCase *const all = tcase_create("payload");
    tcase_add_test(all, dense_stays_as_it_is);
    tcase_add_test(all, quantized_sends_bits_and_scales);
    tcase_add_test(all, sparse_union_grows_by_inclusion_and_exclusion);
    tcase_add_test(all, sparse_turns_dense_when_that_is_smaller);
    tcase_add_loop_test(all, bad_payloads_are_told_what_is_right, 0, DL_COUNT(bad));
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
