/* training_rows.c - rows of tables as the documents that they stand for; tables that are met. */
#define _GNU_SOURCE /* mkstemp */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/report/validation.h"
#include "tests/unit/row_fixture.h"

#define COLUMNS                                                                                                        \
    "id,topo,devices,model,layers,hidden,ffn,heads,kv_heads,seq,vocab,global_batch,microbatch,tp,pp,dp,cp,ep,vpp,"     \
    "schedule,sp,zero,recompute,precision,attention,software,stage_rule,assumed,step_s,source"

static void read_as_file(const char *text, const char *ending)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/dlsim-rows-XXXXXX%s", ending);
    const int file = mkstemps(path, (int)strlen(ending));
    ck_assert(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    close(file);
    dl_training_rows_read(path, arena, &rows, &err);
    unlink(path);
}

static void check_document(const struct dl_input *made, const char *expected)
{
    char *const text = dl_arena_string(arena, expected);
    for (char *c = text; *c; c++)
        if (*c == '\'') *c = '"';
    json_t *const is = json_loads(made->text, 0, NULL), *const should = json_loads(text, 0, NULL);
    ck_assert(is && should);
    ck_assert_msg(json_equal(is, should), "%s, not %s", made->text, text);
    json_decref(is);
    json_decref(should);
}

static const struct {
    const char *row, *workload, *strategy, *attention;
} mappings[] = {
    {"a,selene,64,GPT 175B,96,12288,49152,96,96,2048,51200,64,1,8,8,1,1,1,3,interleaved,1,0,selective,fp16,unfused,"
     "megatron-2022,even,,13.75,\"a, paper\"",
     "{'schema':'dlsim/workload/1','source':'a, paper','kind':'transformer','layers':96,'hidden':12288,'ffn':49152,"
     "'heads':96,'kv_heads':96,'seq':2048,'vocab':51200}",
     "{'schema':'dlsim/strategy/1','source':'a, paper','workload':'GPT 175B','software':'megatron-2022','devices':64,"
     "'global_batch':64,'microbatch':1,'precision':'fp16','recompute':'selective','stack':[{'name':'pipeline',"
     "'ways':8,'schedule':'interleaved','chunks':3},{'name':'tensor','ways':8,'sequence':true},{'name':'data',"
     "'overlap':false}]}",
     "software.attention=\"unfused\""},
    {"b,dgx-b200,16,llama,4,16384,53248,128,16,4096,128256,4,,2,1,1,8,1,1,1f1b,1,1,none,bf16,flash,megatron-core,even,"
     ",1,p",
     "{'schema':'dlsim/workload/1','source':'p','kind':'transformer','layers':4,'hidden':16384,'ffn':53248,"
     "'heads':128,'kv_heads':16,'seq':4096,'vocab':128256,'norm':'rmsnorm','activation':'swiglu','positions':'rotary',"
     "'bias':false,'dropout':false,'tied_embedding':false}",
     "{'schema':'dlsim/strategy/1','source':'p','workload':'llama','software':'megatron-core','devices':16,"
     "'global_batch':4,'microbatch':5,'precision':'bf16','recompute':'none','stack':[{'name':'tensor','ways':2,"
     "'sequence':true},{'name':'context','ways':8,'zigzag':true},{'name':'data','overlap':false},{'name':'zero',"
     "'stage':1}]}",
     "software.attention=\"flash\""},
    {"b2,dgx-h100,8,GPT,4,1024,4096,16,16,4096,51200,4,1,1,1,4,2,4,1,1f1b,0,0,none,bf16,,megatron-core,even,,1,p",
     "{'schema':'dlsim/workload/1','source':'p','kind':'transformer','layers':4,'hidden':1024,'ffn':4096,'heads':16,"
     "'kv_heads':16,'seq':4096,'vocab':51200}",
     "{'schema':'dlsim/strategy/1','source':'p','workload':'GPT','software':'megatron-core','devices':8,"
     "'global_batch':4,'microbatch':1,'precision':'bf16','recompute':'none','stack':[{'name':'context','ways':2,"
     "'zigzag':true},{'name':'expert','ways':4,'over_context':true},{'name':'data','overlap':false}]}",
     NULL},
    {"c,mosaic-a100-40,8,MPT-1b,24,2048,,16,,2048,50368,64,,,,,,,,,,3,,,,llm-foundry-fsdp,,,1,p",
     "{'schema':'dlsim/workload/1','source':'p','kind':'transformer','layers':24,'hidden':2048,'heads':16,'seq':2048,"
     "'vocab':50368}",
     "{'schema':'dlsim/strategy/1','source':'p','workload':'MPT-1b','software':'llm-foundry-fsdp','devices':8,"
     "'global_batch':64,'microbatch':5,'stack':[{'name':'data','overlap':true},{'name':'zero','stage':3}]}",
     NULL},
    {"c2,dgx-h100,8,MPT-1b,24,2048,,16,,2048,50368,64,,,,,,,,,,2,,,,llm-foundry-fsdp,,,1,p",
     "{'schema':'dlsim/workload/1','source':'p','kind':'transformer','layers':24,'hidden':2048,'heads':16,'seq':2048,"
     "'vocab':50368}",
     "{'schema':'dlsim/strategy/1','source':'p','workload':'MPT-1b','software':'llm-foundry-fsdp','devices':8,"
     "'global_batch':64,'microbatch':5,'stack':[{'name':'data','overlap':true},{'name':'zero','stage':2}]}",
     NULL},
    {"d,selene,8,GPT,22,2304,9216,24,24,1024,51200,192,6,1,8,1,1,1,1,zb-1p,0,0,none,bf16,,megatron-core,uneven,vpp,1,p",
     "{'schema':'dlsim/workload/1','source':'p','kind':'transformer','layers':22,'hidden':2304,'ffn':9216,'heads':24,"
     "'kv_heads':24,'seq':1024,'vocab':51200}",
     "{'schema':'dlsim/strategy/1','source':'p','workload':'GPT','software':'megatron-core','devices':8,"
     "'global_batch':192,'microbatch':6,'precision':'bf16','recompute':'none','stack':[{'name':'pipeline','ways':8,"
     "'schedule':'zb-h1','chunks':1},{'name':'data','overlap':false}]}",
     NULL},
};

