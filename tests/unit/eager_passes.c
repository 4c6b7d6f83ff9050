/* eager_passes.c - Megatron-DeepSpeed, on Intel GPUs too, nanotron, NeMo, Paxml and transformers: the bytes that their
 * files say kernels move, against the operations of PyTorch that their code calls, each with what it reads and writes.
 */
#include <math.h>
#include <string.h>

#include "tests/unit/analytic_run.h"

enum { TOKENS = 8192, HIDDEN = 1024, FFN = 4096, HEADS = 8, KEY_HEADS = 2, VOCABULARY = 8192 };

#define MODEL                                                                                                          \
    "{\"schema\":\"dlsim/workload/1\",\"source\":\"a test\",\"kind\":\"transformer\",\"layers\":1,\"hidden\":1024,"    \
    "\"ffn\":4096,\"heads\":8,\"kv_heads\":2,\"seq\":8192,\"vocab\":8192,\"norm\":\"rmsnorm\",\"positions\":"          \
    "\"rotary\","                                                                                                      \
    "\"activation\":\"swiglu\",\"bias\":false,\"dropout\":false,\"tied_embedding\":false}"

static const double bf16 = 2, fp32 = 4;
static const double memory_bytes_per_s = 1.638e12 * 0.45; /* of a tile: topologies/devices/max1550-tile.json */

/* Bytes of the instructions with that name, of a forward or a backward. */
static double moved(const struct dl_session *s, enum dl_item_kind kind, const char *name)
{
    const struct dl_template *const t = &s->lowered.positions[0].items[kind];
    double sum = 0;
    for (size_t i = 0; i < t->n_instructions; i++)
        if (t->instructions[i].name && strcmp(t->instructions[i].name, name) == 0) sum += t->instructions[i].bytes;
    return sum;
}

static void open_with(struct dl_session *s, struct dl_arena *arena, const char *software, const char *set)
{
    const struct analytic_run run = {.topo = "aurora",
                                     .workload = MODEL,
                                     .software = software,
                                     .head =
                                         "\"devices\":1,\"global_batch\":1,\"microbatch\":1,\"precision\":\"bf16\",",
                                     .stack = "",
                                     .set = {"software.attention=\"flash\"", set}};
    ck_assert_msg(analytic_run(&run, arena, s), "%s", s->err.text);
}

static void open_step(struct dl_session *s, struct dl_arena *arena, const char *software)
{
    open_with(s, arena, software, NULL);
}

static double device_s(const struct dl_session *s, enum dl_item_kind kind, const char *name)
{
    const struct dl_template *const t = &s->lowered.positions[0].items[kind];
    double sum = 0;
    for (size_t i = 0; i < t->n_instructions; i++)
        if (t->instructions[i].name && strcmp(t->instructions[i].name, name) == 0) sum += t->instructions[i].device_s;
    return sum;
}

/* What is moved beside a kernel, by its time beyond that of the same kernel alone, in that software, at that rate. */
static double beside(struct dl_arena *arena, enum dl_item_kind kind, const char *name, const char *alone, double rate)
{
    struct dl_session eager, bare;
    open_step(&eager, arena, "megatron-deepspeed-xpu");
    open_step(&bare, arena, alone);
    const double bytes = (device_s(&eager, kind, name) - device_s(&bare, kind, name) / rate) * memory_bytes_per_s;
    dl_session_close(&eager);
    dl_session_close(&bare);
    return bytes;
}

static void check(const char *what, double is, double should, double tolerance)
{
    ck_assert_msg(fabs(is - should) <= tolerance * should, "%s: %g bytes, the code moves %g", what, is, should);
}

/* x.float(), pow(2), mean, times its root, back to bf16, times the weights. */
static double norm_bytes(void)
{
    const double widens = bf16 + fp32, squares = fp32 + fp32, sums = fp32, scales = fp32 + fp32, narrows = fp32 + bf16,
                 weighs = bf16 + bf16;
    return (widens + squares + sums + scales + narrows + weighs) * TOKENS * HIDDEN;
}

