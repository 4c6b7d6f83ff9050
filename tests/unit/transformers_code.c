/* transformers_code.c - software files of Hugging Face's transformers against what its code calls. */
#include <math.h>
#include <string.h>

#include "tests/unit/analytic_run.h"

#define SIZES                                                                                                          \
    "{\"schema\":\"dlsim/workload/1\",\"source\":\"a test\",\"kind\":\"transformer\",\"layers\":1,\"hidden\":1024,"    \
    "\"ffn\":4096,\"heads\":8,\"seq\":2048,\"vocab\":8192,\"dropout\":false"
#define GPT SIZES "}"
#define LLAMA                                                                                                          \
    SIZES ",\"norm\":\"rmsnorm\",\"positions\":\"rotary\",\"activation\":\"swiglu\",\"bias\":false,\"projections\":"   \
          "\"apart\""
#define EXPERTS(n) LLAMA ",\"top_k\":2,\"experts\":" n "}"

static struct dl_arena *arena;

static void open_with(struct dl_session *s, const char *software, const char *workload)
{
    const struct analytic_run run = {.topo = "h200",
                                     .workload = workload,
                                     .software = software,
                                     .head =
                                         "\"devices\":1,\"global_batch\":1,\"microbatch\":1,\"precision\":\"bf16\",",
                                     .stack = ""};
    ck_assert_msg(analytic_run(&run, arena, s), "%s", s->err.text);
}

struct figures {
    double bytes, device_s, host_s;
};

/* Of the instructions with that name, of a forward or a backward. */
static struct figures figures_of(const char *software, const char *workload, enum dl_item_kind kind, const char *name)
{
    struct figures sum = {0};
    struct dl_session s;
    open_with(&s, software, workload);
    const struct dl_template *const t = &s.lowered.positions[0].items[kind];
    for (size_t i = 0; i < t->n_instructions; i++) {
        const struct dl_instruction *const in = &t->instructions[i];
        if (!in->name || strcmp(in->name, name) != 0) continue;
        sum.bytes += in->bytes, sum.device_s += in->device_s, sum.host_s += in->host_s;
    }
    dl_session_close(&s);
    return sum;
}

static double peak_of(const char *software, const char *workload)
{
    struct dl_session s;
    open_with(&s, software, workload);
    const double peak = s.memory[0].peak;
    dl_session_close(&s);
    return peak;
}

/* integrations/moe.py: torch._grouped_mm is one call for all experts; until 2024 there was a loop over them. */
START_TEST(experts_are_one_call)
{
    static const char *const few = EXPERTS("8"), *const many = EXPERTS("16");
    const char *const now = "pytorch-transformers", *const then = "pytorch-transformers-2024";
    ck_assert_double_gt(figures_of(now, few, DL_ITEM_F, "expert_fc1").host_s, 0);
    ck_assert_double_eq_tol(figures_of(now, few, DL_ITEM_F, "expert_fc1").host_s,
                            figures_of(now, many, DL_ITEM_F, "expert_fc1").host_s, 1e-12);
    ck_assert_double_eq_tol(2 * figures_of(then, few, DL_ITEM_F, "expert_fc1").host_s,
                            figures_of(then, many, DL_ITEM_F, "expert_fc1").host_s, 1e-12);
}
END_TEST

/* bloom_gelu_forward reads and writes 21 tensors, bloom_gelu_back 44. */
START_TEST(gelu_of_bloom_is_by_parts)
{
    const double elements = 2048.0 * 4096, bf16 = 2;
    const double forward = figures_of("pytorch-transformers-bloom", GPT, DL_ITEM_F, "activation").bytes;
    const double backward = figures_of("pytorch-transformers-bloom", GPT, DL_ITEM_B, "activation").bytes;
    ck_assert_double_eq_tol(forward / (21 * bf16 * elements), 1, 1e-9);
    ck_assert_double_eq_tol(backward / (44 * bf16 * elements), 1, 0.003);
}
END_TEST

/* masking_utils.py: a window is a mask, so all tokens are gone through, at the rate of attention with a mask. */
START_TEST(windows_are_masks)
{
    static const char *const whole = LLAMA "}", *const windows = LLAMA ",\"window\":256}";
    const double all_s = figures_of("pytorch-transformers", whole, DL_ITEM_F, "attention").device_s;
    const double masked_s = figures_of("pytorch-transformers", windows, DL_ITEM_F, "attention").device_s;
    ck_assert_double_eq_tol(masked_s / all_s, 1 / 0.33, 0.05);
}
END_TEST

/* Where weights are multiplied in fp32, what they are multiplied with is kept so: 2 bytes more for each of three norms
 * of 2,048 x 1,024. */
START_TEST(wide_norms_keep_wide_numbers)
{
    const double more =
        peak_of("pytorch-transformers-wide-norms", LLAMA "}") - peak_of("pytorch-transformers", LLAMA "}");
    ck_assert_double_ge(more, 2 * 2 * 2048.0 * 1024);
    ck_assert_double_le(more, 3 * 2 * 2048.0 * 1024);
}
END_TEST

/* What modeling_gptj.py and PyTorch's attention by parts multiply in fp32 takes longer than in bf16. */
START_TEST(scores_may_be_wide)
{
    static const char *const wide[] = {"pytorch-transformers-gptj", "pytorch-transformers-falcon"};
    const double narrow_s = figures_of("pytorch-transformers-bloom", GPT, DL_ITEM_B, "scores").device_s;
    ck_assert_double_gt(figures_of(wide[_i], GPT, DL_ITEM_B, "scores").device_s, 1.5 * narrow_s);
}
END_TEST

/* _softmax_backward_data multiplies what it is given by its result first: three tensors of scores in fp32 at once,
 * where the head's are smaller. */
START_TEST(gradients_of_scores_are_held)
{
    static const char *const small = SIZES "}";
    struct dl_session s;
    open_with(&s, "pytorch-transformers-gptj", small);
    const double scores = 8 * 2048.0 * 2048, peak = s.memory[0].peak, static_bytes = dl_model_parameters(&s.model) * 8;
    dl_session_close(&s);
    ck_assert_double_ge(peak, static_bytes + (3 * 4 + 4 + 2) * scores);
}
END_TEST

static void set_up(void) { arena = dl_arena_new(); }
static void tear_down(void) { dl_arena_free(arena); }

int main(void)
{
    enum { n_wide = 2 };
    Suite *const suite = suite_create("transformers_code");
    TCase *const all = tcase_create("transformers_code");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_test(all, experts_are_one_call);
    tcase_add_test(all, gelu_of_bloom_is_by_parts);
    tcase_add_test(all, windows_are_masks);
    tcase_add_test(all, wide_norms_keep_wide_numbers);
    tcase_add_test(all, gradients_of_scores_are_held);
    tcase_add_loop_test(all, scores_may_be_wide, 0, n_wide);
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
