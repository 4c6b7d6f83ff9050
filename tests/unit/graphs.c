/* graphs.c - what the host launches when launches are replayed, and where it waits for the counts of experts. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/divided_step.h"

#define LAYERS 2
#define LAUNCH_S 1e-3
#define MODEL                                                                                                          \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':16,'seq':32,"  \
    "'vocab':512,'experts':4,'top_k':2,'bias':false}"
#define BATCH "'global_batch':8,'microbatch':2,'devices':4"
#define SOFTWARE(keys)                                                                                                 \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':1e-3,'collective_host_s':2e-3,"                \
    "'batch_host_s':3e-3,'attention':'flash'" keys "}"
#define STACK(more) "{'name':'expert','ways':2},{'name':'data'}" more

static const double exactly = 1e-9;

static void open_graphs(struct dl_session *t, const char *software, const char *stack)
{
    open_step(t, &(struct step){
                     .system = FAST_SYSTEM, .software = software, .workload = MODEL, .head = BATCH, .stack = stack});
}

static double host_s_of(const struct dl_session *t, enum dl_item_kind kind, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < item(t, kind)->n_instructions; i++)
        if (strncmp(item(t, kind)->instructions[i].name, name, strlen(name)) == 0)
            sum += item(t, kind)->instructions[i].host_s;
    return sum;
}

static double device_s_of(const struct dl_session *t, enum dl_item_kind kind, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < item(t, kind)->n_instructions; i++)
        if (strcmp(item(t, kind)->instructions[i].name, name) == 0) sum += item(t, kind)->instructions[i].device_s;
    return sum;
}

static double copy_s(const struct dl_session *t, double elements)
{
    const struct dl_kernel copy = {.kind = DL_KERNEL_MEMORY, .name = "copy", .elements = elements};
    return dl_price(&t->device, &copy, t->job.setting.precision).seconds;
}

static uint32_t count_drains(const struct dl_session *t, enum dl_item_kind kind)
{
    uint32_t n = 0;
    for (size_t i = 0; i < item(t, kind)->n_instructions; i++) n += item(t, kind)->instructions[i].kind == DL_DRAIN;
    return n;
}

/* The work of experts and their exchanges are launched as ever; the rest of each layer is one launch: the embedding,
 * two blocks and the head. */
START_TEST(what_depends_on_counts_is_not_replayed)
{
    struct dl_session eager, graphs;
    open_graphs(&eager, SOFTWARE(""), STACK(""));
    open_graphs(&graphs, SOFTWARE(""), STACK(",{'name':'graphs','scope':'outside_experts'}"));
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        check_close("experts", host_s_of(&graphs, kind, "expert_"), host_s_of(&eager, kind, "expert_"), exactly);
        check_close("travel", host_s_of(&graphs, kind, "alltoall"), host_s_of(&eager, kind, "alltoall"), exactly);
        check_close("graphs", host_s_of(&graphs, kind, "graph"), (LAYERS + 2) * LAUNCH_S, exactly);
        ck_assert(host_s_of(&eager, kind, "qkv") > 0);
        ck_assert_double_eq(host_s_of(&graphs, kind, "qkv"), 0);
        check_close("device", cause_s(&graphs, kind, DL_CAUSE_COMPUTE) - device_s_of(&graphs, kind, "copy_inputs"),
                    cause_s(&eager, kind, DL_CAUSE_COMPUTE), exactly);
    }
    dl_session_close(&eager);
    dl_session_close(&graphs);
}
END_TEST

/* The input of a block is read and written before its graph; backward the gradients of its tokens and of the residual,
 * and of shared experts, which tokens of experts may be narrower than. */
