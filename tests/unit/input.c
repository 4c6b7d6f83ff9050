/* input.c - samples on their way to the device: a step takes as long as its work, or as its samples, if these take
 * longer; and these come as fast as the slowest of what they pass. */
#define _GNU_SOURCE /* fork, pipe */
#include "sim/program/program_text.h"
#include "tests/unit/battery.h"

#define SAMPLES(more)                                                                                                  \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[64,64,64],'samples':{'count':1000,"         \
    "'stored_bytes':1e6" more "}}"
#define DEEP                                                                                                           \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8,8],"        \
    "'samples':{'count':1000,'stored_bytes':1e6}}"
/* Two devices a node. All read from what they share at 4 GB/s, those of a node from its own at 1 GB/s. */
#define MACHINE(host)                                                                                                  \
    "{'schema':'dlsim/system/1','source':'a test','nodes':8,'transport':'ideal','node':{'device':'a "                  \
    "test','devices':2,'parts':[{'kind':'switch','link':'ideal','bandwidth_bytes_per_s':1e18,'latency_s':0}],"         \
    "'host':{'link_bandwidth_bytes_per_s':5e8,'link_latency_s':0" host "},'storage':{'write_bytes_per_s':1,"           \
    "'read_bytes_per_s':1e8}},'storage':{'write_bytes_per_s':1,'read_bytes_per_s':4e8,'latency_s':0.5},'network':{"    \
    "'kind':'crossbar','link':'ideal','bandwidth_bytes_per_s':1e18,'latency_s':0}}"
#define SMALL_HOST MACHINE("")
#define LARGE_HOST MACHINE(",'memory_bytes':2.5e8") /* a quarter of the samples */
#define LOADER(keys) "{'schema':'dlsim/software/1','source':'a test'" keys "}"
#define HEAD "'precision':'fp16','devices':8,'global_batch':16,'microbatch':1"
enum { MICROS = 2, DEVICES = 8, ON_NODE = 2 };

static const double exactly = 1e-9, sample = 1e6;

/* Of a step that waits for samples, the least between two of their micro-batches. */
static const struct {
    const char *system, *from, *workload, *software;
    double sample_s;
} cases[] = {
    {SMALL_HOST, "storage", SAMPLES(""), LOADER(""), 0.5 + DEVICES * 1e6 / 4e8},
    {SMALL_HOST, "node_storage", SAMPLES(""), LOADER(""), ON_NODE * 1e6 / 1e8},
    {SMALL_HOST, "memory", SAMPLES(""), LOADER(""), 1e6 / 5e8},
    {SMALL_HOST, "nearest", SAMPLES(""), LOADER(""), ON_NODE * 1e6 / 1e8},
    {LARGE_HOST, "nearest", SAMPLES(""), LOADER(""), 1e6 / 5e8},
    {LARGE_HOST, "nearest", SAMPLES(",'device_bytes':6e6"), LOADER(""), 6e6 / 5e8},
    /* Unpacked while they come: where that is slower, it counts. */
    {LARGE_HOST, "nearest", SAMPLES(""), LOADER(",'raw_bytes_per_s':1e7"), 1e6 / 1e7},
    {LARGE_HOST, "nearest", SAMPLES(""), LOADER(",'raw_bytes_per_s':1e7,'loader_workers':4"), 1e6 / 4e7},
    {LARGE_HOST, "nearest", SAMPLES(""), LOADER(",'gzip_bytes_per_s':1e7"), 1e6 / 5e8},
    {LARGE_HOST, "nearest", SAMPLES(",'packing':'gzip','device_bytes':6e6"), LOADER(",'gzip_bytes_per_s':1e7"),
     1e6 / 1e7},
    {LARGE_HOST, "nearest", SAMPLES(",'packing':'jpeg'"), LOADER(",'jpeg_bytes_per_s':2e6"), 1e6 / 2e6},
    {SMALL_HOST, "node_storage", SAMPLES(",'packing':'gzip'"), LOADER(",'gzip_bytes_per_s':1e7"), 1e6 / 1e7},
    /* On the way to the device they are a hundred times as much. */
    {SMALL_HOST, "node_storage", SAMPLES(",'device_bytes':1e8"), LOADER(""), 1e8 / 5e8},
};

static void open_case(struct dl_session *t, int i, const char *more)
{
    char stack[200];
    snprintf(stack, sizeof stack, "{'name':'data'},{'name':'input','from':'%s'}%s", cases[i].from, more);
    open_step(t, &(struct step){.system = cases[i].system,
                                .software = cases[i].software,
                                .workload = cases[i].workload,
                                .head = HEAD,
                                .stack = stack});
}

