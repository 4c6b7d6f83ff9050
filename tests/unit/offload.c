/* offload.c - what waits on the host: the bytes that travel, the time that shows, the memory that is spared. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/allocated.h"
#include "tests/unit/divided_step.h"
#include "tests/unit/shipped_system.h"
#include "topologies/copy_paths.h"

enum { LAYERS = 4 };
#define MODEL                                                                                                          \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':512,'heads':8,"           \
    "'seq':128,'vocab':1024}"
#define HEAD "'global_batch':2,'microbatch':2"
#define HOST(link, memory)                                                                                             \
    "{'schema':'dlsim/system/1','source':'a test','nodes':64,'transport':'ideal','node':{'device':'a test',"           \
    "'devices':1,'parts':[],'host':{'link_bandwidth_bytes_per_s':" link ",'link_latency_s':0,"                         \
    "'memory_bytes_per_s':" memory "}},'network':{'kind':'crossbar','link':'ideal','bandwidth_bytes_per_s':1e9,"       \
    "'latency_s':0}}"
#define SLOW_LINK HOST("1e3", "1e18") /* copies take longer than any kernel */
#define FAST_LINK HOST("1e18", "1e18")
#define SLOW_HOST HOST("1e18", "1e3")
#define BLOCKS "{'schema':'dlsim/software/1','source':'a test','offload_blocks':true}"

static const double exactly = 1e-12;
static struct dl_session t, plain;

static void open_pair(const char *system, const char *stack, const char *offload)
{
    char both[300];
    snprintf(both, sizeof both, "%s%s%s", stack, *stack ? "," : "", offload);
    open_step(&plain, &(struct step){.system = system, .software = "ideal", .workload = MODEL, .head = HEAD, stack});
    open_step(&t, &(struct step){.system = system, .software = "ideal", .workload = MODEL, .head = HEAD, both});
}

static void close_pair(void)
{
    dl_session_close(&t);
    dl_session_close(&plain);
}

static double end_s(const struct dl_session *of)
{
    return of->lowered.programs[0].end.total.by_cause[DL_CAUSE_OFFLOAD];
}

/* ZeRO-Offload: gradients of 2 bytes go, parameters of 2 bytes come, at once; of ranks that share the states, a part.
 */
START_TEST(an_optimizer_on_the_host_moves_two_bytes_a_parameter_each_way)
{
    static const struct {
        const char *stack;
        double ranks;
    } cases[] = {{"", 1}, {"{'name':'tensor','ways':1}", 1}, {"{'name':'data'},{'name':'zero','stage':1}", 2}};
    char head[100];
    snprintf(head, sizeof head, "'devices':%g,'global_batch':4,'microbatch':2", cases[_i].ranks);
    char stack[200];
    snprintf(stack, sizeof stack, "%s%s{'name':'offload','optimizer':1}", cases[_i].stack, *cases[_i].stack ? "," : "");
    open_step(&t, &(struct step){.system = SLOW_LINK, .software = "ideal", .workload = MODEL, .head = head, stack});
    const double parameters = dl_model_parameters(&t.model) / cases[_i].ranks;
    check_close("seconds", end_s(&t), 2 * parameters / 1e3, exactly);
    check_close("optimizer", t.memory[0].optimizer + 1, 1, exactly);
    dl_session_close(&t);
}
END_TEST

/* Adam in fp16: 30 bytes a parameter read and written. */
START_TEST(a_slow_host_counts_instead_of_the_link)
{
    open_pair(SLOW_HOST, "", "{'name':'offload','optimizer':0.5}");
    const double parameters = dl_model_parameters(&t.model);
    check_close("seconds", end_s(&t), 0.5 * parameters * 30 / 1e3, exactly);
    check_close("optimizer", t.memory[0].optimizer, 0.5 * 12 * parameters, exactly);
    check_close("on the device", t.lowered.programs[0].end.total.by_cause[DL_CAUSE_OPTIMIZER],
                0.5 * plain.lowered.programs[0].end.total.by_cause[DL_CAUSE_OPTIMIZER], exactly);
    close_pair();
}
END_TEST

static double block_s(const struct dl_session *of, enum dl_item_kind kind)
{
    return (item(of, kind)->total.seconds - kernels_s(of, kind, "look-up") - kernels_s(of, kind, "positions")) / LAYERS;
}