START_TEST(a_row_is_the_documents_that_it_stands_for)
{
    read_as_file(dl_arena_format(arena, COLUMNS "\n%s\n", mappings[_i].row), ".csv");
    ck_assert_msg(!err.status && rows.n == 1, "%s", err.text);
    const struct dl_training_row *const row = &rows.items[0];
    struct dl_session_request request = {0};
    dl_training_row_request(row, row->microbatch ? row->microbatch : 5, arena, &request, &err);
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_str_eq(request.topo.name, row->topo);
    check_document(&request.workload, mappings[_i].workload);
    check_document(&request.strategy, mappings[_i].strategy);
    ck_assert_uint_eq(request.set.n, mappings[_i].attention != NULL);
    if (mappings[_i].attention) ck_assert_str_eq(request.set.items[0], mappings[_i].attention);
}
END_TEST

/* A model of Llama's sizes is as the row says; where it does not say, it is Llama's, which is assumed. */
START_TEST(the_style_of_a_model_is_a_key_of_the_row)
{
    static const struct {
        const char *style, *sizes, *assumed;
        bool is_gated;
    } cases[] = {
        {"", "53248,128,16", "seq style", true},         {"", "65536,128,128", "seq", false},
        {"by_sizes", "53248,128,16", "seq style", true}, {"gpt", "53248,128,16", "seq", false},
        {"llama", "53248,128,16", "seq", true},          {"llama", "65536,128,128", "seq", true},
    };
    read_as_file(dl_arena_format(arena,
                                 COLUMNS
                                 ",style\nb,dgx-b200,16,MPT,4,16384,%s,4096,128256,4,,2,1,1,8,1,1,1f1b,1,1,none,"
                                 "bf16,flash,megatron-core,even,seq,1,p,%s\n",
                                 cases[_i].sizes, cases[_i].style),
                 ".csv");
    ck_assert_msg(!err.status && rows.n == 1, "%s", err.text);
    ck_assert_str_eq(rows.items[0].assumed, cases[_i].assumed);
    struct dl_session_request request = {0};
    ck_assert(!dl_training_row_request(&rows.items[0], 1, arena, &request, &err));
    ck_assert_int_eq(strstr(request.workload.text, "swiglu") != NULL, cases[_i].is_gated);
    ck_assert_ptr_eq(strstr(request.workload.text, "\"dropout\": true"), NULL);
}
END_TEST