START_TEST(what_graphs_are_given_is_copied)
{
    enum { HIDDEN = 64, TOKENS = 2 * 32 };
    static const struct {
        const char *keys;
        double backward; /* over the input */
    } cases[] = {{"", 1},
                 {",'experts':4,'top_k':2", 2},
                 {",'experts':4,'top_k':2,'shared_experts':1", 3},
                 {",'experts':4,'top_k':2,'shared_experts':1,'expert_hidden':16", 2.25}};
    char model[512];
    snprintf(model, sizeof model,
             "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':2,'hidden':64,'heads':16,"
             "'seq':32,'vocab':512,'bias':false%s}",
             cases[_i].keys);
    struct dl_session t;
    open_step(&t, &(struct step){.system = FAST_SYSTEM,
                                 .software = SOFTWARE(""),
                                 .workload = model,
                                 .head = BATCH,
                                 .stack = "{'name':'data'},{'name':'graphs','scope':'outside_experts'}"});
    const double input = 2 * HIDDEN * TOKENS;
    check_close("forward", device_s_of(&t, DL_ITEM_F, "copy_inputs"), LAYERS * copy_s(&t, input), exactly);
    check_close("backward", device_s_of(&t, DL_ITEM_B, "copy_inputs"), LAYERS * copy_s(&t, cases[_i].backward * input),
                exactly);
    dl_session_close(&t);
}
END_TEST

START_TEST(a_step_that_is_one_graph_needs_no_host)
{
    struct dl_session t;
    open_graphs(&t, SOFTWARE(",'drains_at_dispatch':true"), STACK(",{'name':'graphs','scope':'step'}"));
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        ck_assert_double_eq(host_s_of(&t, kind, ""), 0);
        ck_assert_uint_eq(count_drains(&t, kind), 0);
        ck_assert_double_eq(cause_s(&t, kind, DL_CAUSE_HOST), 0);
    }
    dl_session_close(&t);
}
END_TEST

static double host_s_at_end(const struct dl_session *t, const char *name)
{
    const struct dl_template *const end = &t->lowered.programs[0].end;
    double sum = 0;
    for (size_t i = 0; i < end->n_instructions; i++)
        if (strcmp(end->instructions[i].name, name) == 0) sum += end->instructions[i].host_s;
    return sum;
}

/* The batch and the optimizer are launched as ever, the passes between them are not. */
START_TEST(a_graph_of_the_passes_leaves_the_optimizer_to_the_host)
{
    struct dl_session eager, t;
    open_graphs(&eager, SOFTWARE(""), STACK(""));
    open_graphs(&t, SOFTWARE(""), STACK(",{'name':'graphs','scope':'passes'}"));
    const double batch_s = host_s_of(&t, DL_ITEM_F, "batch");
    ck_assert_double_gt(batch_s, 0);
    ck_assert_double_eq(host_s_of(&t, DL_ITEM_F, ""), batch_s);
    ck_assert_double_eq(host_s_of(&t, DL_ITEM_B, ""), 0);
    ck_assert_double_gt(host_s_at_end(&t, "optimizer"), 0);
    ck_assert_double_eq(host_s_at_end(&t, "optimizer"), host_s_at_end(&eager, "optimizer"));
    dl_session_close(&eager);
    dl_session_close(&t);
}
END_TEST

#define PASSES ",{'name':'graphs','scope':'passes'}"
#define ZERO(keys) "{'name':'data'},{'name':'zero'," keys "}"

/* What gathers parameters after the update is launched with it, also beside what ZeRO 3 gathers before its use. */
START_TEST(a_graph_of_the_passes_leaves_what_follows_the_update_to_the_host)
{
    static const char copied[] = SOFTWARE(",'vector_part_host_s':1e-3"), dealt[] = SOFTWARE(",'deals_tensors':true");
    static const struct {
        const char *software, *stack, *graph, *name;
    } cases[] = {{copied, ZERO("'stage':1"), ZERO("'stage':1") PASSES, "allgather"},
                 {copied, ZERO("'stage':3"), ZERO("'stage':3") PASSES, "allgather"},
                 {dealt, ZERO("'stage':1"), ZERO("'stage':1") PASSES, "broadcast"},
                 {copied, ZERO("'stage':1,'gather_bits':8"), ZERO("'stage':1,'gather_bits':8") PASSES, "quantize"},
                 {copied, ZERO("'stage':1,'gather_bits':8"), ZERO("'stage':1,'gather_bits':8") PASSES, "dequantize"}};
    struct step step = {.system = FAST_SYSTEM,
                        .software = cases[_i].software,
                        .workload = FOUR_BLOCKS,
                        .head = BATCH,
                        .stack = cases[_i].stack};
    struct dl_session eager, t;
    open_step(&eager, &step);
    step.stack = cases[_i].graph;
    open_step(&t, &step);
    ck_assert_double_gt(host_s_at_end(&eager, cases[_i].name), 0);
    ck_assert_double_eq(host_s_at_end(&t, cases[_i].name), host_s_at_end(&eager, cases[_i].name));
    ck_assert_double_eq(host_s_of(&t, DL_ITEM_F, "allgather"), 0);
    ck_assert_double_eq(host_s_of(&t, DL_ITEM_B, "allgather"), 0);
    dl_session_close(&eager);
    dl_session_close(&t);
}
END_TEST

