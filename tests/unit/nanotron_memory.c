/* nanotron_memory.c - what PyTorch holds for nanotron, by closed forms of its code. */
#include <math.h>

#include "tests/unit/analytic_run.h"

static struct dl_arena *arena;

static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

struct model {
    int layers, hidden, ffn, heads, kv_heads, seq, vocab;
};
static const struct model llama = {8, 1024, 4096, 16, 16, 4096, 8192};

struct answer {
    struct dl_memory_use use; /* of the first stage */
    double parameters;
};

static struct answer run(const struct model *m, const char *head, const char *stack, const char *a, const char *b)
{
    const char *const workload = dl_arena_format(
        arena,
        "{\"schema\":\"dlsim/workload/1\",\"source\":\"a test\",\"kind\":\"transformer\",\"layers\":%d,\"hidden\":%d,"
        "\"ffn\":%d,\"heads\":%d,\"kv_heads\":%d,\"seq\":%d,\"vocab\":%d,\"activation\":\"swiglu\",\"norm\":"
        "\"rmsnorm\","
        "\"positions\":\"rotary\",\"bias\":false,\"dropout\":false,\"tied_embedding\":false}",
        m->layers, m->hidden, m->ffn, m->heads, m->kv_heads, m->seq, m->vocab);
    const struct analytic_run r = {
        .topo = "p5", .workload = workload, .software = "nanotron", .head = head, .stack = stack, .set = {a, b}};
    struct dl_session s;
    ck_assert_msg(analytic_run(&r, arena, &s), "%s", s.err.text);
    const struct answer out = {s.memory[0], dl_model_parameters(&s.model)};
    dl_session_close(&s);
    return out;
}

#define HEAD(batch) "\"devices\":8,\"global_batch\":" batch ",\"microbatch\":1,\"precision\":\"bf16\","
#define DATA "{\"name\":\"data\"}"
#define ZERO DATA ",{\"name\":\"zero\",\"stage\":1}"

/* In bf16: what both norms and all four products are given, queries, keys and values, silu and what it is given. Where
 * all heads have keys of their own, queries are a part of one tensor with keys and values, which are then copied. */
static double saved_bytes(const struct model *m)
{
    const double width = (double)m->hidden * m->kv_heads / m->heads;
    const double queries = m->kv_heads == m->heads ? 3.0 * m->hidden : m->hidden;
    return 2.0 * m->seq * (5.0 * m->hidden + queries + 2 * width + 4.0 * m->ffn);
}

START_TEST(a_view_keeps_queries_keys_and_values)
{
    struct model m = llama, more = llama;
    m.kv_heads = more.kv_heads = _i ? 4 : 16;
    more.layers++;
    const double each =
        run(&more, HEAD("8"), DATA, NULL, NULL).use.activations - run(&m, HEAD("8"), DATA, NULL, NULL).use.activations;
    ck_assert_double_eq_tol(each, saved_bytes(&m), 1e-3 * each);
}
END_TEST

/* All gradients in bf16 are there at the end of a backward, and none at its begin: few tokens show the one, many the
 * other. */
START_TEST(gradients_in_bf16_come_and_go)
{
    const char *const made = "software.backward_gradient_bytes=2", *const none = "software.backward_gradient_bytes=0",
                      *const views = "software.bucket_copies=\"none\"";
    struct model few = llama, many = llama;
    few.seq = 2;
    many.vocab = 65536;
    const struct answer with = run(&few, HEAD("8"), DATA, made, views),
                        without = run(&few, HEAD("8"), DATA, none, views);
    ck_assert_double_eq_tol(with.use.peak - without.use.peak, 2 * with.parameters, 0.05 * with.parameters);
    ck_assert(run(&many, HEAD("8"), DATA, made, views).use.peak - run(&many, HEAD("8"), DATA, none, views).use.peak <
              0.5 * with.parameters);
}
END_TEST

/* The parts of eight replicas, the own part and all of them, in bf16, less the moments in fp32 that come later. */
START_TEST(flat_buffers_of_a_gather_are_held)
{
    const char *const flat = "software.flat_gathers=true", *const none = "software.flat_gathers=false";
    struct model m = llama;
    m.seq = 256;
    const struct answer with = run(&m, HEAD("8"), ZERO, flat, NULL), without = run(&m, HEAD("8"), ZERO, none, NULL);
    const double n = 8, bytes = with.parameters * (2 * (2 + 1 / n) - 8 / n);
    ck_assert_double_eq_tol(with.use.fragmentation - without.use.fragmentation, bytes, 1e-6 * bytes);
    ck_assert(with.use.peak == without.use.peak && with.use.beside == without.use.beside);
    ck_assert(run(&m, HEAD("8"), DATA, flat, NULL).use.fragmentation ==
              run(&m, HEAD("8"), DATA, none, NULL).use.fragmentation);
}
END_TEST

/* Logits are larger than the parameters, whose buffers go where they were. */
START_TEST(flat_buffers_go_where_larger_ones_were)
{
    struct model m = llama;
    m.layers = 1, m.seq = 16384, m.vocab = 65536;
    ck_assert(run(&m, HEAD("8"), ZERO, "software.flat_gathers=true", NULL).use.fragmentation ==
              run(&m, HEAD("8"), ZERO, "software.flat_gathers=false", NULL).use.fragmentation);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("bytes");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, a_view_keeps_queries_keys_and_values, 0, 2);
    tcase_add_test(tests, gradients_in_bf16_come_and_go);
    tcase_add_test(tests, flat_buffers_of_a_gather_are_held);
    tcase_add_test(tests, flat_buffers_go_where_larger_ones_were);
    Suite *const suite = suite_create("nanotron_memory");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