START_TEST(samples_come_as_fast_as_the_slowest_of_what_they_pass)
{
    struct dl_session t;
    open_case(&t, _i, "");
    const double simulated_s = simulated(&t, cases[_i].from).step_s;
    const struct dl_training_result r = estimated(&t, cases[_i].from);
    check_close("simulated", simulated_s, MICROS * cases[_i].sample_s, 1e-6);
    check_close("estimated", r.step_s, simulated_s, exactly);
    check_causes(&r, "causes");
    ck_assert_double_gt(r.exposed_s[DL_CAUSE_INPUT], 0.9 * r.step_s);
    dl_session_close(&t);
}
END_TEST

/* So they share what they read from with no others. */
START_TEST(only_the_first_stage_reads)
{
    static const struct {
        const char *from;
        double sample_s; /* if one device reads */
        double shared_by[3];
    } places[] = {
        {"storage", 1e6 / 4e8, {4, 2, 1}}, {"node_storage", 1e6 / 1e8, {2, 2, 1}}, {"memory", 1e6 / 5e8, {1, 1, 1}}};
    for (size_t p = 0; p < DL_COUNT(places); p++)
        for (int k = 0; k < 3; k++) {
            const int stages = 2 << k, micros = 16 * stages / DEVICES;
            const double latency_s = p == 0 ? 0.5 : 0,
                         sample_s = latency_s + places[p].shared_by[k] * places[p].sample_s;
            char stack[200], what[200];
            struct dl_session t;
            snprintf(stack, sizeof stack, "{'name':'pipeline','ways':%d},{'name':'data'},{'name':'input','from':'%s'}",
                     stages, places[p].from);
            snprintf(what, sizeof what, "%d stages, from %s", stages, places[p].from);
            open_step(
                &t, &(struct step){
                        .system = SMALL_HOST, .software = LOADER(""), .workload = DEEP, .head = HEAD, .stack = stack});
            const double simulated_s = simulated(&t, what).step_s;
            check_close(what, estimated(&t, what).step_s, simulated_s, 1e-6);
            check_close(what, simulated_s, micros * sample_s, 1e-3);
            dl_session_close(&t);
        }
}
END_TEST

/* Two stages, both on each node: of its two devices one reads. */
START_TEST(readers_are_where_their_ranks_are)
{
    struct dl_session t;
    open_step(&t, &(struct step){.system = SMALL_HOST,
                                 .software = LOADER(""),
                                 .workload = DEEP,
                                 .head = HEAD ",'order':['pipeline','data']",
                                 .stack = "{'name':'pipeline','ways':2},{'name':'data'},"
                                          "{'name':'input','from':'node_storage'}"});
    const double simulated_s = simulated(&t, "inside").step_s;
    check_close("estimated", estimated(&t, "inside").step_s, simulated_s, 1e-6);
    check_close("simulated", simulated_s, 4 * sample / 1e8, 1e-3);
    dl_session_close(&t);
}
END_TEST

/* Kernels of `device_s` by a device that is as slow as that: the longer of the two is the step. */
START_TEST(a_step_takes_the_longer_of_work_and_samples)
{
    static const char *const peaks[] = {"1e6", "1e7", "1e8"};
    char device[400];
    struct dl_session with, without;
    snprintf(device, sizeof device,
             "{'schema':'dlsim/device/1','source':'a test','model':'roofline','memory_bytes':1e18,"
             "'memory_bytes_per_s':1e18,'launch_s':0,'peak_flop_per_s':{'fp16':%s,'fp32':%s},'figures':{"
             "'compute_fraction':1,'bandwidth_fraction':1}}",
             peaks[_i], peaks[_i]);
    const struct step step = {.system = LARGE_HOST,
                              .device = device,
                              .workload = SAMPLES(""),
                              .head = HEAD,
                              .software = LOADER(",'raw_bytes_per_s':1e7")};
    struct step reads = step, works = step;
    reads.stack = "{'name':'data'},{'name':'input'}";
    works.stack = "{'name':'data'}";
    open_step(&with, &reads);
    open_step(&without, &works);
    const double work_s = estimated(&without, "work").step_s, read_s = MICROS * sample / 1e7;
    const struct dl_training_result r = estimated(&with, "both");
    check_close("the longer", r.step_s, fmax(work_s, read_s), 1e-6);
    check_close("what shows", r.exposed_s[DL_CAUSE_INPUT] + 1, fmax(read_s - work_s, 0) + 1, 1e-6);
    dl_session_close(&with);
    dl_session_close(&without);
}
END_TEST

