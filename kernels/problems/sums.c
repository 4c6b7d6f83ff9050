/* sums.c - what references of products share. */
#include "kernels/problems/problems.h"

void dl_add_forward(double *const *t, int64_t x, int64_t w, int64_t y) { t[2][y] += t[0][x] * t[1][w]; }
void dl_add_input(double *const *t, int64_t x, int64_t w, int64_t y) { t[2][x] += t[0][y] * t[1][w]; }
void dl_add_weight(double *const *t, int64_t x, int64_t w, int64_t y) { t[2][w] += t[0][x] * t[1][y]; }

void dl_clear(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = 0;
}
