/* toys.c - the strategies of tests/toys in the battery that those of strategies/ pass. */
#define _GNU_SOURCE /* fork, pipe */
#include "sim/study/job_text.h"
#include "tests/unit/battery_alone.h"

/* Rows of 32 x 32 images that windows of 3 reach beyond those of a rank: one, to and from both neighbours. The gradient
 * of the first convolution's input is not needed. */
#define TWO_CONVOLUTIONS                                                                                               \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'convnet','input':[3,32,32],'layers':["                     \
    "{'kind':'conv','filters':8,'window':3,'pad':1},{'kind':'conv','filters':4,'window':3,'pad':1}]}"

/* With steps of 2 windows of 7 reach three rows above and two below; rows of the input are in windows that begin one
 * row of the result above, or two below. */
#define WITH_STEPS                                                                                                     \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'convnet','input':[3,32,48],'layers':["                     \
    "{'kind':'conv','filters':8,'window':3,'pad':1},{'kind':'conv','filters':4,'window':7,'pad':3,'stride':2}]}"

static double summed(double n, double bytes) { return 2 * once(n, bytes); }

/* A rank between two others sends to both, one of two only to the other. */
static double borders(double n, double above, double under) { return n > 2 ? above + under : fmax(above, under); }

static double sent_by_rows(const struct dl_model *m, double n)
{
    const double row = 32 * activation_bytes, forward = 3 + 8, backward = 4;
    return n > 1 ? borders(n, 1, 1) * row * (forward + backward) + summed(n, gradient_bytes * dl_model_parameters(m))
                 : 0;
}

static double sent_with_steps(const struct dl_model *m, double n)
{
    const double first = borders(n, 1, 1) * 48 * 3, second = borders(n, 3, 2) * 48 * 8,
                 backward = borders(n, 1, 2) * 24 * 4;
    const double bytes = (first + second + backward) * activation_bytes;
    return n > 1 ? bytes + summed(n, gradient_bytes * dl_model_parameters(m)) : 0;
}

static double sent_to_all(const struct dl_model *m, double n)
{
    return n > 1 ? summed(n, gradient_bytes * dl_model_parameters(m)) : 0;
}

/* In a step, with one other. */
static double sent_to_one(const struct dl_model *m, double n)
{
    return n > 1 ? summed(2, gradient_bytes * dl_model_parameters(m)) : 0;
}

static const struct example toys[] = {
    {.strategy = "gossip", .entry = "{'name':'gossip'}", .counts = REPLICAS, .n = {2, 4, 8, 32}, .sent = sent_to_one},
    {.strategy = "gossip",
     .entry = "{'name':'gossip','partners':'drawn'}",
     .counts = REPLICAS,
     .n = {2, 6, 8, 32},
     .sent = sent_to_one},
    {.strategy = "spatial",
     .entry = "{'name':'spatial','ways':#}",
     .beside = "{'name':'data'}",
     .workload = TWO_CONVOLUTIONS,
     .counts = RANKS,
     .n = {1, 2, 8},
     .sent = sent_by_rows,
     .spares = true},
    {.strategy = "spatial",
     .entry = "{'name':'spatial','ways':#}",
     .beside = "{'name':'data'}",
     .workload = WITH_STEPS,
     .counts = RANKS,
     .n = {1, 2, 8},
     .sent = sent_with_steps,
     .spares = true},
    {.strategy = "storage", .entry = "{'name':'storage','bytes_per_sample':#000}", .n = {1, 8}},
    {.strategy = "storage",
     .entry = "{'name':'storage','bytes_per_sample':1000}",
     .beside = "{'name':'data'}",
     .counts = REPLICAS,
     .n = {1, 2}, /* below one socket: prices take the longest latency for all */
     .sent = sent_to_all},
};

/* The partners of a replica change from step to step, also where the program is read back. */
static const struct {
    const char *entry, *lines[2];
} gossips[] = {
    {"{'name':'gossip'}", {"over peer0 bytes", " every 2 turn 1\n"}},
    {"{'name':'gossip','partners':'drawn'}", {" drawn bytes", " cause data\n"}},
};

START_TEST(gossip_changes_partners_in_its_program)
{
    struct dl_session t;
    open_step(&t, &(struct step){.system = USUAL_SYSTEM,
                                 .workload = FOUR_BLOCKS,
                                 .head = "'precision':'fp16','devices':4,'global_batch':4",
                                 .stack = gossips[_i].entry});
    char *text[2] = {NULL};
    size_t bytes;
    struct dl_read_step again = {.step = dl_session_step(&t)};
    for (int i = 0; i < 2; i++) {
        FILE *const to = open_memstream(&text[i], &bytes);
        dl_step_print(&again.step, to);
        fclose(to);
        for (int line = 0; line < 2; line++) ck_assert_msg(strstr(text[i], gossips[_i].lines[line]), "%.400s", text[i]);
        if (i) break;
        char *const read = dl_arena_string(arena, text[0]);
        ck_assert_msg(!dl_step_read(read, "test.txt", arena, &again, &t.err), "%s", t.err.text);
    }
    ck_assert_str_eq(text[0], text[1]);
    free(text[0]);
    free(text[1]);
    dl_read_step_release(&again);
    dl_session_close(&t);
}
END_TEST