/* t * cos + rotate_half(t) * sin, where half of t is negated and both halves are put together. */
static double rotary_bytes(double heads)
{
    const double by_cosine = 2 * bf16, negates = bf16, joins = 2 * bf16, by_sine = 2 * bf16, adds = 3 * bf16;
    return (by_cosine + negates + joins + by_sine + adds) * TOKENS * HIDDEN / HEADS * heads;
}

/* silu(first) * second; backward the gradients of both, that of silu, and their halves put together. */
static double swiglu_bytes(void) { return (2 * bf16 + 3 * bf16) * TOKENS * FFN; }
static double swiglu_gradient_bytes(void) { return (3 * bf16 + 3 * bf16 + 3 * bf16 + 4 * bf16) * TOKENS * FFN; }

/* Queries are copied out; keys and values are written for every query, and embedded as often. */
static double repeat_bytes(void)
{
    const double element = bf16 * TOKENS * HIDDEN / HEADS, copies = 2 * HEADS, repeats = 2 * (HEADS + KEY_HEADS);
    return element * (copies + repeats) + rotary_bytes(HEADS - KEY_HEADS);
}

START_TEST(passes_of_the_code_are_those_of_the_file)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session s;
    open_step(&s, arena, "megatron-deepspeed-xpu");
    check("norm", moved(&s, DL_ITEM_F, "norm1"), norm_bytes(), 1e-9);
    check("rotary", moved(&s, DL_ITEM_F, "rotary"), rotary_bytes(HEADS + KEY_HEADS), 1e-9);
    check("swiglu", moved(&s, DL_ITEM_F, "activation"), swiglu_bytes(), 1e-3);
    check("swiglu, backward", moved(&s, DL_ITEM_B, "activation"), swiglu_gradient_bytes(), 1e-9);
    check("repeated keys", beside(arena, DL_ITEM_F, "attention", "ideal", 0.42), repeat_bytes(),
          0.05); /* 3 to 8 queries a key */
    dl_session_close(&s);
    dl_arena_free(arena);
}
END_TEST

/* pow(relu(x), 2) that nothing fuses: both read and write; backward a power of 1, times 2, times the gradient, and
 * ReLU's gradient from its result. */
START_TEST(squares_of_relu_in_nemo_are_not_one_kernel)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session s;
    const double elements = (double)TOKENS * FFN, backward = (2 + 2 + 3 + 3) * bf16 * elements;
    open_with(&s, arena, "nemo-2025", "workload.activation=\"squared_relu\"");
    check("squared ReLU", moved(&s, DL_ITEM_F, "activation"), (2 + 2) * bf16 * elements, 1e-9);
    check("squared ReLU, backward", moved(&s, DL_ITEM_B, "activation"), backward, 2e-3);
    dl_session_close(&s);
    dl_arena_free(arena);
}
END_TEST

/* qkv[..., :-2], qkv[..., -2] and qkv[..., -1]: each gradient is cleared as a whole and filled, and two are added. */
START_TEST(gradients_of_slices_are_as_large_as_what_was_cut)
{
    struct dl_arena *const arena = dl_arena_new();
    const double all = TOKENS * HIDDEN / HEADS * (HEADS + 2 * KEY_HEADS);
    const double clears = 3 * bf16, fills = 2 * bf16, adds = 2 * 3 * bf16;
    check("slices", beside(arena, DL_ITEM_B, "qkv", "megatron-deepspeed", 1), (clears + fills + adds) * all, 0.02);
    dl_arena_free(arena);
}
END_TEST

/* XeTLA's backward has a group of threads for each head of each sample, which fills a core: 8 of the 56 of a tile work.
 */