/* What the row leaves to the software is in its file: the same row with a model of any name, written out. */
START_TEST(what_a_row_leaves_open_is_as_its_software_does)
{
    static const char *const names[] = {"MPT-1b", "GPT"};
    double step_s[DL_COUNT(names)];
    struct dl_session s;
    for (size_t i = 0; i < DL_COUNT(names); i++) {
        struct dl_session_request request = {.engine = "analytic"};
        rows.n = 0;
        read_as_file(dl_arena_format(arena,
                                     COLUMNS "\nc,dgx-h100,8,%s,4,2048,,16,,2048,50368,64,8,,,,,,,,,2,,,,"
                                             "llm-foundry-fsdp,,,1,p\n",
                                     names[i]),
                     ".csv");
        ck_assert(!dl_training_row_request(&rows.items[0], 8, arena, &request, &err));
        dl_session_open(&s, &request);
        ck_assert_msg(!dl_session_run(&s), "%s", s.err.text);
        step_s[i] = s.report.result.step_s;
        dl_session_close(&s);
    }
    ck_assert_double_eq(step_s[0], step_s[1]);
    struct dl_session_request request = {.engine = "analytic"};
    dl_training_row_request(&rows.items[0], 8, arena, &request, &err);
    request.set =
        (struct dl_texts){.items = {"workload.dropout=false", "stack.zero.stage=3", "stack.zero.reshard=false",
                                    "software.dropout=true", "software.gathers_stage_2=false"},
                          .n = 5};
    dl_session_open(&s, &request);
    ck_assert_msg(!dl_session_run(&s), "%s", s.err.text);
    ck_assert_double_eq(s.report.result.step_s, step_s[0]);
    dl_session_close(&s);
}
END_TEST

START_TEST(experts_are_columns_that_may_be_there)
{
    read_as_file(COLUMNS
                 ",experts,top_k\n"
                 "e,selene,8,GPT,4,64,256,4,4,64,512,8,1,1,1,8,1,4,1,1f1b,0,0,none,bf16,flash,ideal,even,,1,p,8,2\n",
                 ".csv");
    ck_assert_msg(!err.status && rows.n == 1, "%s", err.text);
    struct dl_session_request request = {0};
    struct dl_session s;
    ck_assert(!dl_training_row_request(&rows.items[0], 1, arena, &request, &err));
    request.engine = "analytic";
    dl_session_open(&s, &request);
    ck_assert_msg(!dl_session_run(&s), "%s", s.err.text);
    ck_assert(s.report.result.step_s > 0 && s.job.setting.expert_ways == 4);
    dl_session_close(&s);
}
END_TEST

START_TEST(numbers_that_do_not_go_together_are_refused)
{
    read_as_file(COLUMNS "\nf,selene,8,GPT,4,64,256,4,4,64,512,8,1,2,1,8,1,1,1,,0,0,,,,ideal,even,,1,p\n"
                         "g,selene,8,GPT,4,64,256,4,4,64,512,9,1,1,1,8,1,1,1,,0,0,,,,ideal,even,,1,p\n",
                 ".csv");
    ck_assert_msg(!err.status && rows.n == 2, "%s", err.text);
    for (size_t i = 0; i < rows.n; i++) {
        struct dl_session_request request = {0};
        struct dl_error refusal = {0};
        ck_assert(dl_training_row_request(&rows.items[i], 1, arena, &request, &refusal));
        ck_assert_msg(strstr(refusal.text, "tp x pp x cp x dp must be devices"), "%s", refusal.text);
    }
}
END_TEST

