/* lingering.c - what reduce-scatters were given is held until they are done, on hosts that are ahead. */
#include <math.h>
#include <string.h>

#include "tests/unit/analytic_run.h"
#include "tests/unit/row_predictions.h"

#define LAYERS 8
#define HIDDEN 1024
#define SEQ 4096
#define MODEL                                                                                                          \
    "{\"schema\":\"dlsim/workload/1\",\"source\":\"a test\",\"kind\":\"transformer\",\"layers\":8,\"hidden\":1024,"    \
    "\"heads\":16,\"seq\":4096,\"vocab\":8192,\"tied_embedding\":false}"
#define HEAD "\"devices\":8,\"global_batch\":8,\"microbatch\":8,\"precision\":\"bf16\","
#define BATCHES "\"devices\":8,\"global_batch\":64,\"microbatch\":8,\"precision\":\"bf16\","
#define TENSOR "{\"name\":\"tensor\",\"ways\":8,\"sequence\":true}"

static const double whole_bytes = 8.0 * SEQ * HIDDEN * 2; /* of an activation that is not cut */
static const double n_given = 2 * LAYERS + 1;             /* of a layer its attention and its MLP; the embedding */
static const char ahead[] = "software.host_s_per_launch=1e-12", no_queue[] = "software.launch_queue=0";

static struct dl_arena *arena;

static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

static struct dl_memory_use use_of(const char *stack, const char *head, const char *a, const char *b, const char *c)
{
    struct dl_session s;
    const struct analytic_run r = {
        .topo = "p5", .workload = MODEL, .software = "nanotron", .head = head, .stack = stack, .set = {a, b, c}};
    ck_assert_msg(analytic_run(&r, arena, &s), "%s", s.err.text);
    const struct dl_memory_use use = s.memory[0];
    dl_session_close(&s);
    return use;
}

/* Of a host that calls collectives for nothing. */
static double held(const char *stack, const char *head, const char *host, const char *queue)
{
    const char *const calls = "software.collective_host_s=0";
    return use_of(stack, head, host, calls, queue).fragmentation -
           use_of(stack, head, host, calls, no_queue).fragmentation;
}

START_TEST(a_host_that_is_ahead_holds_all_that_a_forward_gave)
{
    ck_assert_double_eq_tol(held(TENSOR, HEAD, ahead, NULL), n_given * whole_bytes, 1);
}
END_TEST

START_TEST(a_host_that_is_behind_holds_nothing)
{
    ck_assert_double_le(held(TENSOR, HEAD, "software.host_s_per_launch=0.1", NULL), whole_bytes);
}
END_TEST

START_TEST(nothing_is_held_without_tensor_ranks)
{
    ck_assert(held("{\"name\":\"data\"}", "\"devices\":8,\"global_batch\":64,\"microbatch\":8,", ahead, NULL) == 0);
}
END_TEST

/* Launches before those in the queue are done. */
START_TEST(a_short_queue_holds_less)
{
    const char *const host = "software.host_s_per_launch=1e-6";
    const double few = held(TENSOR, HEAD, host, "software.launch_queue=30"),
                 more = held(TENSOR, HEAD, host, "software.launch_queue=90");
    ck_assert_double_gt(few, 0);
    ck_assert_double_gt(more, few);
    ck_assert_double_lt(more, n_given * whole_bytes);
}
END_TEST

/* What hosts do between launches takes time, not room in the queue; parts of products take both. */
START_TEST(a_queue_counts_launches_not_time)
{
    static const char *const queue = "software.launch_queue=200";
    const double held_bytes = use_of(TENSOR, BATCHES, queue, NULL, NULL).fragmentation;
    ck_assert(use_of(TENSOR, BATCHES, queue, "software.batch_host_s=0.1", NULL).fragmentation == held_bytes);
    ck_assert(use_of(TENSOR, BATCHES, queue, "software.collective_host_s=0.01", NULL).fragmentation == held_bytes);
    ck_assert(use_of(TENSOR, BATCHES, queue, "software.gather_launches=30", NULL).fragmentation < held_bytes);
}
END_TEST

/* Each launch is done before the next. */
static const char slow[] = "software.host_s_per_launch=0.1", long_queue[] = "software.launch_queue=1000000";