/* Out beside the forward and in beside the backward of a block; what is longer than that shows. */
START_TEST(activations_show_only_what_no_block_hides)
{
    const double part = 0.5;
    open_pair(SLOW_LINK, "", "{'name':'offload','activations':0.5}");
    const double saved = saved_bytes(&t, 1);
    for (enum dl_item_kind kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        const double all = LAYERS * part * saved / 1e3, shown = cause_s(&t, kind, DL_CAUSE_OFFLOAD);
        ck_assert_double_lt(shown, all);
        ck_assert_double_ge(shown, all - LAYERS * block_s(&plain, kind) * (1 + 1e-9));
        /* Layers that copy are not written once, so that their sum is no product. */
        const double compute_s = cause_s(&plain, kind, DL_CAUSE_COMPUTE);
        ck_assert_double_eq_tol(cause_s(&t, kind, DL_CAUSE_COMPUTE), compute_s, 1e-12 * compute_s);
    }
    close_pair();
    open_pair(FAST_LINK, "", "{'name':'offload','activations':1,'parameters':1}");
    ck_assert_double_eq(cause_s(&t, DL_ITEM_F, DL_CAUSE_OFFLOAD), 0);
    ck_assert_double_eq(cause_s(&t, DL_ITEM_B, DL_CAUSE_OFFLOAD), 0);
    close_pair();
}
END_TEST

/* In the forward parameters come while activations go: the longer of the two shows. In the backward both come. */
START_TEST(copies_there_and_back_go_on_at_once)
{
    double alone_s[2][2], both_s[2];
    static const char *const keys[] = {"'parameters':1", "'activations':1", "'parameters':1,'activations':1"};
    for (int i = 0; i < 3; i++) {
        char offload[100];
        snprintf(offload, sizeof offload, "{'name':'offload',%s}", keys[i]);
        open_pair(SLOW_LINK, "", offload);
        for (enum dl_item_kind kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
            const double shown_s = item(&t, kind)->total.seconds;
            *(i < 2 ? &alone_s[kind][i] : &both_s[kind]) = shown_s;
        }
        close_pair();
    }
    ck_assert_double_lt(both_s[DL_ITEM_F], 0.9 * (alone_s[DL_ITEM_F][0] + alone_s[DL_ITEM_F][1]));
    ck_assert_double_ge(both_s[DL_ITEM_F], fmax(alone_s[DL_ITEM_F][0], alone_s[DL_ITEM_F][1]));
    check_close("backward", both_s[DL_ITEM_B], alone_s[DL_ITEM_B][0] + alone_s[DL_ITEM_B][1], 1e-3);
}
END_TEST

static double simulated_s(const char *system, const char *software, const char *head, const char *stack,
                          const char *engine)
{
    open_step(&t, &(struct step){.system = system,
                                 .device = "a100-80",
                                 .software = software,
                                 .workload = MODEL,
                                 .head = head,
                                 .stack = stack});
    const struct training_outcome out = training_simulate(&t, engine);
    ck_assert_msg(!out.err.status, "%s", out.err.text);
    dl_session_close(&t);
    return out.result.step_s;
}

/* Replicas that go alike share the links of their PCIe switches as the closed form divides these. */
START_TEST(alone_copies_are_simulated_as_they_are_priced)
{
    static const char *const offloads[] = {"'optimizer':1", "'parameters':0.5", "'activations':1",
                                           "'optimizer':0.5,'parameters':1,'activations':1"};
    static const char *const systems[] = {"selene", "perlmutter", "frontier"};
    const int n_offloads = (int)DL_COUNT(offloads);
    char stack[200];
    snprintf(stack, sizeof stack, "{'name':'data'},{'name':'offload',%s}", offloads[_i % n_offloads]);
    const char *const system = systems[_i / n_offloads], head[] = "'devices':4,'global_batch':8,'microbatch':2";
    const double priced_s = simulated_s(system, "ideal", head, stack, "analytic");
    check_close(system, simulated_s(system, "ideal", head, stack, "simgrid"), priced_s, 1e-9);
}
END_TEST

/* Of two stages below one switch the first has the link to the host for itself while the second waits for it. */
START_TEST(stages_that_copy_in_turn_do_not_share)
{
    static const char stack[] = "{'name':'pipeline','ways':2},{'name':'offload','activations':1}";
    static const char head[] = "'devices':2,'global_batch':2,'microbatch':2";
    const double priced_s = simulated_s("selene", "ideal", head, stack, "analytic");
    ck_assert_double_lt(simulated_s("selene", "ideal", head, stack, "simgrid"), 0.9 * priced_s);
}
END_TEST

