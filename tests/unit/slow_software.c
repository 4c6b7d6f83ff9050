/* slow_software.c - what hosts, small messages and allocators add: each key of a software file by its formula. */
#include <math.h>

#include "tests/unit/analytic_run.h"

#define MODEL(hidden, heads)                                                                                           \
    "{\"schema\":\"dlsim/workload/1\",\"source\":\"a test\",\"kind\":\"transformer\",\"layers\":8,\"hidden\":" hidden  \
    ",\"heads\":" heads ",\"seq\":512,\"vocab\":8192,\"tied_embedding\":false}"

static struct dl_arena *arena;

static void begin(void) { arena = dl_arena_new(); }

static void end(void) { dl_arena_free(arena); }

struct answer {
    double step_s, parameters, peak, beside, n_tensors, n_layers;
    bool fits;
};

static struct answer run_model(const char *model, const char *stack, const char *head, const char *set,
                               const char *also)
{
    struct dl_session s;
    const struct analytic_run r = {.topo = "p5",
                                   .workload = model,
                                   .software = "nanotron",
                                   .head = head,
                                   .stack = stack,
                                   .set = {"-topo.variability", set, also}};
    ck_assert_msg(analytic_run(&r, arena, &s), "%s", s.err.text);
    struct answer a = {.step_s = s.report.result.step_s,
                       .parameters = dl_model_parameters(&s.model),
                       .peak = s.memory[0].peak,
                       .beside = s.memory[0].beside,
                       .fits = dl_run_fits(&s.report)};
    for (size_t i = 0; i < s.model.n_layers; i++) {
        a.n_tensors += s.model.layers[i].n_tensors;
        a.n_layers += s.model.layers[i].n_tensors > 0;
    }
    dl_session_close(&s);
    return a;
}

static struct answer run(const char *stack, const char *head, const char *set, const char *also)
{
    return run_model(MODEL("1024", "16"), stack, head, set, also);
}

#define HEAD(devices) "\"devices\":" devices ",\"global_batch\":8,\"microbatch\":1,\"precision\":\"bf16\","
#define DATA "{\"name\":\"data\"}"
#define HEAD16 "\"devices\":16,\"global_batch\":16,\"microbatch\":1,\"precision\":\"bf16\","
static const char no_overlap[] = "software.host_s_per_launch=0";

/* Hosts that agree on collectives: of eight replicas there is one in a step, an all-reduce of eight ranks. */
START_TEST(ranks_add_to_each_collective)
{
    const double each_s = 10e-3; /* far more than what it could hide behind */
    static const char *const far = "software.collective_near_fraction=1";
    const struct answer without = run(DATA, HEAD("8"), far, NULL),
                        with = run(DATA, HEAD("8"), far, "software.collective_rank_host_s=10e-3");
    ck_assert_double_eq_tol(with.step_s - without.step_s, 8 * each_s, 0.5 * each_s); /* some of it beside the device */
}
END_TEST

/* Sixteen replicas are on two nodes: eight of them are near, and add a part of what the others do. */
START_TEST(near_ranks_add_less_to_each_collective)
{
    static const char *const far = "software.collective_near_fraction=1", *const near =
                                                                              "software.collective_near_fraction=0";
    const struct answer all = run(DATA, HEAD16, "software.collective_rank_host_s=10e-3", far),
                        others = run(DATA, HEAD16, "software.collective_rank_host_s=10e-3", near);
    const double each_s = 10e-3;
    ck_assert_double_eq_tol(all.step_s - others.step_s, 8 * each_s, 0.5 * each_s);
}
END_TEST

/* With 6 tensor ways on nodes of 8 the first group is on one node; of the second 4 ranks of 6 are on the next. */
START_TEST(ranks_are_far_where_any_group_crosses_nodes)
{
    static const char stack[] = "{\"name\":\"tensor\",\"ways\":6}," DATA, model[] = MODEL("768", "12"),
                      each[] = "software.collective_rank_host_s=10e-3", none[] = "software.collective_rank_host_s=0";
    const double none_s = run_model(model, stack, HEAD("24"), none, NULL).step_s,
                 all_s = run_model(model, stack, HEAD("24"), each, "software.collective_near_fraction=1").step_s,
                 far_s = run_model(model, stack, HEAD("24"), each, "software.collective_near_fraction=0").step_s;
    ck_assert_double_eq_tol((far_s - none_s) / (all_s - none_s), 4.0 / 6, 0.01);
}
END_TEST

/* ZeRO 1: every tensor of every replica is copied alone. */
START_TEST(gathered_parts_are_copied_one_by_one)
{
    static const char stack[] = DATA ",{\"name\":\"zero\",\"stage\":1}";
    const double each_s = 1e-3;
    const struct answer without = run(stack, HEAD("8"), no_overlap, "software.gather_part_host_s=0"),
                        with = run(stack, HEAD("8"), no_overlap, "software.gather_part_host_s=1e-3");
    const double added_s = 8 * with.n_tensors * each_s;
    ck_assert_double_gt(with.n_tensors, 50);
    ck_assert_double_eq_tol(with.step_s - without.step_s, added_s, 0.01 * added_s);
}
END_TEST