/* Once a layer and forward, whether tokens travel or not; one drain more is for the batch. What is done again is
 * counted again. */
START_TEST(tokens_of_experts_are_counted_by_the_host)
{
    static const char *const stacks[] = {STACK(""), "{'name':'data'}", STACK(",{'name':'recompute','mode':'full'}")};
    struct dl_session t;
    open_graphs(&t, SOFTWARE(",'drains_at_dispatch':true"), stacks[_i]);
    ck_assert_uint_eq(count_drains(&t, DL_ITEM_F), LAYERS + 1);
    ck_assert_uint_eq(count_drains(&t, DL_ITEM_B), _i == 2 ? LAYERS : 0);
    dl_session_close(&t);
}
END_TEST

/* Once a layer and forward, also if only the work of experts, which an activation here is part of, is not replayed. */
START_TEST(a_kernel_may_make_the_host_wait)
{
    static const char software[] =
        SOFTWARE(",'kernels':[{'operation':'gelu','pass':'forward','launches':1,'drains':true}]");
    static const struct {
        const char *stack;
        uint32_t waits;
    } cases[] = {{STACK(""), LAYERS + 1},
                 {STACK(",{'name':'graphs','scope':'outside_experts'}"), LAYERS + 1},
                 {STACK(",{'name':'graphs','scope':'step'}"), 0}};
    struct dl_session t;
    open_graphs(&t, software, cases[_i].stack);
    ck_assert_uint_eq(count_drains(&t, DL_ITEM_F), cases[_i].waits);
    ck_assert_uint_eq(count_drains(&t, DL_ITEM_B), 0);
    dl_session_close(&t);
}
END_TEST

#define TO_NODES "{'name':'expert','ways':2,'dispatch':'to_nodes'},{'name':'data'}"

/* Where tokens go to nodes the host waits for them too, and each trip takes its fixed time; elsewhere nothing of it. */
START_TEST(a_trip_to_nodes_has_a_wait_and_a_time_of_its_own)
{
    static const char plain[] = SOFTWARE(",'drains_at_dispatch':true");
    static const char more[] = SOFTWARE(",'drains_at_dispatch':true,'drains_after_dispatch':true,'dispatch_s':0.5");
    static const struct {
        const char *stack;
        uint32_t waits, trips;
    } cases[] = {{TO_NODES, 2, 2}, {STACK(""), 1, 0}, {"{'name':'data'}", 1, 0}};
    struct dl_session before, after;
    open_graphs(&before, plain, cases[_i].stack);
    open_graphs(&after, more, cases[_i].stack);
    ck_assert_uint_eq(count_drains(&after, DL_ITEM_F), LAYERS * cases[_i].waits + 1);
    ck_assert_uint_eq(count_drains(&after, DL_ITEM_B), 0);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("trips", cause_s(&after, kind, DL_CAUSE_EXPERT) - cause_s(&before, kind, DL_CAUSE_EXPERT),
                    0.5 * LAYERS * cases[_i].trips, exactly);
    dl_session_close(&before);
    dl_session_close(&after);
}
END_TEST

