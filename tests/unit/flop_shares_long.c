/* flop_shares_long.c - MFU and HFU: one way to count attention in both, so that the second is never below the first. */
#include <math.h>
#include <string.h>

#include "sim/core/files.h"
#include "tests/unit/analytic_run.h"
#include "tests/unit/row_predictions.h"

static struct dl_arena *arena;

static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

struct shares {
    double mfu[DL_N_FLOP_COUNTS], hfu[DL_N_FLOP_COUNTS];
    bool refused;
    struct dl_error err;
};

static struct shares shares_of(const struct analytic_run *t)
{
    struct dl_session s;
    struct shares out = {.refused = !analytic_run(t, arena, &s)};
    for (int count = 0; count < DL_N_FLOP_COUNTS && !out.refused; count++) {
        out.mfu[count] = dl_run_mfu(&s.report, (enum dl_flop_count)count);
        out.hfu[count] = dl_run_hfu(&s.report, (enum dl_flop_count)count);
    }
    out.err = s.err;
    dl_session_close(&s);
    return out;
}

static const double rounding = 1e-9;

static void check_law(const struct analytic_run *t, const struct shares *s)
{
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++)
        ck_assert_msg(s->mfu[count] > 0 && s->hfu[count] >= s->mfu[count] * (1 - rounding),
                      "%s, %s, %s, %s: mfu %.12g, hfu %.12g", t->workload, t->software, t->head, t->stack,
                      s->mfu[count], s->hfu[count]);
    ck_assert_double_le(s->mfu[DL_FLOP_CAUSAL], s->mfu[DL_FLOP_FULL]);
}

/* ---- many models, all shipped software, all ways to recompute, short and very long samples ---- */

static const struct {
    const char *workload, *layers;
    bool has_tokens;
} models[] = {
    {"llama3-8b", "workload.layers=2", true},
    {"gpt-1.7b", "workload.layers=2", true},
    {"mixtral-8x7b", "workload.layers=2", true},
    {"deepseek-v3", "workload.layers=4", true},
    {"switch-base", "workload.layers=2", true},
    {"bert-large", "workload.layers=2", true},
    {"resnet50", NULL, false},
    {"mlp-mnist", NULL, false},
};
#define RECOMPUTE(what) "\"global_batch\":8,\"recompute\":\"" what "\","
enum { selective = 1 };
static const char *const recomputes[] = {RECOMPUTE("none"), RECOMPUTE("selective"), RECOMPUTE("full")};
static const char *const lengths[] = {"workload.seq=512", "workload.seq=8192", "workload.seq=1048576"};

static void check_software(size_t model, const char *software)
{
    const size_t n_lengths = models[model].has_tokens ? DL_COUNT(lengths) : 1;
    for (size_t i = 0; i < DL_COUNT(recomputes); i++)
        for (size_t k = 0; k < n_lengths; k++) {
            const char *const seq = models[model].has_tokens ? lengths[k] : NULL, *const layers = models[model].layers;
            const struct analytic_run t = {"dgx-h100", models[model].workload, software, recomputes[i],
                                           "",         {layers, seq}};
            const struct shares s = shares_of(&t);
            ck_assert_msg(!s.refused || (!models[model].has_tokens && i == selective), "%s is refused", t.workload);
            if (s.refused) continue;
            check_law(&t, &s);
            /* Convolutions may do less than is counted. */
            if (models[model].has_tokens) ck_assert_double_lt(s.hfu[DL_FLOP_CAUSAL], 1);
        }
}

START_TEST(hfu_is_at_least_mfu_and_at_most_1)
{
    const char **software;
    const size_t n = dl_list_folder("strategies/software", arena, &software);
    ck_assert_uint_gt(n, 10);
    for (size_t i = 0; i < n; i++) check_software((size_t)_i, software[i]);
}
END_TEST

/* ---- however the work is divided: as much in all as on one device ---- */

static const char *const stacks[] = {
    "{\"name\":\"context\",\"ways\":4},{\"name\":\"data\"}",
    "{\"name\":\"context\",\"ways\":4,\"zigzag\":true},{\"name\":\"data\"}",
    "{\"name\":\"context\",\"ways\":4,\"kind\":\"allgather\"},{\"name\":\"data\"}",
    "{\"name\":\"context\",\"ways\":4,\"kind\":\"alltoall\"},{\"name\":\"data\"}",
    "{\"name\":\"tensor\",\"ways\":4,\"sequence\":true},{\"name\":\"data\"}",
    "{\"name\":\"pipeline\",\"ways\":4,\"schedule\":\"dualpipe\",\"chunks\":2}",
    "{\"name\":\"pipeline\",\"ways\":4,\"schedule\":\"zbv\",\"chunks\":2}",
};