/* ZeRO 3: so is the part of every replica in each gather, before forward and backward, and in each scatter. */
START_TEST(gathered_and_scattered_parts_are_copied_one_by_one)
{
    static const char stack[] = DATA ",{\"name\":\"zero\",\"stage\":3}";
    const double each_s = 1e-3;
    const struct answer without = run(stack, HEAD("8"), no_overlap, "software.gather_part_host_s=0"),
                        with = run(stack, HEAD("8"), no_overlap, "software.gather_part_host_s=1e-3");
    const double added_s = 8 * 3 * with.n_layers * each_s;
    ck_assert_double_gt(with.n_layers, 8);
    ck_assert_double_eq_tol(with.step_s - without.step_s, added_s, 0.03 * added_s);
}
END_TEST

/* ZeRO 3: vectors that stay are put together after the update, those of blocks: two norms and four biases in each of 8.
 */
START_TEST(vectors_that_stay_are_copied_one_by_one)
{
    static const char stack[] = DATA ",{\"name\":\"zero\",\"stage\":3}";
    const double each_s = 1e-3, added_s = 8 * 8 * 8 * each_s;
    const struct answer without = run(stack, HEAD("8"), no_overlap, NULL),
                        with = run(stack, HEAD("8"), no_overlap, "software.vector_part_host_s=1e-3");
    ck_assert_double_eq_tol(with.step_s - without.step_s, added_s, 0.01 * added_s);
}
END_TEST

/* Scatters that kernels wait for add all of their time, where they would have been hidden by them. */
START_TEST(kernels_may_wait_for_scatters)
{
    static const char stack[] = DATA ",{\"name\":\"zero\",\"stage\":3}";
    static const char head[] = "\"devices\":8,\"global_batch\":512,\"microbatch\":64,\"precision\":\"bf16\",";
    const struct answer beside = run(stack, head, no_overlap, NULL),
                        between = run(stack, head, no_overlap, "software.waits_for_scatters=true");
    const double least_s = 2 * beside.parameters * 7 / 8 / 450e9; /* at the rate of NVLink, each way */
    ck_assert_double_gt(between.step_s - beside.step_s, least_s);
}
END_TEST

/* And none goes beside gathers: all of forward and backward, and of scatters, are added. */
START_TEST(kernels_may_wait_for_all_collectives)
{
    static const char stack[] = DATA ",{\"name\":\"zero\",\"stage\":3}";
    static const char head[] = "\"devices\":8,\"global_batch\":512,\"microbatch\":64,\"precision\":\"bf16\",";
    const struct answer scatters = run(stack, head, no_overlap, "software.waits_for_scatters=true"),
                        all = run(stack, head, no_overlap, "software.waits_for_collectives=true");
    const double ends = 0.2; /* of the parameters, whose gathers nothing hides */
    const double least_s = (1 - ends) * 2 * 2 * all.parameters * 7 / 8 / 450e9;
    ck_assert_double_gt(all.step_s - scatters.step_s, least_s);
    ck_assert(run(stack, head, no_overlap, "device.waits_for_collectives=true").step_s == all.step_s);
}
END_TEST

/* The first micro-batch goes through all stages and back: twice three sends, each so many messages. */
START_TEST(sends_are_several_messages)
{
    static const char stack[] = "{\"name\":\"pipeline\",\"ways\":4}," DATA;
    static const char head[] = "\"devices\":4,\"global_batch\":1,\"microbatch\":1,\"precision\":\"bf16\",";
    const double one = run(stack, head, no_overlap, "software.send_messages=1").step_s,
                 three = run(stack, head, no_overlap, "software.send_messages=3").step_s,
                 five = run(stack, head, no_overlap, "software.send_messages=5").step_s;
    ck_assert_double_gt(three - one, 6 * 2 * 10e-6); /* a message takes NCCL more than 10 us */
    ck_assert_double_eq_tol(five - three, three - one, 1e-3 * (three - one));
}
END_TEST

#define PARTS "{\"name\":\"pipeline\",\"ways\":4},{\"name\":\"tensor\",\"ways\":2}," DATA
#define WHOLE "{\"name\":\"pipeline\",\"ways\":4}," DATA
static const char one_of_8[] = "\"devices\":8,\"global_batch\":1,\"microbatch\":1,\"precision\":\"bf16\",",
                  one_of_4[] = "\"devices\":4,\"global_batch\":1,\"microbatch\":1,\"precision\":\"bf16\",";