/* Inside a node, where all ranks are here. */
START_TEST(trips_reach_their_share_of_the_bandwidth)
{
    struct step step = {
        .system = "dgx-h100", .software = SOFTWARE(""), .workload = MODEL, .head = BATCH, .stack = TO_NODES};
    struct dl_session whole, half;
    open_step(&whole, &step);
    step.software = SOFTWARE(",'dispatch_fraction':0.5");
    open_step(&half, &step);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("trips", cause_s(&half, kind, DL_CAUSE_EXPERT), 2 * cause_s(&whole, kind, DL_CAUSE_EXPERT),
                    exactly);
    dl_session_close(&whole);
    dl_session_close(&half);
}
END_TEST

/* There and back, forward and backward, if a rank of the group is on another node; and nothing if none is. */
START_TEST(trips_that_leave_a_node_take_longer)
{
    static const char *const systems[] = {FAST_SYSTEM, "dgx-h100"};
    const double trips_between[] = {2, 0}, between_s = 0.25;
    struct step step = {
        .system = systems[_i], .software = SOFTWARE(""), .workload = MODEL, .head = BATCH, .stack = TO_NODES};
    struct dl_session before, after;
    open_step(&before, &step);
    step.software = SOFTWARE(",'dispatch_between_s':0.25");
    open_step(&after, &step);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("trips", cause_s(&after, kind, DL_CAUSE_EXPERT),
                    cause_s(&before, kind, DL_CAUSE_EXPERT) + LAYERS * trips_between[_i] * between_s, exactly);
    dl_session_close(&before);
    dl_session_close(&after);
}
END_TEST

/* What goes on beside the work of another micro-batch, and what does not: of bytes and of the fixed time. */
START_TEST(a_part_of_a_trip_may_be_waited_for)
{
    static const char overlapping[] = "{'name':'expert','ways':2,'dispatch':'to_nodes','overlap':true},{'name':'data'}";
    const double fixed_s = 0.5, micros = 2, hidden = 0.25 * (1 - 1 / micros);
    struct dl_session t;
    open_step(&t, &(struct step){.system = FAST_SYSTEM,
                                 .software = SOFTWARE(",'dispatch_s':0.5,'dispatch_overlap_fraction':0.25"),
                                 .workload = MODEL,
                                 .head = "'global_batch':16,'microbatch':2,'devices':4",
                                 .stack = overlapping});
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        double bytes[2] = {0}, seconds[2] = {0}, n[2] = {0};
        for (size_t i = 0; i < item(&t, kind)->n_instructions; i++) {
            const struct dl_instruction *const at = &item(&t, kind)->instructions[i];
            const struct dl_comm *const comm = &t.lowered.calls[at->call];
            if (at->kind != DL_START || comm->cause != DL_CAUSE_EXPERT) continue;
            const int waited = comm->channel != DL_CHANNEL_BESIDE;
            bytes[waited] += comm->bytes, seconds[waited] += comm->alone_s, n[waited]++;
        }
        ck_assert_double_eq(n[0], 2 * LAYERS);
        ck_assert_double_eq(n[1], 2 * LAYERS);
        check_close("bytes", bytes[0], hidden * (bytes[0] + bytes[1]), exactly);
        check_close("fixed", seconds[0] / seconds[1], hidden / (1 - hidden), 1e-3);
        ck_assert_double_ge(seconds[0] + seconds[1], 2 * LAYERS * fixed_s);
    }
    dl_session_close(&t);
}
END_TEST

/* A backward has a forward beside it then, layer by layer, whose wait it shares; and blocks are cut into parts. */
START_TEST(where_trips_overlap_the_host_waits_backward_too)
{
    static const struct {
        const char *expert, *more;
        uint32_t waits[2], parts; /* of a layer forward and backward, and in each of both */
    } cases[] = {{"", "", {1, 0}, 0},
                 {",'overlap':true", "", {1, 1}, 1},
                 {",'overlap':true,'even':true", "", {0, 0}, 1},
                 {",'overlap':true", ",{'name':'recompute','mode':'full'}", {1, 2}, 1}};
    const double parts_s = 3e-4;
    char stack[200];
    struct dl_session t;
    snprintf(stack, sizeof stack, "{'name':'expert','ways':2,'dispatch':'to_experts'%s},{'name':'data'}%s",
             cases[_i].expert, cases[_i].more);
    open_step(&t, &(struct step){.system = FAST_SYSTEM,
                                 .software = SOFTWARE(",'drains_at_dispatch':true,'overlap_host_s':3e-4"),
                                 .workload = MODEL,
                                 .head = "'global_batch':16,'microbatch':2,'devices':4",
                                 .stack = stack});
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        const uint32_t for_batch = kind == DL_ITEM_F;
        ck_assert_uint_eq(count_drains(&t, (enum dl_item_kind)kind),
                          for_batch + LAYERS * cases[_i].waits[kind == DL_ITEM_B]);
        check_close("parts", host_s_of(&t, kind, "parts"), LAYERS * cases[_i].parts * parts_s, exactly);
    }
    dl_session_close(&t);
}
END_TEST

