/* kernels_numbers.c - the formats of numbers that tensors are kept in. */
#include <check.h>
#include <math.h>

#include "kernels/numbers.h"
#include "tests/unit/suite.h"

static double stored(double x, enum dl_float f, uint32_t *bits)
{
    uint32_t memory = 0;
    dl_store_put(&memory, 0, x, DL_STORE_DATA, f);
    if (bits) *bits = memory;
    return dl_store_get(&memory, 0, DL_STORE_DATA, f);
}

static const struct {
    enum dl_float f;
    double x, kept;
    uint32_t bits;
} known[] = {
    {DL_FLOAT_FP32, 0.1, 0x1.99999ap-4, 0x3dcccccd},
    {DL_FLOAT_BF16, 1, 1, 0x3f80},
    {DL_FLOAT_BF16, -2.5, -2.5, 0xc020},
    {DL_FLOAT_BF16, 1 + 1.0 / 256, 1, 0x3f80}, /* a tie: to even */
    {DL_FLOAT_BF16, 1 + 3.0 / 256, 1 + 1.0 / 64, 0x3f82},
    {DL_FLOAT_FP16, 1, 1, 0x3c00},
    {DL_FLOAT_FP16, 65504, 65504, 0x7bff},
    {DL_FLOAT_FP16, 1e6, 65504, 0x7bff},
    {DL_FLOAT_FP16, 0x1p-24, 0x1p-24, 0x0001},
    {DL_FLOAT_FP16, 2047.9, 2048, 0x6800},
    {DL_FLOAT_FP8, 1, 1, 0x38},
    {DL_FLOAT_FP8, 448, 448, 0x7e},
    {DL_FLOAT_FP8, 1000, 448, 0x7e},
    {DL_FLOAT_FP8, -0x1p-9, -0x1p-9, 0x81},
    {DL_FLOAT_FP8, 0, 0, 0},
};

START_TEST(known_codes)
{
    uint32_t bits;
    ck_assert_double_eq(stored(known[_i].x, known[_i].f, &bits), known[_i].kept);
    ck_assert_uint_eq(bits, known[_i].bits);
}
END_TEST

START_TEST(the_least_number_has_the_first_code)
{
    uint32_t bits;
    ck_assert_double_eq(stored(dl_float_least((enum dl_float)_i), (enum dl_float)_i, &bits),
                        dl_float_least((enum dl_float)_i));
    ck_assert_uint_eq(bits, 1);
}
END_TEST

/* Every code of a small format is the code of its own value. */
START_TEST(codes_survive)
{
    const enum dl_float formats[] = {DL_FLOAT_BF16, DL_FLOAT_FP16, DL_FLOAT_FP8};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        for (uint32_t code = 0; code < 1u << (8 * dl_float_bytes(formats[i])); code++) {
            uint32_t bits;
            const double x = dl_store_get(&code, 0, DL_STORE_DATA, formats[i]);
            if (isnan(x)) continue; /* infinities count as such: no kernel here may give one */
            stored(x, formats[i], &bits);
            ck_assert_uint_eq(bits, code);
        }
}
END_TEST

/* Rounding goes to a nearest: no neighbour is nearer. */
START_TEST(rounding_is_to_nearest)
{
    const enum dl_float formats[] = {DL_FLOAT_BF16, DL_FLOAT_FP16, DL_FLOAT_FP8};
    for (uint64_t i = 0; i < 3000; i++) {
        const enum dl_float f = formats[i % 3];
        const double x = ldexp((double)dl_chance(i), (int)(i % 12) - 6);
        uint32_t bits;
        const double error = fabs(stored(x, f, &bits) - x);
        const uint32_t above = bits + 1, below = bits ? bits - 1 : 0;
        ck_assert(error <= fabs(dl_store_get(&above, 0, DL_STORE_DATA, f) - x));
        ck_assert(error <= fabs(dl_store_get(&below, 0, DL_STORE_DATA, f) - x));
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("kernels");
    TCase *const all = tcase_create("numbers");
    tcase_add_loop_test(all, known_codes, 0, sizeof known / sizeof *known);
    tcase_add_loop_test(all, the_least_number_has_the_first_code, 0, DL_N_FLOATS);
    tcase_add_test(all, codes_survive);
    tcase_add_test(all, rounding_is_to_nearest);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