/* What is copied late is beside no work: both are the step, and what shows is all of the copies. */
START_TEST(late_copies_come_before_the_work)
{
    struct dl_session with, without;
    struct step step = {.system = LARGE_HOST,
                        .workload = SAMPLES(",'device_bytes':6e6"),
                        .head = HEAD,
                        .software = LOADER(",'raw_bytes_per_s':1e7"),
                        .stack = "{'name':'data'}"};
    open_step(&without, &step);
    step.stack = "{'name':'data'},{'name':'input','from':'memory','late':true}";
    open_step(&with, &step);
    const double copies_s = MICROS * 6e6 / 5e8, work_s = estimated(&without, "work").step_s;
    const struct dl_training_result r = estimated(&with, "late");
    check_close("both", r.step_s, work_s + copies_s, exactly);
    check_close("what shows", r.exposed_s[DL_CAUSE_INPUT], copies_s, 1e-6);
    check_close("simulated", simulated(&with, "late").step_s, r.step_s, 1e-6);
    check_causes(&r, "causes");
    dl_session_close(&with);
    dl_session_close(&without);
}
END_TEST

/* Below one switch, which one of two devices reads through, or both: eight samples pass it, whoever copies. */
START_TEST(late_copies_are_shared_by_those_who_copy)
{
    static const char system[] =
        "{'schema':'dlsim/system/1','source':'a test','nodes':1,'transport':'ideal','node':{'device':'a "
        "test','devices':2,'parts':[{'kind':'pcie','link':'ideal','sockets':1,'switches':1,"
        "'bandwidth_bytes_per_s':5e8,'switch_bandwidth_bytes_per_s':5e8,'latency_s':0,"
        "'socket_bandwidth_bytes_per_s':1e18,'socket_latency_s':0}],'host':{}}}";
    static const char *const stacks[] = {"{'name':'pipeline','ways':2},{'name':'input','from':'memory','late':true}",
                                         "{'name':'data'},{'name':'input','from':'memory','late':true}"};
    struct dl_session t;
    open_step(&t, &(struct step){.system = system,
                                 .software = LOADER(""),
                                 .workload = DEEP,
                                 .head = "'precision':'fp16','devices':2,'global_batch':8,'microbatch':1",
                                 .stack = stacks[_i]});
    const double simulated_s = simulated(&t, "late").step_s;
    check_close("estimated", estimated(&t, "late").step_s, simulated_s, 1e-4);
    check_close("simulated", simulated_s, 8 * sample / 5e8, 1e-3);
    dl_session_close(&t);
}
END_TEST

START_TEST(a_program_that_reads_is_read_back)
{
    struct dl_session t;
    char *text[2] = {NULL};
    size_t bytes;
    struct dl_error err = {0};
    open_case(&t, 0, "");
    struct dl_read_step again = {.step = dl_session_step(&t)};
    for (int i = 0; i < 2; i++) {
        FILE *const out = open_memstream(&text[i], &bytes);
        dl_step_print(&again.step, out);
        fclose(out);
        if (i == 0)
            ck_assert_msg(!dl_step_read(dl_arena_string(t.arena, text[0]), "text", t.arena, &again, &err), "%s",
                          err.text);
    }
    ck_assert_ptr_nonnull(strstr(text[0], "copy 0 ahead path host-storage"));
    ck_assert_str_eq(text[0], text[1]);
    for (int i = 0; i < 2; i++) free(text[i]);
    dl_read_step_release(&again);
    dl_session_close(&t);
}
END_TEST

START_TEST(what_is_not_said_is_asked_for)
{
    const struct step silent = {
        .system = LARGE_HOST, .workload = FOUR_BLOCKS, .head = HEAD, .stack = "{'name':'data'},{'name':'input'}"};
    check_refusal(&silent, "test.json:/stack/1: test does not say what its samples are; it needs \"samples\" with "
                           "\"count\" and \"stored_bytes\"");
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("input");
    TCase *const tests = tcase_create("input");
    tcase_add_loop_test(tests, samples_come_as_fast_as_the_slowest_of_what_they_pass, 0, DL_COUNT(cases));
    tcase_add_loop_test(tests, a_step_takes_the_longer_of_work_and_samples, 0, 3);
    tcase_add_test(tests, late_copies_come_before_the_work);
    tcase_add_loop_test(tests, late_copies_are_shared_by_those_who_copy, 0, 2);
    tcase_add_test(tests, a_program_that_reads_is_read_back);
    tcase_add_test(tests, what_is_not_said_is_asked_for);
    tcase_add_test(tests, only_the_first_stage_reads);
    tcase_add_test(tests, readers_are_where_their_ranks_are);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