START_TEST(what_is_computed_again_does_not_depend_on_ways)
{
    for (size_t i = 0; i < DL_COUNT(recomputes); i++) {
        struct analytic_run t = {"dgx-h100",    "llama3-8b", "llama3",
                                 recomputes[i], "",          {"workload.layers=8", "workload.seq=16384"}};
        const struct shares alone = shares_of(&t);
        t.stack = stacks[_i];
        const struct shares s = shares_of(&t);
        ck_assert_msg(!alone.refused && !s.refused, "%s", s.err.text);
        check_law(&t, &s);
        for (int count = 0; count < DL_N_FLOP_COUNTS; count++)
            ck_assert_double_eq_tol(s.hfu[count] / s.mfu[count], alone.hfu[count] / alone.mfu[count], rounding);
    }
}
END_TEST

/* ---- against the formulas of Korthikanti et al. (arXiv 2205.05198, appendix A) ---- */

/* Of a sample: of the model with all scores or half of them; and one product of scores, or of weights and values. */
static const double l = 4, h = 2048, v = 51200, s = 4096;
static double model_flop(double scores) { return 72 * s * l * h * h * (1 + scores * s / (6 * h) + v / (12 * l * h)); }
static double product_flop(double scores) { return scores * 2 * l * s * s * h; }

START_TEST(shares_differ_by_what_is_computed_again)
{
    static const struct {
        const char *software;
        int recompute;
        double products, blocks; /* computed again: of attention, and forwards of all blocks */
    } cases[] = {
        {"megatron-2021", 0, 0, 0}, {"megatron-2021", 1, 2, 0}, {"megatron-2021", 2, 0, 1},
        {"fsdp", 0, 1, 0},          {"fsdp", 1, 3, 0},          {"fsdp", 2, 1, 1},
    };
    const struct analytic_run t = {"dgx-h100",
                                   "{\"schema\":\"dlsim/workload/1\",\"source\":\"a test\",\"kind\":\"transformer\","
                                   "\"layers\":4,\"hidden\":2048,\"heads\":16,\"vocab\":51200,\"seq\":4096}",
                                   cases[_i].software,
                                   recomputes[cases[_i].recompute],
                                   "",
                                   {NULL}};
    const struct shares got = shares_of(&t);
    ck_assert_msg(!got.refused, "%s", got.err.text);
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++) {
        const double scores = count == DL_FLOP_CAUSAL ? 0.5 : 1, model = model_flop(scores), head = 6 * s * h * v;
        const double again = cases[_i].products * product_flop(scores) + cases[_i].blocks * (model - head) / 3;
        ck_assert_double_eq_tol(got.hfu[count] / got.mfu[count], 1 + again / model, rounding);
    }
    ck_assert_double_eq_tol(got.mfu[DL_FLOP_FULL] / got.mfu[DL_FLOP_CAUSAL], model_flop(1) / model_flop(0.5), rounding);
}
END_TEST

/* ---- beside published shares ---- */

#define ROW(id, keys) "{\"id\":\"" id "\",\"topo\":\"dgx-h100\",\"strategy\":\"single\",\"mfu\":0.4" keys "}"

START_TEST(a_row_is_compared_in_the_convention_of_its_paper)
{
    struct dl_row_prediction *const got = predict_rows(
        THREE_ROWS(ROW("a", ""), ROW("b", ",\"attention_flop\":\"full\""), ROW("c", ",\"attention_flop\":\"causal\"")),
        0, arena);
    ck_assert_double_eq(got[0].mfu, got[1].mfu);
    ck_assert_double_eq(got[0].step_s, got[2].step_s);
    ck_assert_double_lt(got[2].mfu, got[1].mfu);
    ck_assert_double_lt(got[2].hfu, got[1].hfu);
    dl_free(got);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("flop_shares");
    TCase *const tests = tcase_create("shares of peak");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, hfu_is_at_least_mfu_and_at_most_1, 0, (int)DL_COUNT(models));
    tcase_add_loop_test(tests, what_is_computed_again_does_not_depend_on_ways, 0, (int)DL_COUNT(stacks));
    tcase_add_loop_test(tests, shares_differ_by_what_is_computed_again, 0, 6);
    tcase_add_test(tests, a_row_is_compared_in_the_convention_of_its_paper);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