START_TEST(attention_of_few_heads_leaves_cores_idle)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session s;
    const double flop = 2.5 * 2 * HEADS * (double)TOKENS * TOKENS * HIDDEN / HEADS,
                 core_flop_per_s = 0.25 * 367e12 / 56;
    open_with(&s, arena, "megatron-deepspeed-xpu", _i ? "workload.kv_heads=8" : NULL); /* the same without groups */
    ck_assert_double_ge(device_s(&s, DL_ITEM_B, "attention"), flop / (HEADS * core_flop_per_s));
    dl_session_close(&s);
    dl_arena_free(arena);
}
END_TEST

/* What passes over gradients in fp32 at the end of a step, whole on each replica even where ZeRO cuts the optimizer.
 * DeepSpeed: into a buffer, divided, out of it. nanotron: norm, clipping, zeros (optim/clip_grads.py, zero_grad). */
static const struct {
    const char *software, *stack;
    double passes;
} buckets[] = {{"megatron-deepspeed", "{\"name\":\"data\"}", 2 + 2 + 2},
               {"megatron-deepspeed", "{\"name\":\"data\"},{\"name\":\"zero\",\"stage\":1}", 2 + 2 + 2},
               {"nanotron", "{\"name\":\"data\"},{\"name\":\"zero\",\"stage\":1}", 1 + 2 + 1}};

START_TEST(whole_gradients_are_passed_over_at_the_end)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session s;
    const struct analytic_run run = {.topo = "aurora",
                                     .workload = MODEL,
                                     .software = buckets[_i].software,
                                     .head =
                                         "\"devices\":2,\"global_batch\":2,\"microbatch\":1,\"precision\":\"bf16\",",
                                     .stack = buckets[_i].stack};
    ck_assert_msg(analytic_run(&run, arena, &s), "%s", s.err.text);
    const struct dl_template *const end = &s.lowered.programs[0].end;
    double sum = 0;
    for (size_t i = 0; i < end->n_instructions; i++)
        if (end->instructions[i].name && strcmp(end->instructions[i].name, "bucket") == 0)
            sum += end->instructions[i].bytes;
    check("buckets", sum, buckets[_i].passes * fp32 * dl_model_parameters(&s.model), 1e-9);
    dl_session_close(&s);
    dl_arena_free(arena);
}
END_TEST

/* Scores in bf16 are read thrice and written; backward the result in fp32 and its gradient are read twice, the gradient
 * of the scores is written. */
START_TEST(softmax_of_paxml_passes_over_scores)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session s;
    const double scores = (double)HEADS * TOKENS * TOKENS;
    const struct analytic_run run = {.topo = "selene",
                                     .workload = MODEL,
                                     .software = "paxml-2023",
                                     .head =
                                         "\"devices\":1,\"global_batch\":1,\"microbatch\":1,\"precision\":\"bf16\",",
                                     .stack = ""};
    ck_assert_msg(analytic_run(&run, arena, &s), "%s", s.err.text);
    const double forward = (3 + 1) * bf16 * scores, backward = (2 * (fp32 + bf16) + bf16) * scores;
    check("softmax", moved(&s, DL_ITEM_F, "softmax"), forward, 1e-9);
    check("softmax, backward", moved(&s, DL_ITEM_B, "softmax"), backward, 2e-3);
    dl_session_close(&s);
    dl_arena_free(arena);
}
END_TEST

/* InternEvo's loss reads logits in fp32 twice; its metric goes over them: max, max, argmax, x - max, exp in place, sum.
 */
START_TEST(accuracy_of_internevo_passes_over_logits)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session s;
    const double logits = (double)TOKENS * VOCABULARY;
    const struct analytic_run run = {.topo = "internevo-a100",
                                     .workload = MODEL,
                                     .software = "internevo",
                                     .head =
                                         "\"devices\":1,\"global_batch\":1,\"microbatch\":1,\"precision\":\"bf16\",",
                                     .stack = ""};
    ck_assert_msg(analytic_run(&run, arena, &s), "%s", s.err.text);
    check("loss", moved(&s, DL_ITEM_F, "cross_entropy"), (2 + 1 + 1 + 1 + 2 + 2 + 1) * fp32 * logits, 1e-9);
    check("cast", moved(&s, DL_ITEM_F, "logits_to_fp32"), (bf16 + fp32) * logits, 1e-9);
    dl_session_close(&s);
    dl_arena_free(arena);
}
END_TEST

