/* layouts.c - what the resolver and the operators move, against who holds and who needs each element of a small tensor.
 */
#include <check.h>

#include "sim/core/random.h"
#include "strategies/attention.h"
#include "strategies/stack.h"
#include "tests/unit/suite.h"

enum { n_drawn = 2000, most_digits = 3, length = 64 }; /* length: of each dimension, which all digits divide */

/* Digits of one, two or four values. */
static struct dl_ranks draw_ranks(gsl_rng *rng)
{
    struct dl_ranks r = {.n_digits = 1 + (uint32_t)gsl_rng_uniform_int(rng, most_digits)};
    for (uint32_t i = 0, stride = 1; i < r.n_digits; i++) {
        r.digits[i] = (struct dl_digit){.n = 1u << gsl_rng_uniform_int(rng, 3), .stride = stride};
        stride *= r.digits[i].n;
    }
    return r;
}

/* Each digit cuts a dimension, has partial sums or replicates. */
static struct dl_layout draw_layout(const struct dl_ranks *r, gsl_rng *rng)
{
    struct dl_layout l = {.partial = 0};
    for (uint32_t i = 0; i < r->n_digits; i++) {
        enum { partial, replicates, n_uses = 6 }; /* the others cut */
        const unsigned long as = gsl_rng_uniform_int(rng, n_uses);
        if (as > replicates) l.cut[gsl_rng_uniform_int(rng, DL_N_DIMENSIONS)] |= 1u << i;
        if (as == partial) l.partial |= 1u << i;
    }
    return l;
}

static dl_digits of_many(const struct dl_ranks *r, dl_digits digits)
{
    for (uint32_t i = 0; i < r->n_digits; i++)
        if (r->digits[i].n == 1) digits &= ~(1u << i);
    return digits;
}

/* What becomes of a digit: the dimension that it cuts, DL_N_DIMENSIONS for partial sums, or one more if it replicates.
 */
static int use_of(const struct dl_layout *l, dl_digits digit)
{
    int d = 0;
    while (d < DL_N_DIMENSIONS && !(l->cut[d] & digit)) d++;
    return d + (d == DL_N_DIMENSIONS && !(l->partial & digit));
}

static bool change_alike(const struct dl_layout *a, const struct dl_layout *b, dl_digits one, dl_digits other)
{
    const int from = use_of(a, one), to = use_of(b, one), other_from = use_of(a, other), other_to = use_of(b, other);
    const bool both_cut = from < DL_N_DIMENSIONS && other_from < DL_N_DIMENSIONS;
    const bool both_end_cut = to < DL_N_DIMENSIONS && other_to < DL_N_DIMENSIONS;
    return (from == other_from || both_cut) && (to == other_to || both_end_cut);
}

/* In each dimension digits come or go, in the same way, and count faster than those that stay. */
static bool nests(const struct dl_ranks *r, const struct dl_layout *a, const struct dl_layout *b)
{
    for (int d = 0; d < DL_N_DIMENSIONS; d++) {
        const dl_digits x = of_many(r, a->cut[d]), y = of_many(r, b->cut[d]), change = x ^ y;
        if ((x | y) != x && (x | y) != y) return false;
        for (dl_digits i = 1; i <= (x | y); i <<= 1) {
            if ((x & y & i) && (change & ~(i - 1))) return false;
            for (dl_digits j = 1; j < i; j <<= 1)
                if ((change & i) && (change & j) && !change_alike(a, b, i, j)) return false;
        }
    }
    return true;
}

/* Along one dimension, which all others leave alone. */
static bool has_place(const struct dl_ranks *r, const struct dl_layout *l, uint32_t rank, int d, uint32_t place)
{
    const uint32_t block = length / dl_ranks_count(r, l->cut[d]);
    return place / block == dl_ranks_index(r, l->cut[d], rank);
}

/* An element is held where its places of all dimensions are: so many elements does one rank have in both layouts. */
static double held_in_both(const struct dl_ranks *r, const struct dl_layout *a, uint32_t rank_a,
                           const struct dl_layout *b, uint32_t rank_b)
{
    double elements = 1;
    for (int d = 0; d < DL_N_DIMENSIONS; d++) {
        double places = 0;
        for (uint32_t i = 0; i < length; i++) places += has_place(r, a, rank_a, d, i) && has_place(r, b, rank_b, d, i);
        elements *= places;
    }
    return elements;
}

static double held(const struct dl_ranks *r, const struct dl_layout *l, uint32_t rank)
{
    return held_in_both(r, l, rank, l, rank);
}