/* Of one micro-batch: three stages gather their inputs and three gradients of outputs; then three their outputs too. */
START_TEST(outputs_sent_in_parts_are_gathered_again)
{
    static const char again[] = "software.gathers_outputs=true", once[] = "software.gathers_outputs=false",
                      moved[] = "software.part_moves=50", still[] = "software.part_moves=0";
    const double gathered_s = run(PARTS, one_of_8, again, still).step_s - run(PARTS, one_of_8, once, still).step_s,
                 nine_s = run(PARTS, one_of_8, again, moved).step_s - run(PARTS, one_of_8, again, still).step_s,
                 six_s = run(PARTS, one_of_8, once, moved).step_s - run(PARTS, one_of_8, once, still).step_s;
    ck_assert_double_gt(gathered_s, 3 * 10e-6); /* a gather takes NCCL more than 10 us */
    ck_assert_double_gt(six_s, 6 * 50 * 512 * 1024 * 2 / 3.35e12);
    ck_assert_double_eq_tol(nine_s, 1.5 * six_s, 1e-9 * nine_s);
    ck_assert(run(WHOLE, one_of_4, again, moved).step_s == run(WHOLE, one_of_4, once, still).step_s);
}
END_TEST

/* One message more than the three of this software. */
START_TEST(shapes_of_parts_are_messages_that_the_host_waits_for)
{
    static const char shapes[] = "software.parts_have_shapes=true", ahead[] = "software.drains_at_sends=false",
                      waits[] = "software.drains_at_sends=true";
    const double said = run(PARTS, one_of_8, "software.send_messages=4", waits).step_s;
    ck_assert(run(PARTS, one_of_8, shapes, ahead).step_s == said);
    ck_assert_double_gt(said - run(PARTS, one_of_8, ahead, NULL).step_s, 6 * 10e-6);
    ck_assert(run(WHOLE, one_of_4, shapes, ahead).step_s == run(WHOLE, one_of_4, ahead, NULL).step_s);
}
END_TEST

/* A device that has room for the peak and no byte more. */
START_TEST(what_is_beside_the_peak_must_fit_too)
{
    const struct answer a = run(DATA, HEAD("8"), "software.keeps_fragments=false", "software.outside_bytes=0");
    const struct answer b = run(DATA, HEAD("8"), "software.keeps_fragments=true", "software.outside_bytes=1e9");
    ck_assert(a.beside == 0);
    ck_assert_double_gt(b.beside, 1e9);
    const char *const room = dl_arena_format(arena, "device.memory_bytes=%.17g", a.peak + 0.5e9);
    ck_assert(run(DATA, HEAD("8"), room, "software.outside_bytes=0").fits ==
              (run(DATA, HEAD("8"), room, "software.outside_bytes=0").beside <= 0.5e9));
    ck_assert(!run(DATA, HEAD("8"), room, "software.outside_bytes=1e9").fits);
}
END_TEST

static struct answer run_images(const char *host_s)
{
    struct dl_session s;
    const struct analytic_run r = {.topo = "selene",
                                   .workload = "resnet50",
                                   .software = "dle-convnets",
                                   .head = "\"devices\":1,\"global_batch\":256,\"microbatch\":256,"
                                           "\"precision\":\"fp16\",\"optimizer\":\"momentum\",",
                                   .stack = "",
                                   .set = {host_s}};
    ck_assert_msg(analytic_run(&r, arena, &s), "%s", s.err.text);
    struct answer a = {.step_s = s.report.result.step_s};
    for (size_t i = 0; i < s.model.n_layers; i++) a.n_tensors += s.model.layers[i].n_tensors;
    dl_session_close(&s);
    return a;
}

/* The device is busy for long with 256 images: of all launches only those are seen that come after a wait. */
START_TEST(launches_of_an_optimizer_that_waits_are_seen)
{
    const double more_s = 20e-6, launches_of_tensor = 3.34, most_after_the_end = 4;
    const struct answer fast = run_images("software.host_s_per_launch=10e-6"),
                        slow = run_images("software.host_s_per_launch=30e-6");
    const double seen = (slow.step_s - fast.step_s) / more_s, of_optimizer = launches_of_tensor * slow.n_tensors;
    ck_assert_double_eq(slow.n_tensors, 161);
    ck_assert_double_ge(seen, of_optimizer * (1 - 1e-6));
    ck_assert_double_le(seen, of_optimizer + most_after_the_end);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("slow software");
    TCase *const tests = tcase_create("slow software");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, ranks_add_to_each_collective);
    tcase_add_test(tests, near_ranks_add_less_to_each_collective);
    tcase_add_test(tests, ranks_are_far_where_any_group_crosses_nodes);
    tcase_add_test(tests, gathered_parts_are_copied_one_by_one);
    tcase_add_test(tests, gathered_and_scattered_parts_are_copied_one_by_one);
    tcase_add_test(tests, vectors_that_stay_are_copied_one_by_one);
    tcase_add_test(tests, kernels_may_wait_for_scatters);
    tcase_add_test(tests, kernels_may_wait_for_all_collectives);
    tcase_add_test(tests, sends_are_several_messages);
    tcase_add_test(tests, outputs_sent_in_parts_are_gathered_again);
    tcase_add_test(tests, shapes_of_parts_are_messages_that_the_host_waits_for);
    tcase_add_test(tests, what_is_beside_the_peak_must_fit_too);
    tcase_add_test(tests, launches_of_an_optimizer_that_waits_are_seen);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