/* torchtitan: to fp32, times complex numbers, back to bf16; fms-fsdp has real ones, which are compiled. */
START_TEST(rotary_of_torchtitan_is_not_compiled)
{
    static const char *const software[] = {"torchtitan", "fms-fsdp"};
    const double elements = TOKENS * HIDDEN / HEADS * (HEADS + KEY_HEADS);
    const double bytes = (bf16 + fp32) + (fp32 + fp32) + (fp32 + bf16), compiled = 1.85 * (bf16 + bf16);
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session s;
    const struct analytic_run run = {.topo = "selene",
                                     .workload = MODEL,
                                     .software = software[_i],
                                     .head =
                                         "\"devices\":1,\"global_batch\":1,\"microbatch\":1,\"precision\":\"bf16\",",
                                     .stack = ""};
    ck_assert_msg(analytic_run(&run, arena, &s), "%s", s.err.text);
    check(software[_i], moved(&s, DL_ITEM_F, "rotary"), (_i ? compiled : bytes) * elements, 1e-9);
    dl_session_close(&s);
    dl_arena_free(arena);
}
END_TEST

/* Reads and writes: x^3, times a number, plus x, times a number, tanh, plus 1; half of x; their product. Backward: of
 * the product to both, halved, of tanh, twice times a number, of the power (square, times 3, times the gradient), two
 * sums. */
START_TEST(gelu_of_gpt2_is_computed_by_parts)
{
    const double elements = (double)TOKENS * FFN, forward = 2 + 2 + 3 + 2 + 2 + 2 + 2 + 3,
                 backward = (3 + 3) + 2 + 3 + (2 + 2) + (2 + 2 + 3) + (3 + 3);
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session s;
    const struct analytic_run run = {
        .topo = "v100-pcie",
        .workload =
            "{\"schema\":\"dlsim/workload/1\",\"source\":\"a test\",\"kind\":\"transformer\",\"layers\":1,\"hidden\":"
            "1024,\"ffn\":4096,\"heads\":8,\"seq\":8192,\"vocab\":8192}",
        .software = "pytorch-transformers-gpt2",
        .head = "\"devices\":1,\"global_batch\":1,\"microbatch\":1,\"precision\":\"fp32\",",
        .stack = ""};
    ck_assert_msg(analytic_run(&run, arena, &s), "%s", s.err.text);
    check("gelu", moved(&s, DL_ITEM_F, "activation"), forward * fp32 * elements, 1e-9);
    check("gelu, backward", moved(&s, DL_ITEM_B, "activation"), backward * fp32 * elements, 1e-3);
    dl_session_close(&s);
    dl_arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("eager_passes");
    TCase *const tests = tcase_create("bytes");
    tcase_add_test(tests, passes_of_the_code_are_those_of_the_file);
    tcase_add_test(tests, squares_of_relu_in_nemo_are_not_one_kernel);
    tcase_add_test(tests, gradients_of_slices_are_as_large_as_what_was_cut);
    tcase_add_loop_test(tests, attention_of_few_heads_leaves_cores_idle, 0, 2);
    tcase_add_loop_test(tests, whole_gradients_are_passed_over_at_the_end, 0, (int)DL_COUNT(buckets));
    tcase_add_test(tests, softmax_of_paxml_passes_over_scores);
    tcase_add_test(tests, accuracy_of_internevo_passes_over_logits);
    tcase_add_loop_test(tests, rotary_of_torchtitan_is_not_compiled, 0, 2);
    tcase_add_test(tests, gelu_of_gpt2_is_computed_by_parts);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
