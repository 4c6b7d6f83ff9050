/* kernels_gradients.c - the references of backward passes are the derivatives of those of forward passes.
 *
 * A backward problem (but for those of gemm, whose dimensions are of the product) takes "dy" and gives "dNAME" for the
 * tensors NAME of its forward problem, which has the same dimensions. Then dNAME[i] is the slope of sum(dy y) over
 * NAME[i], which differences tell as well. */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/harness.h"
#include "tests/unit/suite.h"

/* All tensors of a problem as doubles. */
struct tensors {
    const struct dl_problem *problem;
    int64_t dim[DL_MAX_DIMS];
    double *data[DL_MAX_TENSORS];
};

static size_t count(const struct tensors *t, size_t i) { return dl_tensor_count(t->problem, i, t->dim); }

static int find(const struct dl_problem *p, const char *name)
{
    for (size_t i = 0; i < p->n_tensors; i++)
        if (strcmp(p->tensors[i].name, name) == 0) return (int)i;
    return -1;
}

static double filled(const struct tensors *t, size_t tensor, size_t i)
{
    const struct dl_tensor_spec *const s = &t->problem->tensors[tensor];
    const double chance = (double)dl_chance(((uint64_t)tensor + 1) << 32 | i);
    if (s->fill == DL_FILL_MASK) return dl_kept(i);
    if (s->fill == DL_FILL_BELOW) /* the last dimension in all problems here, but for the middle one of embedding */
        return floor(chance * (double)t->dim[1]);
    return s->fill == DL_FILL_POSITIVE ? 0.5 + chance : 2 * chance - 1;
}

static void make(struct tensors *t, const struct dl_problem *p, const int64_t *given)
{
    t->problem = p;
    dl_problem_complete(p, given, t->dim);
    for (size_t i = 0; i < p->n_tensors; i++) {
        t->data[i] = dl_memory(count(t, i) * sizeof *t->data[i]);
        for (size_t j = 0; j < count(t, i) && p->tensors[i].role == DL_INPUT; j++) t->data[i][j] = filled(t, i, j);
    }
}

static void release(struct tensors *t)
{
    for (size_t i = 0; i < t->problem->n_tensors; i++) free(t->data[i]);
}

/* What both have: the inputs of forward are those of backward, where it has them. */
static void share_inputs(const struct tensors *forward, const struct tensors *backward)
{
    for (size_t i = 0; i < forward->problem->n_tensors; i++) {
        const int same = find(backward->problem, forward->problem->tensors[i].name);
        if (same < 0 || forward->problem->tensors[i].role != DL_INPUT) continue;
        memcpy(forward->data[i], backward->data[same], count(forward, i) * sizeof *forward->data[i]);
    }
}

/* And what forward leaves are inputs of backward. */
static void hand_over(const struct tensors *forward, const struct tensors *backward)
{
    forward->problem->reference(forward->dim, forward->data);
    for (size_t i = 0; i < backward->problem->n_tensors; i++) {
        const int same = find(forward->problem, backward->problem->tensors[i].name);
        if (same < 0 || backward->problem->tensors[i].role != DL_INPUT) continue;
        memcpy(backward->data[i], forward->data[same], count(backward, i) * sizeof *backward->data[i]);
    }
}

static double loss(const struct tensors *forward, const struct tensors *backward)
{
    const int y = find(forward->problem, "y"), dy = find(backward->problem, "dy");
    double sum = 0;
    forward->problem->reference(forward->dim, forward->data);
    for (size_t i = 0; i < count(forward, (size_t)y); i++) sum += forward->data[y][i] * backward->data[dy][i];
    return sum;
}

static double slope(const struct tensors *forward, const struct tensors *backward, double *x)
{
    const double step = 1e-5, before = *x;
    *x = before + step;
    const double above = loss(forward, backward);
    *x = before - step;
    const double below = loss(forward, backward);
    *x = before;
    return (above - below) / (2 * step);
}

/* A few places of each gradient; how many gradients there were. */
static int compare(const struct tensors *forward, const struct tensors *backward)
{
    int compared = 0;
    for (size_t i = 0; i < backward->problem->n_tensors; i++) {
        const char *const name = backward->problem->tensors[i].name;
        const int x = *name == 'd' ? find(forward->problem, name + 1) : -1;
        if (x < 0 || backward->problem->tensors[i].role == DL_INPUT) continue;
        compared++;
        for (size_t probe = 0; probe < 7; probe++) {
            const size_t at = dl_bits(probe) % count(backward, i);
            const double wanted = slope(forward, backward, &forward->data[x][at]), got = backward->data[i][at];
            ck_assert_msg(fabs(got - wanted) <= 1e-5 * (1 + fabs(wanted)), "%s %s: %s[%zu] is %g, differences say %g",
                          backward->problem->name, backward->problem->pass, name, at, got, wanted);
        }
    }
    return compared;
}

START_TEST(backward_is_the_derivative_of_forward)
{
    const struct dl_problem *const p = dl_problem_get((size_t)_i), *const f = dl_problem_find(p->name, "forward");
    if (strcmp(p->pass, "forward") == 0 || find(p, "dy") < 0 || !f || strcmp(p->name, "gemm") == 0) return;
    const int64_t *const given = p->odd[1];
    struct tensors forward, backward;
    make(&backward, p, given);
    make(&forward, f, given);
    share_inputs(&forward, &backward);
    hand_over(&forward, &backward);
    p->reference(backward.dim, backward.data);
    const int compared = compare(&forward, &backward);
    ck_assert_msg(compared > 0, "%s %s: none of its gradients belongs to a tensor of forward", p->name, p->pass);
    release(&forward);
    release(&backward);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("kernels");
    TCase *const all = tcase_create("gradients");
    tcase_add_loop_test(all, backward_is_the_derivative_of_forward, 0, (int)dl_problem_count());
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
