/* windows.c - attention to the last tokens only: what is computed, in which blocks, and what is refused. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"

#define HIDDEN 64
#define SEQ 64
#define MODEL(more)                                                                                                    \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':64,"   \
    "'vocab':512" more "}"
#define BATCH "'global_batch':1,'devices':1"

static const double exactly = 1e-9;

static double forward_flop(const char *workload)
{
    struct dl_session t;
    double sum = 0;
    open_step(&t, &(struct step){.workload = workload, .head = BATCH, .stack = ""});
    for (size_t i = 0; i < item(&t, DL_ITEM_F)->n_instructions; i++) sum += item(&t, DL_ITEM_F)->instructions[i].flop;
    dl_session_close(&t);
    return sum;
}

/* A multiplication and an addition for each of the columns of a token, once for scores and once for values. */
static double flop_of_scores(double scores) { return 2 * 2 * scores * HIDDEN; }

/* Pair by pair: who meets whom, where token i meets the `window` tokens up to itself. */
static double count_scores(int window)
{
    double n = 0;
    for (int i = 0; i < SEQ; i++)
        for (int j = 0; j <= i; j++) n += i - j < window;
    return n;
}

START_TEST(queries_meet_the_keys_of_their_window)
{
    static const struct {
        const char *workload;
        int window, blocks; /* in windows */
    } cases[] = {{MODEL(",'window':8"), 8, 4},
                 {MODEL(",'window':1"), 1, 4},
                 {MODEL(",'window':16,'full_attention_every':2"), 16, 2},
                 {MODEL(",'window':16,'full_attention_every':3"), 16, 3},
                 {MODEL(",'window':16,'full_attention_every':1"), 16, 0},
                 {MODEL(",'window':64"), 64, 0}};
    const double half = SEQ * SEQ / 2.0; /* as causal attention counts */
    const double saved = cases[_i].blocks * flop_of_scores(half - count_scores(cases[_i].window));
    check_close("flop", forward_flop(cases[_i].workload), forward_flop(MODEL("")) - saved, exactly);
}
END_TEST

START_TEST(a_sequence_with_windows_is_not_divided)
{
    const struct step step = {.workload = MODEL(",'window':8"),
                              .head = "'global_batch':1,'devices':2",
                              .stack = "{'name':'context','ways':2},{'name':'data'}"};
    check_refusal(&step, "test.json:/stack/0: test attends in windows, of which dlsim cannot divide the sequence");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("windows");
    tcase_add_loop_test(tests, queries_meet_the_keys_of_their_window, 0, 6);
    tcase_add_test(tests, a_sequence_with_windows_is_not_divided);
    Suite *const suite = suite_create("windows");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