/* The axis that a strategy brings counts where "order" says, and is told like the usual ones. */
START_TEST(an_axis_of_its_own_is_ordered_and_counted)
{
    struct dl_session t;
    open_step(&t, &(struct step){.system = USUAL_SYSTEM,
                                 .workload = TWO_CONVOLUTIONS,
                                 .head = "'precision':'fp16','devices':8,'global_batch':4,'order':['data','rows']",
                                 .stack = "{'name':'spatial','ways':2},{'name':'data'}"});
    const struct dl_setting *const s = &t.job.setting;
    const dl_digits rows = dl_along_own(s, s->brought[0]);
    ck_assert_uint_eq(s->n_brought, 1);
    ck_assert_uint_eq(dl_ranks_count(&s->ranks, rows), 2);
    ck_assert_uint_eq(dl_ranks_offset(&s->ranks, rows, 1), 4);
    ck_assert_uint_eq(dl_ranks_count(&s->ranks, dl_in_lockstep(s)), 2);
    ck_assert_uint_eq(dl_copies(s, false), 8);
    ck_assert(strstr(dl_job_text(&t.job, arena), "\"order\":[\"data\",\"rows\"]"));
    dl_session_close(&t);
    static const struct {
        const char *head, *stack, *message;
    } refused[] = {
        {"'precision':'fp16','devices':9,'global_batch':4", "{'name':'spatial','ways':2},{'name':'data'}",
         "test.json:/devices: must be a multiple of tensor x rows x pipeline ways = 2, got 9; 8 or 10 would do"},
        {"'precision':'fp16','devices':2,'global_batch':1,'order':['data']", "{'name':'spatial','ways':2}",
         "test.json:/order: must name rows too, which has 2 ways"},
        {"'precision':'fp16','devices':2,'global_batch':1,'order':['columns']", "{'name':'spatial','ways':2}",
         "test.json:/order/0: must be one of tensor, context, rows, data, pipeline, each once"}};
    for (size_t i = 0; i < DL_COUNT(refused); i++)
        check_refusal(&(struct step){.workload = TWO_CONVOLUTIONS, .head = refused[i].head, .stack = refused[i].stack},
                      refused[i].message);
}
END_TEST

START_TEST(toys_refuse_what_they_cannot_do)
{
    check_refusal(&(struct step){.workload = FOUR_BLOCKS,
                                 .head = "'precision':'fp16','devices':6,'global_batch':6",
                                 .stack = "{'name':'gossip'}"},
                  "test.json:/stack/0: pairs replicas, which must be a power of 2, at most 4096; got 6");
    check_refusal(&(struct step){.workload = FOUR_BLOCKS,
                                 .head = "'precision':'fp16','devices':3,'global_batch':3",
                                 .stack = "{'name':'gossip','partners':'drawn'}"},
                  "test.json:/stack/0: pairs replicas, which must be an even number; got 3");
    check_refusal(&(struct step){.workload = FOUR_BLOCKS,
                                 .head = "'precision':'fp16','devices':2,'global_batch':1",
                                 .stack = "{'name':'spatial','ways':2},{'name':'data'}"},
                  "test.json:/stack/0: cuts networks of convolutions alone");
    check_refusal(&(struct step){.system = "selene",
                                 .device = "a100-80",
                                 .workload = FOUR_BLOCKS,
                                 .head = "'precision':'fp16','devices':1,'global_batch':1",
                                 .stack = "{'name':'storage','bytes_per_sample':1}"},
                  "test.json:/stack/0: selene says nothing of its storage; it needs \"storage\" with "
                  "\"write_bytes_per_s\"");
}
END_TEST

/* Of 8 devices, 2 on a node, each reads a sample of 1 MB before its forward: all at 4 GB/s from what they share, or
 * those of a node at 1 GB/s from its own. */
#define WITH_STORAGE                                                                                                   \
    "{'schema':'dlsim/system/1','source':'a test','nodes':8,'transport':'ideal','node':{'device':'a "                  \
    "test','devices':2,'parts':[{'kind':'switch','link':'ideal','bandwidth_bytes_per_s':1e18,'latency_s':0}],"         \
    "'host':{'link_bandwidth_bytes_per_s':1e18},'storage':{'write_bytes_per_s':1,'read_bytes_per_s':1e9}},"            \
    "'storage':{'write_bytes_per_s':1,'read_bytes_per_s':4e9,'latency_s':0.5},'network':{'kind':'crossbar',"           \
    "'link':'ideal','bandwidth_bytes_per_s':1e18,'latency_s':0}}"
static const struct {
    const char *from;
    double read_s;
} reads[] = {{"storage", 0.5 + 8 * 1e6 / 4e9}, {"node_storage", 2 * 1e6 / 1e9}};

START_TEST(samples_come_as_fast_as_their_storage_gives_them)
{
    struct dl_session t;
    const char *const stack =
        dl_arena_format(arena, "{'name':'storage','bytes_per_sample':1e6,'from':'%s'},{'name':'data'}", reads[_i].from);
    open_step(&t, &(struct step){.system = WITH_STORAGE,
                                 .workload = FOUR_BLOCKS,
                                 .head = "'precision':'fp16','devices':8,'global_batch':8",
                                 .stack = stack});
    check_close(reads[_i].from, cause_s(&t, DL_ITEM_F, DL_CAUSE_OFFLOAD), reads[_i].read_s, exactly);
    const double alone_s = estimated(&t, stack).step_s;
    check_close(reads[_i].from, simulated(&t, stack).step_s, alone_s, exactly);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("toys");
    TCase *const tests = battery_alone("toys", (struct examples){toys, DL_COUNT(toys)});
    tcase_add_test(tests, toys_refuse_what_they_cannot_do);
    tcase_add_loop_test(tests, samples_come_as_fast_as_their_storage_gives_them, 0, DL_COUNT(reads));
    tcase_add_test(tests, an_axis_of_its_own_is_ordered_and_counted);
    tcase_add_loop_test(tests, gossip_changes_partners_in_its_program, 0, DL_COUNT(gossips));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
