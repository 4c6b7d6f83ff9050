/* told_strategies.c - what strategies say of their entries in the head of a report: what is not usual, and nothing
 * else.
 */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"

static const struct {
    const char *stack, *words;
} entries[] = {
    {"{'name':'recompute','mode':'none'}", ""},
    {"{'name':'recompute','mode':'full'}", "full recomputation;"},
    {"{'name':'recompute','mode':'selective'}", "selective recomputation;"},
    {"{'name':'recompute','mode':'selective','modules':['mlp','core_attn']}",
     "selective recomputation of core_attn, mlp;"},
    {"{'name':'recompute','mode':'full','layers':2}", "full recomputation of 2 blocks;"},
    {"{'name':'recompute','mode':'full','every':2}", "full recomputation in groups of 2;"},
    {"{'name':'offload','optimizer':0.5}", "50 % of optimizer offloaded;"},
    {"{'name':'offload','optimizer':1,'parameters':0.25}",
     "100 % of optimizer offloaded;25 % of parameters offloaded;"},
    {"{'name':'recompute','mode':'full'},{'name':'offload','activations':1}",
     "full recomputation;100 % of activations offloaded;"},
    {"{'name':'zero','stage':3}", ""},
    {"{'name':'zero','overlap':true}", "parameters gathered beside forwards;"},
    {"{'name':'zero','stage':1,'gather_bits':8}", "parameters gathered in 8 bits;"},
    {"{'name':'zero','stage':3,'secondary_ways':2,'gather_bits':8,'scatter_bits':4}",
     "parameters gathered in 8 bits;gradients scattered in 4 bits;"},
};

struct said {
    char words[200];
    size_t n;
};

static void say(void *user, const char *words)
{
    struct said *const s = user;
    s->n += (size_t)snprintf(s->words + s->n, sizeof s->words - s->n, "%s;", words);
    ck_assert_uint_lt(s->n, sizeof s->words);
}

START_TEST(an_entry_tells_what_is_not_usual)
{
    struct dl_session t;
    struct said said = {.n = 0};
    char stack[200];
    snprintf(stack, sizeof stack, "{'name':'data'},%s", entries[_i].stack);
    open_step(&t, &(struct step){.workload = FOUR_BLOCKS,
                                 .system = IDEAL_SYSTEM("1e10", "1e-6"),
                                 .head = "'precision':'fp16','devices':4,'global_batch':4",
                                 .stack = stack});
    for (const struct dl_stack *level = t.job.stack; level->strategy; level++)
        if (level->strategy->tell) level->strategy->tell(level->options, say, &said);
    ck_assert_str_eq(said.words, entries[_i].words);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("told_strategies");
    tcase_add_loop_test(tests, an_entry_tells_what_is_not_usual, 0, DL_COUNT(entries));
    Suite *const suite = suite_create("told_strategies");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