static double lingers(const char *stack, const char *also)
{
    return use_of(stack, BATCHES, slow, long_queue, also).fragmentation -
           use_of(stack, BATCHES, slow, no_queue, also).fragmentation;
}

/* A queue with room for the whole step holds at the last of eight forwards all eight and seven backwards, with as many
 * reduce-scatters each or more. */
START_TEST(hosts_that_do_not_agree_drift_apart)
{
    ck_assert_double_ge(lingers(TENSOR, NULL), 15 * (n_given - 1) * whole_bytes);
    ck_assert_double_le(lingers(TENSOR, "software.collective_rank_host_s=1e-3"), whole_bytes);
}
END_TEST

/* The first stage of four has two layers and the embedding. While its second send waits, it launches the two forwards
 * that are left before it waits for a gradient. */
START_TEST(a_send_that_waits_holds_what_the_next_forwards_gave)
{
    static const char stack[] = "{\"name\":\"tensor\",\"ways\":2,\"sequence\":true},"
                                "{\"name\":\"pipeline\",\"ways\":4,\"schedule\":\"1f1b\"}";
    ck_assert_double_eq_tol(lingers(stack, NULL), 2 * (2 * LAYERS / 4 + 1) * whole_bytes, 1);
    ck_assert_double_le(lingers(stack, "software.drains_at_sends=true"), whole_bytes);
}
END_TEST

/* It is given back, all of it, so whether a step fits does not depend on it. */
START_TEST(a_device_that_is_full_gives_it_back)
{
    const char *const calls = "software.collective_host_s=0";
    const struct dl_memory_use without = use_of(TENSOR, HEAD, ahead, calls, no_queue);
    const double left = whole_bytes / 2;
    const char *const room = dl_arena_format(arena, "device.memory_bytes=%.17g", without.peak + without.beside + left);
    const struct dl_memory_use with = use_of(TENSOR, HEAD, ahead, calls, room);
    ck_assert(with.peak == without.peak && with.beside == without.beside);
    ck_assert(with.fragmentation == without.fragmentation);
}
END_TEST

/* ---- rows ---- */

#define ROW(id, keys)                                                                                                  \
    "{\"id\":\"" id "\",\"topo\":\"p5\",\"devices\":2,\"model\":\"Llama-like\",\"layers\":4,\"hidden\":1024,"          \
    "\"ffn\":4096,\"heads\":16,\"seq\":4096,\"vocab\":131072,\"global_batch\":1,\"microbatch\":1,\"tp\":1,\"pp\":2,"   \
    "\"dp\":1,\"software\":\"nanotron\",\"precision\":\"bf16\",\"step_s\":1,\"reserved_bytes\":1e10" keys "}"

/* Logits are on the last stage. */
START_TEST(a_row_says_which_device_it_tells_of)
{
    struct dl_row_prediction *const got =
        predict_rows(THREE_ROWS(ROW("a", ""), ROW("b", ",\"reserved_on\":\"fullest\""),
                                ROW("c", ",\"reserved_on\":\"first_stage\"")),
                     1, arena);
    ck_assert_double_eq(got[0].reserved_bytes, got[1].reserved_bytes);
    ck_assert_double_eq(got[0].peak_bytes, got[2].peak_bytes);
    ck_assert_double_lt(got[2].reserved_bytes, got[1].reserved_bytes - 4096.0 * 131072 * 4); /* logits in fp32 */
    dl_free(got);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("lingering");
    TCase *const tests = tcase_create("what is freed and not reused");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, a_host_that_is_ahead_holds_all_that_a_forward_gave);
    tcase_add_test(tests, a_host_that_is_behind_holds_nothing);
    tcase_add_test(tests, nothing_is_held_without_tensor_ranks);
    tcase_add_test(tests, a_short_queue_holds_less);
    tcase_add_test(tests, a_queue_counts_launches_not_time);
    tcase_add_test(tests, hosts_that_do_not_agree_drift_apart);
    tcase_add_test(tests, a_send_that_waits_holds_what_the_next_forwards_gave);
    tcase_add_test(tests, a_device_that_is_full_gives_it_back);
    tcase_add_test(tests, a_row_says_which_device_it_tells_of);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