static bool is_equal(const struct dl_ranks *r, const struct dl_layout *a, const struct dl_layout *b)
{
    bool equal = of_many(r, a->partial) == of_many(r, b->partial);
    for (int d = 0; d < DL_N_DIMENSIONS; d++) equal &= of_many(r, a->cut[d]) == of_many(r, b->cut[d]);
    return equal;
}

/* What a rank has after a move, members of its group had before, each the same number of elements of it; `elements` is
 * the buffer of which the rank then has not got its own part from others. */
static void check_data(const struct dl_ranks *r, const struct dl_layout *before, const struct dl_move *m, uint32_t rank)
{
    const uint32_t n = dl_ranks_count(r, m->along);
    double got = 0, own = held_in_both(r, before, rank, &m->after, rank);
    for (uint32_t i = 1; i < n; i++)
        got += held_in_both(r, before, dl_ranks_further(r, m->along, rank, i), &m->after, rank);
    ck_assert_double_eq(own + got, held(r, &m->after, rank));
    ck_assert_double_eq(got, m->elements * (n - 1) / n);
}

/* Members have partial sums of the same elements. A rank ends with those sums that it needs, and with no others'. */
static void check_sums(const struct dl_ranks *r, const struct dl_layout *before, const struct dl_move *m, uint32_t rank)
{
    const uint32_t n = dl_ranks_count(r, m->along);
    const double after = m->op == DL_ALLREDUCE ? m->elements : m->elements / n;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t other = dl_ranks_further(r, m->along, rank, i);
        ck_assert_double_eq(held_in_both(r, before, rank, before, other), m->elements);
        if (m->op == DL_REDUCESCATTER && i > 0)
            ck_assert_double_eq(held_in_both(r, &m->after, rank, &m->after, other), 0);
    }
    ck_assert_double_eq(held_in_both(r, before, rank, &m->after, rank), after);
    ck_assert_double_eq(held(r, &m->after, rank), after);
    ck_assert_uint_eq(of_many(r, before->partial & ~m->after.partial), of_many(r, m->along));
}

static void check_moves(const struct dl_ranks *r, const struct dl_layout *has, const struct dl_layout *needs)
{
    struct dl_move moves[DL_MOST_MOVES];
    double all = 1;
    for (int d = 0; d < DL_N_DIMENSIONS; d++) all *= length;
    const size_t n = dl_resolve(r, has, needs, all, moves);
    struct dl_layout at = *has;
    for (int d = 0; d < DL_N_DIMENSIONS; d++) /* a part of what is replicated is there without any move */
        at.cut[d] |= needs->cut[d] & ~has->partial & ~dl_layout_cuts(has, ~(dl_dimensions)0);
    for (size_t i = 0; i < n; i++) {
        const bool sums = moves[i].op == DL_ALLREDUCE || moves[i].op == DL_REDUCESCATTER;
        for (uint32_t rank = 0; rank < dl_ranks_count(r, dl_ranks_all(r)); rank++)
            (sums ? check_sums : check_data)(r, &at, &moves[i], rank);
        at = moves[i].after;
    }
    ck_assert(is_equal(r, &at, needs));
}

START_TEST(moves_bring_what_is_needed_and_nothing_else)
{
    gsl_rng *const rng = dl_random_new(1, "layouts", 0);
    size_t n_checked = 0, n_of_op[DL_N_OPS] = {0};
    for (int i = 0; i < n_drawn; i++) {
        const struct dl_ranks r = draw_ranks(rng);
        const struct dl_layout has = draw_layout(&r, rng);
        struct dl_layout needs = draw_layout(&r, rng);
        needs.partial &= has.partial;
        if (!nests(&r, &has, &needs)) continue;
        check_moves(&r, &has, &needs);
        struct dl_move moves[DL_MOST_MOVES];
        for (size_t n = dl_resolve(&r, &has, &needs, 1, moves); n-- > 0;) n_of_op[moves[n].op]++;
        n_checked++;
    }
    ck_assert_uint_gt(n_checked, n_drawn / 4);
    for (enum dl_op op = DL_ALLREDUCE; op <= DL_ALLTOALL; op++) ck_assert_uint_gt(n_of_op[op], 30);
    gsl_rng_free(rng);
}
END_TEST

/* ---- Megatron's pair (Shoeybi et al. 2019, figure 3; Korthikanti et al., figure 5) ---- */

