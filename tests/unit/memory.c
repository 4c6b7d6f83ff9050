/* memory.c - blocks of all sizes are zero at first, and keep what is in them as they grow. */
#include "sim/core/memory.h"

#include <check.h>
#include <stdint.h>

#include "sim/core/error.h"
#include "tests/unit/suite.h"

enum { large_page = 2 << 20 };

static const size_t sizes[] = {1, 4096, large_page - 1, large_page, 2 * large_page, 5 * large_page + 3};

START_TEST(dense_tables_are_zero)
{
    unsigned char *const block = dl_alloc_dense(sizes[_i]);
    size_t n_wrong = 0; /* an assertion for each of millions takes minutes */
    for (size_t i = 0; i < sizes[_i]; i++) n_wrong += block[i] != 0;
    for (size_t i = 0; i < sizes[_i]; i++) block[i] = (unsigned char)(i * 7);
    for (size_t i = 0; i < sizes[_i]; i++) n_wrong += block[i] != (unsigned char)(i * 7);
    ck_assert_uint_eq(n_wrong, 0);
    dl_free(block);
}
END_TEST

/* Through the sizes at which its pages change. */
START_TEST(growing_arrays_keep_their_elements)
{
    uint32_t *list = NULL;
    size_t n = 0, capacity = 0, n_wrong = 0;
    while (n < 4 * large_page / sizeof *list) {
        DL_GROW(list, n, capacity);
        list[n] = (uint32_t)(3 * n);
        n++;
    }
    for (size_t i = 0; i < n; i++) n_wrong += list[i] != 3 * i;
    ck_assert_uint_eq(n_wrong, 0);
    dl_free(list);
}
END_TEST

int main(void)
{
    Suite *const s = suite_create("memory");
    TCase *const tests = tcase_create("memory");
    tcase_add_loop_test(tests, dense_tables_are_zero, 0, (int)DL_COUNT(sizes));
    tcase_add_test(tests, growing_arrays_keep_their_elements);
    suite_add_tcase(s, tests);
    return run_suite(s);
}