START_TEST(activations_may_be_copied_between_kernels)
{
    open_step(&t, &(struct step){.system = SLOW_LINK,
                                 .software = BLOCKS,
                                 .workload = MODEL,
                                 .head = HEAD,
                                 .stack = "{'name':'offload','activations':0.5}"});
    const double bytes = LAYERS * 0.5 * saved_bytes(&t, 1);
    for (enum dl_item_kind kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("seconds", cause_s(&t, kind, DL_CAUSE_OFFLOAD), bytes / 1e3, exactly);
    dl_session_close(&t);
}
END_TEST

/* What fills it slower than the link brings it counts, on the way there alone. */
START_TEST(memory_that_the_host_has_just_got_is_filled_first)
{
    static const double fills_at[] = {250, 4e3}, out_s_per_byte[] = {1 / 250.0, 1e-3};
    char software[120];
    snprintf(software, sizeof software,
             "{'schema':'dlsim/software/1','source':'a test','offload_blocks':true,'new_memory_bytes_per_s':%g}",
             fills_at[_i]);
    open_step(&t, &(struct step){.system = SLOW_LINK,
                                 .software = software,
                                 .workload = MODEL,
                                 .head = HEAD,
                                 .stack = "{'name':'offload','activations':1}"});
    const double bytes = LAYERS * saved_bytes(&t, 1);
    check_close("out", cause_s(&t, DL_ITEM_F, DL_CAUSE_OFFLOAD), bytes * out_s_per_byte[_i], exactly);
    check_close("in", cause_s(&t, DL_ITEM_B, DL_CAUSE_OFFLOAD), bytes / 1e3, exactly);
    dl_session_close(&t);
}
END_TEST

/* Scatters that nothing goes beside, and all. */
static uint32_t waited_for(const struct dl_template *of, uint32_t *all)
{
    uint32_t n = 0;
    *all = 0;
    for (size_t i = 0; i + 1 < of->n_instructions; i++) {
        const struct dl_instruction *const at = &of->instructions[i];
        if (at->kind != DL_START || t.lowered.calls[at->call].op != DL_REDUCESCATTER) continue;
        n += at[1].kind == DL_WAIT && at[1].call == at->call;
        ++*all;
    }
    return n;
}

/* In the last micro-batch alone: before that the host gets nothing. */
START_TEST(sums_for_an_update_by_the_host_may_be_waited_for)
{
    static const struct {
        const char *software, *stack;
        bool waits;
    } cases[] = {{BLOCKS, "{'name':'data'},{'name':'zero','stage':3},{'name':'offload','optimizer':1}", true},
                 {BLOCKS, "{'name':'offload','optimizer':1},{'name':'zero','stage':3},{'name':'data'}", true},
                 {BLOCKS, "{'name':'data','overlap':true},{'name':'zero','stage':3}", false},
                 {"ideal", "{'name':'data'},{'name':'zero','stage':3},{'name':'offload','optimizer':1}", false}};
    uint32_t all;
    open_step(&t, &(struct step){.system = SLOW_LINK,
                                 .software = cases[_i].software,
                                 .workload = MODEL,
                                 .head = "'devices':2,'global_batch':8,'microbatch':2",
                                 .stack = cases[_i].stack});
    ck_assert_uint_eq(waited_for(item(&t, DL_ITEM_B), &all), 0);
    ck_assert_uint_gt(all, LAYERS);
    const uint32_t n = waited_for(&t.lowered.positions[0].items[DL_TEMPLATE_LAST], &all);
    ck_assert_uint_gt(all, LAYERS);
    ck_assert_uint_eq(n, cases[_i].waits ? all : 0);
    dl_session_close(&t);
}
END_TEST

/* Beside what is left on the device there is what two blocks have on their way. */
START_TEST(activations_on_the_host_are_not_on_the_device)
{
    open_pair(FAST_LINK, "", "{'name':'offload','activations':0.25}");
    const double away = 0.25 * saved_bytes(&t, 1);
    const double spared = plain.memory[0].peak - t.memory[0].peak;
    ck_assert_double_ge(spared, (LAYERS - 2) * away * (1 - exactly));
    ck_assert_double_le(spared, LAYERS * away * (1 + exactly));
    ck_assert_double_le(t.memory[0].buffers, 2 * away * (1 + exactly));
    close_pair();
}
END_TEST

/* For every use of a layer; what the device has updated goes back. */
START_TEST(parameters_come_for_every_use)
{
    open_pair(SLOW_LINK, "", "{'name':'offload','parameters':1}");
    const double bytes = 2 * dl_model_parameters(&t.model);
    for (enum dl_item_kind kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("seconds", cause_s(&t, kind, DL_CAUSE_OFFLOAD), bytes / 1e3, 1e-6); /* beside short kernels */
    check_close("back", end_s(&t), bytes / 1e3, exactly);
    ck_assert_double_eq(t.memory[0].parameters, 0);
    close_pair();
    open_pair(SLOW_LINK, "", "{'name':'offload','parameters':1,'optimizer':1}");
    check_close("gradients only", end_s(&t), bytes / 1e3, exactly);
    close_pair();
}
END_TEST

/* Adam's 12 bytes and the parameters' 2, and of activations all that are live at once. */
START_TEST(the_host_holds_what_the_device_does_not)
{
    open_pair(FAST_LINK, "", "{'name':'offload','parameters':1,'optimizer':1,'activations':0.5}");
    const double saved = saved_bytes(&t, 1);
    const double bytes = dl_memory_of_host(t.machine.topology, &t.job, t.memory);
    check_close("bytes", bytes, 14 * dl_model_parameters(&t.model) + 0.5 * LAYERS * saved, exactly);
    t.machine.topology->node.host.memory_bytes = bytes;
    ck_assert(dl_memory_fits_host(t.machine.topology, &t.job, t.memory));
    t.machine.topology->node.host.memory_bytes = bytes * 0.999;
    ck_assert(!dl_memory_fits_host(t.machine.topology, &t.job, t.memory));
    close_pair();
}
END_TEST

START_TEST(a_host_that_nobody_describes_is_refused)
{
    const struct step step = {.system = "crossbar",
                              .software = "ideal",
                              .workload = MODEL,
                              .head = HEAD ",'precision':'fp32'",
                              .stack = "{'name':'offload','optimizer':1}"};
    check_refusal(&step, "test.json:/stack/0: crossbar says nothing of its host; its node needs \"host\" with "
                         "\"link_bandwidth_bytes_per_s\"");
}
END_TEST

static bool host_rate(const struct dl_topology *of, uint32_t n, const double *bytes_per_s, struct dl_copy_rate *out)
{
    return dl_copy_rate(of, &(struct dl_copy_wish){.n_devices = n, .n_on_node = n}, bytes_per_s, out);
}

/* Two GPUs of a DGX A100 share the 31.5 GB/s of their PCIe switch to its socket; one alone has them. */
START_TEST(devices_below_a_switch_share_its_link_to_the_host)
{
    struct dl_copy_rate one, all;
    set_up();
    const struct dl_topology *const dgx = open_system("selene");
    double *const nominal = dl_alloc(dgx->n_links * sizeof *nominal);
    for (size_t i = 0; i < dgx->n_links; i++) nominal[i] = dgx->links[i].bandwidth_bytes_per_s;
    ck_assert(host_rate(dgx, 1, nominal, &one) && host_rate(dgx, 8, nominal, &all));
    check_close("alone", one.bytes_per_s, 31.5e9, exactly);
    check_close("together", all.bytes_per_s, 31.5e9 / 2, exactly);
    check_close("two hops", all.latency_s, 2 * 1.5e-7, exactly);
    check_close("memory", all.memory_bytes_per_s, one.memory_bytes_per_s / 8, exactly);
    dl_free(nominal);
    tear_down();
}
END_TEST

static void check_path(const struct dl_topology *of, uint32_t device, bool back, const char *first, const char *last)
{
    struct dl_route route = {0};
    char name[256];
    ck_assert(dl_copy_route(of, DL_PATH_HOST, device, back, &route));
    dl_topology_link_name(of, route.hops[0].link, name, sizeof name);
    ck_assert_str_eq(name, first);
    dl_topology_link_name(of, route.hops[route.n_hops - 1].link, name, sizeof name);
    ck_assert_str_eq(name, last);
    dl_route_release(&route);
}

/* Whatever software makes of other links. */
START_TEST(copies_get_all_of_a_path_of_their_own)
{
    struct dl_copy_rate link;
    struct dl_transport transport;
    set_up();
    const struct dl_topology *const frontier = open_system("frontier");
    const char *const text =
        training_text("{'schema':'dlsim/transport/1','source':'a test','efficiency':{'*':0.5},'protocols':[{'name':"
                      "'a','peer':{'direct_s':0,'pcie_s':0,'network_s':0}}]}",
                      arena);
    struct dl_json of_test = {0};
    ck_assert_msg(!dl_json_parse(text, strlen(text), "test.json", arena, &of_test, &err) &&
                      !dl_transport_read(of_test, frontier, 2, arena, &transport, &err),
                  "%s", err.text);
    double *const rates = dl_transport_rates(&transport, frontier);
    ck_assert(host_rate(frontier, 8, rates, &link));
    ck_assert_double_eq(link.bytes_per_s, frontier->node.host.link_bandwidth_bytes_per_s);
    ck_assert_double_eq(link.latency_s, frontier->node.host.link_latency_s);
    dl_free(rates);
    json_decref(of_test.value);
    tear_down();
}
END_TEST

START_TEST(a_device_reaches_the_host_of_its_own_node)
{
    set_up();
    const struct dl_topology *const frontier = open_system("frontier");
    check_path(frontier, 11, false, "node1: device3 -> host", "node1: device3 -> host");
    check_path(frontier, 11, true, "node1: host -> device3", "node1: host -> device3");
    tear_down();
    set_up();
    const struct dl_topology *const dgx = open_system("selene");
    check_path(dgx, 15, false, "node1: device7 -> pcie3", "node1: pcie3 -> socket1");
    check_path(dgx, 15, true, "node1: socket1 -> pcie3", "node1: pcie3 -> device7");
    tear_down();
}
END_TEST

/* Two devices that nothing else joins: a host passes nothing on. */
START_TEST(nothing_goes_through_the_host_of_a_node)
{
    set_up();
    struct dl_route route = {0};
    const char *const text = training_text("{'schema':'dlsim/system/1','source':'a test','nodes':1,'node':{'device':"
                                           "'a100','devices':2,'host':{'link_bandwidth_bytes_per_s':1e9}}}",
                                           arena);
    ck_assert_msg(!dl_json_parse(text, strlen(text), "test.json", arena, &doc, &err) &&
                      !dl_topology_read(doc, arena, &topology, &err),
                  "%s", err.text);
    check_path(topology, 1, false, "node0: device1 -> host", "node0: device1 -> host");
    ck_assert_int_eq(dl_topology_route(topology, 0, 1, 0, NULL, &route, &err), DL_IMPOSSIBLE);
    ck_assert_ptr_null(dl_transport_device_link(topology));
    dl_route_release(&route);
    tear_down();
}
END_TEST

/* What a part is called does not make a host of it. */
START_TEST(a_switch_called_socket_is_no_host)
{
    struct dl_copy_rate link;
    set_up();
    const char *const text =
        training_text("{'schema':'dlsim/system/1','source':'a test','nodes':1,'transport':'ideal',"
                      "'node':{'device':'a100','devices':2,'parts':[{'kind':'switch','name':'socket','link':'nvlink3',"
                      "'bandwidth_bytes_per_s':1e9,'latency_s':0}]}}",
                      arena);
    ck_assert_msg(!dl_json_parse(text, strlen(text), "test.json", arena, &doc, &err) &&
                      !dl_topology_read(doc, arena, &topology, &err),
                  "%s", err.text);
    const double nominal[] = {1e9, 1e9, 1e9, 1e9};
    ck_assert_uint_eq(topology->n_links, DL_COUNT(nominal));
    ck_assert(!host_rate(topology, 1, nominal, &link));
    tear_down();
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("offload");
    TCase *const tests = tcase_create("offload");
    tcase_add_loop_test(tests, an_optimizer_on_the_host_moves_two_bytes_a_parameter_each_way, 0, 3);
    tcase_add_test(tests, a_switch_called_socket_is_no_host);
    tcase_add_test(tests, a_slow_host_counts_instead_of_the_link);
    tcase_add_test(tests, activations_show_only_what_no_block_hides);
    tcase_add_test(tests, copies_there_and_back_go_on_at_once);
    tcase_add_loop_test(tests, alone_copies_are_simulated_as_they_are_priced, 0, 12);
    tcase_add_test(tests, stages_that_copy_in_turn_do_not_share);
    tcase_add_test(tests, activations_may_be_copied_between_kernels);
    tcase_add_loop_test(tests, memory_that_the_host_has_just_got_is_filled_first, 0, 2);
    tcase_add_loop_test(tests, sums_for_an_update_by_the_host_may_be_waited_for, 0, 4);
    tcase_add_test(tests, activations_on_the_host_are_not_on_the_device);
    tcase_add_test(tests, parameters_come_for_every_use);
    tcase_add_test(tests, the_host_holds_what_the_device_does_not);
    tcase_add_test(tests, a_host_that_nobody_describes_is_refused);
    tcase_add_test(tests, devices_below_a_switch_share_its_link_to_the_host);
    tcase_add_test(tests, copies_get_all_of_a_path_of_their_own);
    tcase_add_test(tests, a_device_reaches_the_host_of_its_own_node);
    tcase_add_test(tests, nothing_goes_through_the_host_of_a_node);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