/* Once forward and once backward for each linear layer, and for all experts of a rank together. */
START_TEST(linear_layers_take_the_host_beside_their_launches)
{
    static const struct {
        const char *name;
        double calls; /* of a pass */
    } cases[] = {{"qkv", LAYERS}, {"expert_fc1", LAYERS}, {"router", 0}, {"attention", 0}, {"logits", 0}};
    const double call_s = 7e-3;
    struct dl_session before, after;
    open_graphs(&before, SOFTWARE(""), STACK(""));
    open_graphs(&after, SOFTWARE(",'linear_host_s':7e-3"), STACK(""));
    for (size_t i = 0; i < DL_COUNT(cases); i++)
        for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
            check_close(cases[i].name, host_s_of(&after, kind, cases[i].name),
                        host_s_of(&before, kind, cases[i].name) + cases[i].calls * call_s, exactly);
    dl_session_close(&before);
    dl_session_close(&after);
}
END_TEST

/* Those of experts may take another time than the others. */
START_TEST(layers_of_experts_take_their_own_time)
{
    const double call_s = 7e-3, experts_s = 9e-3;
    struct dl_session before, after;
    open_graphs(&before, SOFTWARE(""), STACK(""));
    open_graphs(&after, SOFTWARE(",'linear_host_s':7e-3,'group_host_s':9e-3"), STACK(""));
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        check_close("qkv", host_s_of(&after, kind, "qkv"), host_s_of(&before, kind, "qkv") + LAYERS * call_s, exactly);
        check_close("expert_fc1", host_s_of(&after, kind, "expert_fc1"),
                    host_s_of(&before, kind, "expert_fc1") + LAYERS * experts_s, exactly);
    }
    dl_session_close(&before);
    dl_session_close(&after);
}
END_TEST

START_TEST(a_scope_is_needed)
{
    const struct step step = {.workload = MODEL, .head = BATCH, .stack = STACK(",{'name':'graphs'}")};
    check_refusal(&step, "test.json:/stack/2: needs the key 'scope'");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("graphs");
    tcase_add_test(tests, what_depends_on_counts_is_not_replayed);
    tcase_add_loop_test(tests, where_trips_overlap_the_host_waits_backward_too, 0, 4);
    tcase_add_loop_test(tests, what_graphs_are_given_is_copied, 0, 4);
    tcase_add_test(tests, a_step_that_is_one_graph_needs_no_host);
    tcase_add_test(tests, a_graph_of_the_passes_leaves_the_optimizer_to_the_host);
    tcase_add_loop_test(tests, a_graph_of_the_passes_leaves_what_follows_the_update_to_the_host, 0, 5);
    tcase_add_loop_test(tests, tokens_of_experts_are_counted_by_the_host, 0, 3);
    tcase_add_loop_test(tests, a_kernel_may_make_the_host_wait, 0, 3);
    tcase_add_loop_test(tests, a_trip_to_nodes_has_a_wait_and_a_time_of_its_own, 0, 3);
    tcase_add_test(tests, trips_reach_their_share_of_the_bandwidth);
    tcase_add_loop_test(tests, trips_that_leave_a_node_take_longer, 0, 2);
    tcase_add_test(tests, a_part_of_a_trip_may_be_waited_for);
    tcase_add_test(tests, linear_layers_take_the_host_beside_their_launches);
    tcase_add_test(tests, layers_of_experts_take_their_own_time);
    tcase_add_test(tests, a_scope_is_needed);
    Suite *const suite = suite_create("graphs");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