START_TEST(json_rows_share_what_is_common)
{
    read_as_file(
        "{\"schema\":\"dlsim/steps/1\",\"source\":\"a paper\",\"all\":{\"topo\":\"selene\",\"seq\":64,\"tp\":2},"
        "\"rows\":[{\"id\":\"x\",\"devices\":8,\"model\":\"GPT\",\"layers\":4,\"hidden\":64,\"heads\":4,"
        "\"vocab\":512,\"global_batch\":8,\"software\":\"ideal\",\"tp\":4,\"step_s\":1}]}",
        ".json");
    ck_assert_msg(!err.status && rows.n == 1, "%s", err.text);
    ck_assert(rows.items[0].tp == 4 && rows.items[0].seq == 64 && rows.items[0].pp == 1);
    ck_assert_str_eq(rows.items[0].source, "a paper");
    ck_assert_int_eq(dl_training_row_batch(&rows.items[0]), 4); /* 8 samples over 8 / 4 replicas */
}
END_TEST

/* Columns and entries of the stack together; the file of a workload with another length of samples. */
START_TEST(a_row_may_name_a_workload_and_say_more_of_the_stack)
{
    read_as_file(
        "{\"schema\":\"dlsim/steps/1\",\"source\":\"p\",\"rows\":[{\"id\":\"x\",\"topo\":\"selene\",\"devices\":8,"
        "\"model\":\"B\",\"workload\":\"bert-large\",\"seq\":128,\"global_batch\":16,\"software\":\"ideal\",\"tp\":2,"
        "\"optimizer\":\"lamb\",\"stack\":[{\"name\":\"data\",\"overlap\":true},{\"name\":\"offload\","
        "\"optimizer\":1}],\"step_s\":1}]}",
        ".json");
    ck_assert_msg(!err.status && rows.n == 1, "%s", err.text);
    struct dl_session_request request = {0};
    ck_assert_msg(!dl_training_row_request(&rows.items[0], 4, arena, &request, &err), "%s", err.text);
    ck_assert_str_eq(request.workload.name, "bert-large");
    ck_assert(!request.workload.text && request.set.n == 1);
    ck_assert_str_eq(request.set.items[0], "workload.seq=128");
    check_document(&request.strategy,
                   "{'schema':'dlsim/strategy/1','source':'p','workload':'B','software':'ideal','devices':8,"
                   "'global_batch':16,'microbatch':4,'optimizer':'lamb','stack':[{'name':'tensor','ways':2,"
                   "'sequence':false},{'name':'data','overlap':true},{'name':'offload','optimizer':1}]}");
}
END_TEST

START_TEST(a_row_may_name_a_strategy_and_nothing_more)
{
    read_as_file("{\"schema\":\"dlsim/steps/1\",\"source\":\"p\",\"rows\":[{\"id\":\"x\",\"topo\":\"selene\","
                 "\"strategy\":\"single\",\"mfu\":0.4,\"note\":\"why\"}]}",
                 ".json");
    ck_assert_msg(!err.status && rows.n == 1, "%s", err.text);
    struct dl_session_request request = {0};
    ck_assert(!dl_training_row_request(&rows.items[0], 1, arena, &request, &err));
    ck_assert_str_eq(request.strategy.name, "single");
    ck_assert(!request.strategy.text && !request.workload.name && !request.set.n);
    ck_assert(rows.items[0].step_s <= 0); /* nothing is published of its time */
}
END_TEST

START_TEST(a_pair_is_two_rows_with_what_they_share)
{
    read_as_file(
        "{\"schema\":\"dlsim/steps/1\",\"source\":\"p\",\"all\":{\"topo\":\"selene\"},\"rows\":[{\"id\":\"x\","
        "\"model\":\"R\",\"workload\":\"resnet50\",\"software\":\"ideal\",\"microbatch\":8,\"first\":{\"devices\":1,"
        "\"global_batch\":8},\"second\":{\"devices\":4,\"global_batch\":32},\"speedup\":3.5}]}",
        ".json");
    ck_assert_msg(!err.status && rows.n == 2, "%s", err.text);
    ck_assert(rows.items[0].begins_pair && !rows.items[1].begins_pair);
    ck_assert(rows.items[0].devices == 1 && rows.items[1].devices == 4 && rows.items[1].microbatch == 8);
    ck_assert(rows.items[1].quantity == DL_SPEEDUP);
    ck_assert_double_eq(rows.items[1].step_s, 3.5);
}
END_TEST