static void check_pair(bool sequence, bool enters, size_t n_moves, enum dl_op op)
{
    struct dl_setting s = {.ways = {4, 1, 1, 1}, .grid = {4, 1, 1}, .expert_ways = 1};
    s.layouts = dl_operator_megatron.layouts(&(struct dl_operator_options){.sequence = sequence});
    dl_setting_number_ranks(&s);
    const struct dl_event product = {.pass = DL_FORWARD};
    struct dl_move moves[DL_MOST_MOVES];
    ck_assert_uint_eq(dl_operator_moves(&s, &product, enters, 1000, moves), n_moves);
    if (!n_moves) return;
    ck_assert_int_eq(moves[0].op, op);
    ck_assert_uint_eq(dl_ranks_count(&s.ranks, moves[0].along), 4);
    ck_assert_double_eq(moves[0].elements, 1000);
}

START_TEST(a_pair_of_products_is_summed_once)
{
    check_pair(false, true, 0, DL_N_OPS);
    check_pair(false, false, 1, DL_ALLREDUCE);
    check_pair(true, true, 1, DL_ALLGATHER);
    check_pair(true, false, 1, DL_REDUCESCATTER);
}
END_TEST

/* ---- all operators ---- */

/* Two by two tensor ranks, four that share a sequence, four that share experts. */
static struct dl_setting small_setting(void)
{
    static const struct dl_software as_default;
    struct dl_setting s = {.software = &as_default,
                           .ways = {4, 4, 4, 1},
                           .order = {DL_AXIS_TENSOR, DL_AXIS_CONTEXT, DL_AXIS_DATA, DL_AXIS_PIPELINE},
                           .grid = {2, 2, 1},
                           .expert_ways = 4,
                           .microbatch = 1,
                           .precision = DL_BF16};
    dl_setting_number_ranks(&s);
    return s;
}

/* What an operator takes and leaves, and the gradients of both, come and go without a rest. */
START_TEST(operators_take_and_leave_what_can_be_brought)
{
    const struct dl_operator_family *const family = &dl_operator_families[_i];
    const struct dl_setting s = small_setting();
    for (size_t i = 0; i < family->n; i++) {
        const struct dl_operator *const op = family->operators[i];
        const struct dl_operator_layouts l = op->layouts(&(struct dl_operator_options){.sequence = false}),
                                         over = op->layouts(
                                             &(struct dl_operator_options){.over = DL_ALONG_TENSOR | DL_ALONG_CONTEXT});
        const struct dl_layout used = dl_layout_gradient(&l.used, op->among),
                               keys = dl_layout_gradient(&l.keys, op->among);
        check_moves(&s.ranks, &l.outside, &l.used);
        check_moves(&s.ranks, &l.made, &l.outside);
        check_moves(&s.ranks, &over.outside, &over.used);
        check_moves(&s.ranks, &over.made, &over.outside);
        if (_i != DL_OF_PRODUCTS || op == &dl_operator_megatron) check_moves(&s.ranks, &used, &l.outside);
        if (_i != DL_OF_ATTENTION) continue;
        check_moves(&s.ranks, &l.outside, &l.keys);
        check_moves(&s.ranks, &keys, &l.outside);
    }
}
END_TEST

/* ---- attention: 64 tokens, 64 heads of one column ---- */

struct emitted {
    double received, flop; /* elements that a rank gets from others; multiplications and additions of the mean rank */
};

static enum dl_status add(void *user, const struct dl_event *ev, struct dl_error *err)
{
    const double bytes = 2, n = 4;
    struct emitted *const sum = user;
    (void)err;
    const double part = ev->op == DL_SENDRECV ? 1 : (n - 1) / n;
    if (ev->kind == DL_EV_COLLECTIVE || ev->bytes > 0) sum->received += part * ev->bytes / bytes;
    if (ev->kind == DL_EV_COMPUTE) sum->flop += dl_kernel_flop(&ev->kernel) * (ev->mean_work > 0 ? ev->mean_work : 1);
    return DL_OK;
}

static const struct dl_kernel whole_attention = {
    .kind = DL_KERNEL_ATTENTION,
    .batch = length,
    .m = length,
    .n = length,
    .k = 1,
    .kv_share = 1,
    .by = {.batch = DL_BY_SAMPLE | DL_BY_INNER, .m = DL_BY_TOKEN, .n = DL_BY_TOKEN}};

static struct emitted attend(const struct dl_operator *op, const struct dl_event *ev, bool zigzag)
{
    const struct dl_setting s = small_setting();
    struct emitted sum = {0};
    struct dl_error err = {0};
    struct dl_stack bottom = {.setting = &s, .sink = add, .user = &sum};
    ck_assert(!dl_attend(op, &(struct dl_operator_options){.zigzag = zigzag}, ev, &bottom, &err));
    return sum;
}

