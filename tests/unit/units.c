/* units.c - numbers for people. */
#include "sim/report/units.h"

#include "sim/core/error.h"
#include "tests/unit/suite.h"

static const struct {
    char *(*format)(double x, char text[DL_QUANTITY]);
    double x;
    const char *text;
} cases[] = {
    {dl_format_seconds, 0, "0 ns"},
    {dl_format_seconds, 1e-15, "0 ns"},
    {dl_format_seconds, -1e-15, "0 ns"},
    {dl_format_seconds, 0.006e-9, "0.01 ns"},
    {dl_format_seconds, 1.234e-9, "1.23 ns"},
    {dl_format_seconds, 12.34e-6, "12.3 us"},
    {dl_format_seconds, 0.9994, "999 ms"},
    {dl_format_seconds, 0.9996, "1.00 s"},
    {dl_format_seconds, 1294, "1294 s"},
    {dl_format_duration, 119, "119 s"},
    {dl_format_duration, 900, "15.0 min"},
    {dl_format_duration, 11134.8, "3.09 hours"},
    {dl_format_duration, 36 * 3600, "36.0 hours"},
    {dl_format_duration, 103.41 * 86400, "103.4 days"},
    {dl_format_bytes, 999.4, "999 B"},
    {dl_format_bytes, 6.4e3, "6.40 kB"},
    {dl_format_bytes, 33.3e9, "33.3 GB"},
    {dl_format_parameters, 124439808, "124 M"},
    {dl_format_parameters, 174.6e9, "175 B"},
    {dl_format_parameters, 1.008e12, "1.01 T"},
    {dl_format_rate, 96.5e9, "96.5 GB/s"},
    {dl_format_flop, 1.5e6, "1.50 MFLOP"},
    {dl_format_flop, 314e21, "314 ZFLOP"},
    {dl_format_flop_rate, 61.2e12, "61.2 TFLOP/s"},
    {dl_format_flop_rate, 1.4e18, "1.40 EFLOP/s"},
    {dl_format_watts, 612.3, "612 W"},
    {dl_format_watts, 7046, "7.05 kW"},
    {dl_format_energy, 3.6e6, "1.00 kWh"},
    {dl_format_energy, 1287 * 3.6e9, "1.29 GWh"},
    {dl_format_energy, 200, "200 J"},
    {dl_format_mass, 552e6, "552 t"},
    {dl_format_mass, 10906e6, "10.9 kt"},
    {dl_format_mass, 1, "1.00 g"},
    {dl_format_count, 8, "8"},
    {dl_format_count, 999, "999"},
    {dl_format_count, 8388608, "8,388,608"},
    {dl_format_number, 0.01234, "0.0123"},
    {dl_format_number, 36.84, "36.8"},
    {dl_format_number, 999.4, "999"},
    {dl_format_number, 999.6, "1,000"},
    {dl_format_number, 4608.4, "4,608"},
    {dl_format_number, 1.25e6, "1,250,000"},
};

START_TEST(three_figures_count)
{
    char text[DL_QUANTITY];
    ck_assert_str_eq(cases[_i].format(cases[_i].x, text), cases[_i].text);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("units");
    TCase *const tests = tcase_create("units");
    tcase_add_loop_test(tests, three_figures_count, 0, (int)DL_COUNT(cases));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