/* Tables that are met well, by the engine that a test has time for; the mean error that each must keep. */
static const struct {
    const char *table;
    double limit;
} met[] = {{"korthikanti_table4", 0.03}, {"korthikanti_table5", 0.03}, {"sc21_table1", 0.06},
           {"zero_bubble", 0.07},        {"simumax_b200", 0.08},       {"resnet50", 0.15}};

static struct dl_compared predict(const struct dl_training_row *row)
{
    struct dl_session_request request = {.engine = "analytic"};
    struct dl_session s;
    ck_assert_msg(!dl_training_row_request(row, row->microbatch, arena, &request, &err), "%s", err.text);
    dl_session_open(&s, &request);
    ck_assert_msg(!dl_session_run(&s), "%s: %s", row->id, s.err.text);
    const double step_s = s.report.result.step_s;
    dl_session_close(&s);
    return (struct dl_compared){.id = row->id,
                                .model = row->id,
                                .quantity = row->quantity,
                                .measured_s = row->step_s,
                                .predicted_s = step_s,
                                .samples_per_s = (double)row->global_batch / step_s};
}

START_TEST(tables_are_met)
{
    ck_assert_msg(!dl_training_rows_read(met[_i].table, arena, &rows, &err), "%s", err.text);
    double total = 0;
    size_t n = 0;
    for (size_t i = 0; i < rows.n; i++) {
        struct dl_compared row = predict(&rows.items[i]);
        if (rows.items[i].begins_pair) {
            const struct dl_compared first = row;
            row = predict(&rows.items[++i]);
            dl_compare_pair(&first, &row);
        }
        total += fabs(dl_compared_error(&row));
        n++;
    }
    ck_assert_msg(n && total / (double)n <= met[_i].limit, "%s: %g", met[_i].table, total / (double)n);
}
END_TEST

enum { published_parts = 8 }; /* of the rows, so that a busy computer has time for each */

START_TEST(published_rows_are_there_and_can_run)
{
    ck_assert_msg(!dl_training_rows_published(arena, &rows, &err), "%s", err.text);
    ck_assert_uint_ge(rows.n, 150);
    for (size_t i = (size_t)_i; i < rows.n; i += published_parts) {
        struct dl_session_request request = {.engine = "analytic"};
        struct dl_session s;
        ck_assert_msg(!dl_training_row_request(&rows.items[i], rows.items[i].microbatch, arena, &request, &err), "%s",
                      err.text);
        ck_assert_msg(!dl_session_open(&s, &request), "%s", s.err.text);
        dl_session_close(&s);
    }
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("training_rows");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, a_row_is_the_documents_that_it_stands_for, 0, (int)DL_COUNT(mappings));
    tcase_add_loop_test(tests, the_style_of_a_model_is_a_key_of_the_row, 0, 6);
    tcase_add_test(tests, what_a_row_leaves_open_is_as_its_software_does);
    tcase_add_test(tests, experts_are_columns_that_may_be_there);
    tcase_add_test(tests, numbers_that_do_not_go_together_are_refused);
    tcase_add_test(tests, json_rows_share_what_is_common);
    tcase_add_test(tests, a_row_may_name_a_workload_and_say_more_of_the_stack);
    tcase_add_test(tests, a_row_may_name_a_strategy_and_nothing_more);
    tcase_add_test(tests, a_pair_is_two_rows_with_what_they_share);
    tcase_add_loop_test(tests, tables_are_met, 0, (int)DL_COUNT(met));
    tcase_add_loop_test(tests, published_rows_are_there_and_can_run, 0, published_parts);
    Suite *const suite = suite_create("training_rows");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