static bool has(const struct dl_ranks *r, const struct dl_layout *l, uint32_t rank, uint32_t token, uint32_t head)
{
    return has_place(r, l, rank, DL_TOKEN, token) && has_place(r, l, rank, DL_INNER, head);
}

/* A rank that makes what a head makes of a token needs its query and all keys and values of that head. */
static double lacks(const struct dl_ranks *r, const struct dl_operator_layouts *l, uint32_t rank)
{
    double sum = 0;
    for (uint32_t head = 0; head < length; head++) {
        bool works = false;
        for (uint32_t token = 0; token < length; token++) {
            const bool makes = has(r, &l->made, rank, token, head), has_it = has(r, &l->outside, rank, token, head);
            sum += makes != has_it; /* the query, or what comes back */
            works |= makes;
        }
        for (uint32_t token = 0; token < length && works; token++) sum += 2 * !has(r, &l->outside, rank, token, head);
    }
    return sum;
}

START_TEST(attention_gets_every_key_that_a_rank_lacks)
{
    const struct dl_operator *const op = dl_operator_of(DL_OF_ATTENTION, _i);
    const struct dl_operator_layouts l = op->layouts(&(struct dl_operator_options){.zigzag = false});
    const struct dl_setting s = small_setting();
    const struct dl_event ev = {.kind = DL_EV_COMPUTE, .pass = DL_FORWARD, .kernel = whole_attention};
    const double received = attend(op, &ev, false).received;
    for (uint32_t rank = 0; rank < dl_ranks_count(&s.ranks, dl_ranks_all(&s.ranks)); rank++)
        ck_assert_double_eq(received, lacks(&s.ranks, &l, rank));
}
END_TEST

/* Each score once, by one of four ranks, forward and backward; under a causal mask half of them. */
START_TEST(ranks_share_all_scores)
{
    const struct dl_operator *const op = dl_operator_of(DL_OF_ATTENTION, _i / 8);
    struct dl_event ev = {.kind = DL_EV_COMPUTE, .kernel = whole_attention};
    ev.pass = _i & 1 ? DL_BACKWARD : DL_FORWARD;
    ev.kernel.backward = _i & 1;
    ev.kernel.causal = _i & 2;
    const double flop = dl_kernel_flop(&ev.kernel);
    ck_assert_double_eq_tol(4 * attend(op, &ev, _i & 4).flop, flop, 1e-12 * flop);
}
END_TEST

/* ---- experts: 16 of them, or 64 where more ranks share them ---- */

START_TEST(ranks_share_all_experts)
{
    static const dl_digits over[] = {0, DL_ALONG_TENSOR, DL_ALONG_CONTEXT, DL_IN_LOCKSTEP};
    const struct dl_operator *const op = dl_operator_of(DL_OF_EXPERTS, _i / DL_COUNT(over));
    const struct dl_operator_options told = {.imbalance = 2, .over = over[_i % DL_COUNT(over)]};
    const struct dl_setting s = small_setting();
    const double tokens_of = dl_ranks_count(&s.ranks, told.over); /* ranks that divide them already */
    const struct dl_event ev = {.kind = DL_EV_COMPUTE,
                                .pass = DL_FORWARD,
                                .kernel = {.kind = DL_KERNEL_GEMM,
                                           .batch = 64,
                                           .m = 16,
                                           .n = 32,
                                           .k = 64,
                                           .by = {.batch = DL_BY_EXPERT, .m = DL_ROWS}}};
    struct emitted sum = {0};
    struct dl_error err = {0};
    struct dl_stack bottom = {.setting = &s, .sink = add, .user = &sum};
    struct dl_event mine = ev;
    mine.kernel.m /= tokens_of;
    ck_assert(!op->kernel(&told, &mine, &bottom, &err));
    /* Of the mean rank; the busiest has twice as much. */
    ck_assert_double_eq(tokens_of * sum.flop, dl_kernel_flop(&ev.kernel));
    ck_assert_double_eq(sum.received, 0);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("layouts");
    TCase *const all = tcase_create("layouts");
    tcase_add_test(all, moves_bring_what_is_needed_and_nothing_else);
    tcase_add_test(all, a_pair_of_products_is_summed_once);
    tcase_add_loop_test(all, operators_take_and_leave_what_can_be_brought, 0, DL_N_OPERATOR_FAMILIES);
    tcase_add_loop_test(all, attention_gets_every_key_that_a_rank_lacks, 0, DL_N_ATTENDINGS);
    tcase_add_loop_test(all, ranks_share_all_scores, 0, 8 * DL_N_ATTENDINGS);
    tcase_add_loop_test(all, ranks_share_all_experts, 0, 8);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
