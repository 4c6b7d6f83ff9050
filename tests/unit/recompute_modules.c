/* recompute_modules.c - parts of blocks done again: their kernels, and what need not be kept, counted by hand. */
#define _GNU_SOURCE /* fork, pipe */
#include <math.h>
#include <string.h>

#include "tests/unit/allocated.h"
#include "tests/unit/divided_step.h"

/* The first block is dense, the second has experts. */
#define MODEL                                                                                                          \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':4,"            \
    "'head_size':16,'seq':32,'vocab':64,'ffn':128,'norm':'rmsnorm','activation':'swiglu','positions':'rotary',"        \
    "'bias':false,'dropout':false,'q_rank':24,'kv_rank':8,'rope_size':4,'value_size':16,'experts':4,'top_k':2,"        \
    "'expert_ffn':32,'shared_experts':1,'dense_layers':1}"

enum { tokens = 32, hidden = 64, heads = 4, ffn = 128, expert_ffn = 32, top_k = 2, n_experts = 4 };
enum { latent = 24 + 8, queries_keys_values = heads * (20 + 20 + 16) };
enum { gate_up_result = 3 }; /* what an activation is given, and what it makes */
enum { n_blocks = 2 };

static const double exactly = 1e-12;

static const struct module_case {
    const char *modules;
    double elements[n_blocks]; /* of a token, that are not kept */
    const char *kernels[n_blocks];
} cases[] = {
    {"'layernorm'", {hidden, 2 * hidden}, {" norm1 ", " norm1 norm2 "}},
    {"'mla_up_proj'",
     {latent + queries_keys_values, latent + queries_keys_values},
     {" q_norm q_up kv_norm kv_up rotary ", " q_norm q_up kv_norm kv_up rotary "}},
    {"'mlp'", {hidden + gate_up_result * ffn, 0}, {" norm2 fc1 activation fc2 ", " "}},
    {"'moe_act'", {0, top_k *expert_ffn}, {" ", " activation "}},
    {"'shared_experts'", {0, gate_up_result *expert_ffn}, {" ", " shared_fc1 shared_activation shared_fc2 "}},
    {"'moe'",
     {0, 2 * n_experts + gate_up_result *expert_ffn + top_k *(gate_up_result *expert_ffn + 2 * hidden)},
     {" ",
      " router top_k shared_fc1 shared_activation shared_fc2 permute expert_fc1 activation expert_fc2 unpermute "}},
    {"'layernorm','moe_act'", {hidden, 2 * hidden + top_k *expert_ffn}, {" norm1 ", " norm1 norm2 activation "}},
};

static void open_case(struct dl_session *t, const char *modules)
{
    char stack[300] = "{'name':'pipeline','ways':2}";
    if (modules)
        snprintf(stack, sizeof stack,
                 "{'name':'pipeline','ways':2},{'name':'recompute','mode':'selective','modules':[%s]}", modules);
    /* Which leaves out ends of whole blocks only. */
    static const char software[] = "{'schema':'dlsim/software/1','source':'a test','recomputes_needed':true}";
    open_step(t, &(struct step){.system = FAST_SYSTEM,
                                .software = software,
                                .workload = MODEL,
                                .head = "'global_batch':8,'microbatch':1",
                                .stack = stack});
}

static bool is_named(const char *kernels, const struct dl_instruction *of, bool after_shared)
{
    char word[80];
    const char *const of_shared = after_shared && strcmp(of->name, "activation") == 0 ? "shared_" : "";
    snprintf(word, sizeof word, " %s%s ", of_shared, of->name);
    return strstr(kernels, word);
}

/* The activation after shared_fc1 is that of the shared experts. */
static double forward_s(const struct dl_template *forward, const char *kernels)
{
    double sum = 0;
    bool after_shared = false;
    for (size_t i = 0; i < forward->n_instructions; i++) {
        const struct dl_instruction *const of = &forward->instructions[i];
        if (is_named(kernels, of, after_shared)) sum += of->device_s;
        after_shared = strcmp(of->name, "shared_fc1") == 0;
    }
    return sum;
}

START_TEST(kernels_of_modules_are_done_again)
{
    struct dl_session t;
    open_case(&t, cases[_i].modules);
    for (uint32_t i = 0; i < n_blocks; i++) {
        const struct dl_position *const p = &t.lowered.positions[i];
        const double again = forward_s(&p->items[DL_ITEM_F], cases[_i].kernels[i]);
        check_close(cases[_i].modules, p->items[DL_ITEM_B].total.by_cause[DL_CAUSE_RECOMPUTE], again, exactly);
        ck_assert(again > 0 || !cases[_i].kernels[i][1]);
    }
    dl_session_close(&t);
}
END_TEST

START_TEST(what_modules_make_is_not_kept)
{
    struct dl_session t, plain;
    open_case(&t, cases[_i].modules);
    open_case(&plain, NULL);
    for (size_t i = 0; i < n_blocks; i++) {
        const size_t block = 1 + i;
        const double dropped = activation_bytes * tokens * cases[_i].elements[i];
        check_close(cases[_i].modules, saved_bytes(&plain, block) - saved_bytes(&t, block), dropped, exactly);
        check_close(cases[_i].modules, allocated(&t, DL_TENSOR_RECOMPUTED, block), dropped, exactly);
    }
    dl_session_close(&t);
    dl_session_close(&plain);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("recompute_modules");
    tcase_add_loop_test(tests, kernels_of_modules_are_done_again, 0, (int)DL_COUNT(cases));
    tcase_add_loop_test(tests, what_modules_make_is_not_kept, 0, (int)DL_COUNT(cases));
    Suite *const suite = suite_create("recompute_modules");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
