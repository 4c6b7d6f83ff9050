/* logs.c - logs of training programs: what their lines say is read, and what is cut off or garbled says nothing. */
#define _POSIX_C_SOURCE 200809L /* mkstemp */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/import/log.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;
static struct dl_log log_;
static struct dl_error err;

static void setup(void) { arena = dl_arena_new(); }

static void teardown(void)
{
    dl_log_release(&log_);
    dl_arena_free(arena);
}

static void read_text(const char *text)
{
    char path[] = "/tmp/dlsim-log-XXXXXX";
    const int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, text, strlen(text)), (ssize_t)strlen(text));
    close(file);
    dl_log_release(&log_);
    memset(&err, 0, sizeof err);
    ck_assert_msg(!dl_log_read(path, arena, &log_, &err), "%s", err.text);
    unlink(path);
}

static const struct dl_log_sizes some = {.devices = 8, .global_batch = 64, .tokens_per_sample = 2048};

static struct dl_log_summary summary(size_t warmup) { return dl_log_summarise(&log_, &some, warmup); }
static json_int_t said(const char *key) { return json_integer_value(json_object_get(log_.row, key)); }

static void check_format(const char *name)
{
    ck_assert_ptr_nonnull(log_.format);
    ck_assert_str_eq(log_.format->name, name);
}

/* ---- seconds ---- */

#define ITERATION(n, ms, batch)                                                                                        \
    " iteration " n "/ 100 | consumed samples: 4 | elapsed time per iteration (ms): " ms " | learning rate: 1E-4 | "   \
    "global batch size: " batch " | lm loss: 1.0E+01 |\n"

START_TEST(median_and_spread_leave_out_the_beginning)
{
    char text[8192] = "";
    for (int i = 1; i <= 31; i++) { /* the first ten are slow; then 101, 102, ... 121 ms */
        char line[400];
        snprintf(line, sizeof line,
                 " iteration %d/ 100 | elapsed time per iteration (ms): %d.0 | global batch size: 64 |\n", i,
                 i <= 10 ? 900 : 90 + i);
        strcat(text, line);
    }
    read_text(text);
    const struct dl_log_summary s = summary(DL_LOG_WARMUP), all = summary(0), half = summary(1000);
    ck_assert_uint_eq(s.n_steps, 31);
    ck_assert_uint_eq(s.n_warmup, 10);
    ck_assert_uint_eq(s.n_used, 21);
    ck_assert_double_eq_tol(s.median_s, 0.111, 1e-12);
    ck_assert_double_eq_tol(s.low_s, 0.103, 1e-12);
    ck_assert_double_eq_tol(s.high_s, 0.119, 1e-12);
    ck_assert_uint_eq(all.n_used, 31);
    ck_assert_uint_eq(half.n_used, 16);
}
END_TEST

START_TEST(only_steps_with_the_last_global_batch_count)
{
    read_text(ITERATION("1", "100.0", "32") ITERATION("2", "100.0", "32") ITERATION("3", "200.0", "64"));
    const struct dl_log_summary s = summary(0);
    ck_assert_uint_eq(s.n_other_batch, 2);
    ck_assert_uint_eq(s.n_used, 1);
    ck_assert_double_eq(s.median_s, 0.2);
    ck_assert_int_eq(said("global_batch"), 64);
}
END_TEST

START_TEST(lines_of_ranks_are_one_step)
{
    read_text("[rank0]: step:  1  loss: 1.0  memory: 2.00GiB(2%)  tps: 8,192  tflops: 1\n"
              "[rank1]: step:  1  loss: 1.0  memory: 3.00GiB(2%)  tps: 4,096  tflops: 1\n"
              "[rank1]: step:  2  loss: 1.0  memory: 1.00GiB(2%)  tps: 4,096  tflops: 1\n");
    check_format("torchtitan");
    const struct dl_log_summary s = summary(0);
    ck_assert_uint_eq(s.n_steps, 2);
    /* 64 samples of 2048 tokens on 8 devices */
    ck_assert_double_eq(s.median_s, 64. * 2048 / 8 / 4096);
    ck_assert_double_eq(log_.peak_bytes, 3. * 1024 * 1024 * 1024);
}
END_TEST

START_TEST(blocks_of_mlperf_are_samples_over_time)
{
    const char text[] =
        "0: :::MLLOG {\"time_ms\": 1000, \"key\": \"block_start\", \"metadata\": {\"samples_count\": 128}}\n"
        "0: :::MLLOG {\"time_ms\": 2000, \"key\": \"tracked_stats\", \"value\": {\"throughput\": 9}}\n"
        "0: :::MLLOG {\"time_ms\": 5000, \"key\": \"block_stop\", \"metadata\": {\"samples_count\": 640}}\n";
    read_text(text);
    check_format("MLPerf (MLLOG)");
    /* 512 samples in 4 s; throughput, whose unit differs from program to program, is not needed */
    ck_assert_uint_eq(summary(0).n_used, 1);
    ck_assert_double_eq(summary(0).median_s, 64 / (512 / 4.));
    read_text(":::MLLOG {\"time_ms\": 2000, \"key\": \"tracked_stats\", \"value\": {\"throughput\": 128}}\n");
    ck_assert_double_eq(summary(0).median_s, 64 / 128.);
    read_text(":::MLLOG {\"time_ms\": 2000, \"key\": \"tracked_stats\", \"value\": {\"train_step_time\": 0.75}}\n");
    ck_assert_double_eq(summary(0).median_s, 0.75);
}
END_TEST

START_TEST(megatron_may_tell_seconds)
{
    read_text("iteration 2/ 9 | elapsed time per iteration (s): 24.06 | learning rate: 1 |\n");
    ck_assert_double_eq(summary(0).median_s, 24.06);
}
END_TEST

/* ---- lines ---- */

/* Each begins with a whole step of 100 ms; what follows must not count as one. */
START_TEST(what_is_cut_off_or_garbled_says_nothing)
{
    static const char *const rests[] = {
        " iteration 2/ 100 | elapsed time per iteration (ms): 12",
        " iteration 2/ 100 | elapsed time per iter",
        " iteration 2/ 100 | elapsed time per iteration (ms): nan | x\n",
        " iteration 2/ 100 | elapsed time per iteration (ms): -5.0 | x\n",
        " iteration 2/ 100 | elapsed time per iteration (ms): 1e999 | x\n",
        " iteration x/ 100 | elapsed time per iteration (ms): 5.0 | x\n",
        " iteration \n",
        "completed step:",
        "step:  2  loss: 1.0  memory: 2.00GiB(2%)  tps: 12",
        ":::MLLOG {\"time_ms\": 10, \"key\": \"tracked_stats\", \"value\": {\"train_step_time\": 0.7",
        ":::MLLOG [1, 2]\n:::MLLOG null\n:::MLLOG {\"key\": 3}\n",
        "(min, max) time across ranks (ms):\n    forward-backward ....: (12",
        "\033[",
        "\n\n\r\n",
    };
    for (size_t i = 0; i < DL_COUNT(rests); i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", ITERATION("1", "100.0", "64"), rests[i]);
        read_text(text);
        check_format("Megatron-LM");
        ck_assert_msg(log_.n_steps == 1, "%s: %zu steps", rests[i], log_.n_steps);
        ck_assert_double_eq(summary(0).median_s, 0.1);
    }
}
END_TEST

START_TEST(prefixes_colours_and_line_ends_are_of_no_matter)
{
    static const char *const lines[] = {
        "iteration 1/ 9 | elapsed time per iteration (ms): 100.0 | x",
        "0: iteration 1/ 9 | elapsed time per iteration (ms): 100.0 | x\r",
        "[default7]: [2024-04-06 02:55:45] iteration        1/     100 | elapsed time per iteration (ms): 100.0 | x",
        "\033[32miteration 1/ 9 | elapsed time per iteration (ms):\033[0m 100.0 | x",
        "2024-04-06T02:55:45Z node-1\t0: iteration 1/ 9 | elapsed time per iteration (ms): 100.0 | x",
    };
    for (size_t i = 0; i < DL_COUNT(lines); i++) {
        read_text(lines[i]);
        ck_assert_msg(log_.n_steps == 1, "%s", lines[i]);
        ck_assert_int_eq(log_.steps[0].number, 1);
        ck_assert_double_eq(log_.steps[0].value, 0.1);
    }
}
END_TEST

START_TEST(a_text_without_steps_is_no_log)
{
    static const char *const texts[] = {"", "\n", "id,topo,devices\nA,selene,8\n", "Hello, world\n", "step: 3\n"};
    for (size_t i = 0; i < DL_COUNT(texts); i++) {
        read_text(texts[i]);
        ck_assert_ptr_null(log_.format);
    }
}
END_TEST

START_TEST(a_line_may_be_longer_than_fits)
{
    const size_t length = 3 << 20;
    char *const text = dl_alloc(length + 500);
    memset(text, 'x', length);
    strcpy(text + length, "\n" ITERATION("1", "100.0", "64"));
    read_text(text);
    dl_free(text);
    ck_assert_uint_eq(log_.n_steps, 1);
}
END_TEST

/* ---- what the run was ---- */

static const json_t *entry(const char *name)
{
    const json_t *const stack = json_object_get(log_.strategy, "stack");
    for (size_t i = 0; i < json_array_size(stack); i++) {
        const json_t *const one = json_array_get(stack, i);
        if (strcmp(json_string_value(json_object_get(one, "name")), name) == 0) return one;
    }
    return NULL;
}

static json_int_t number_in(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/* Of stages with several parts; it is printed without these, too. */
START_TEST(groups_of_micro_batches_are_read_where_stages_have_parts)
{
    static const struct {
        const char *parts;
        json_int_t group;
    } cases[] = {{"2", 5}, {"None", 0}};
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        char text[1500];
        snprintf(text, sizeof text,
                 "------------------------ arguments ------------------------\n"
                 "  num_layers ...................................... 16\n"
                 "  hidden_size ..................................... 1024\n"
                 "  num_attention_heads ............................. 16\n"
                 "  seq_length ...................................... 1024\n"
                 "  max_position_embeddings ......................... 1024\n"
                 "  padded_vocab_size ............................... 32256\n"
                 "  pipeline_model_parallel_size .................... 4\n"
                 "  virtual_pipeline_model_parallel_size ............ %s\n"
                 "  microbatch_group_size_per_vp_stage .............. 5\n"
                 "  micro_batch_size ................................ 1\n"
                 "  global_batch_size ............................... 9\n"
                 "  world_size ...................................... 4\n" ITERATION("1", "100.0", "9"),
                 cases[i].parts);
        read_text(text);
        ck_assert_msg(!log_.refusal, "%s", log_.refusal);
        ck_assert_int_eq(number_in(entry("pipeline"), "group"), cases[i].group);
    }
}
END_TEST

/* The block has every argument, at its default or not: only what was set becomes a flag. */
START_TEST(arguments_of_megatron_are_its_flags)
{
    read_text("------------------------ arguments ------------------------\n"
              "0:   num_layers ...................................... 32\n"
              "  hidden_size ..................................... 4096\n"
              "  ffn_hidden_size ................................. 14336\n"
              "  num_attention_heads ............................. 32\n"
              "  seq_length ...................................... 4096\n"
              "  max_position_embeddings ......................... 4096\n"
              "  group_query_attention ........................... True\n"
              "  num_query_groups ................................ 8\n"
              "  num_experts ..................................... None\n"
              "  moe_router_topk ................................. 2\n"
              "  moe_token_dispatcher_type ....................... allgather\n"
              "  tensor_model_parallel_size ...................... 4\n"
              "  pipeline_model_parallel_size .................... 2\n"
              "  num_layers_per_virtual_pipeline_stage ........... 4\n"
              "  virtual_pipeline_model_parallel_size ............ None\n"
              "  padded_vocab_size ............................... 32256\n"
              "  sequence_parallel ............................... True\n"
              "  use_distributed_optimizer ....................... True\n"
              "  overlap_grad_reduce ............................. True\n"
              "  recompute_granularity ........................... full\n"
              "  recompute_method ................................ block\n"
              "  recompute_num_layers ............................ 3\n"
              "  swiglu .......................................... True\n"
              "  add_bias_linear ................................. False\n"
              "  normalization ................................... RMSNorm\n"
              "  position_embedding_type ......................... rope\n"
              "  bf16 ............................................ True\n"
              "  fp8 ............................................. None\n"
              "  fp8_recipe ...................................... delayed\n"
              "  fp4 ............................................. e2m1\n"
              "  fp4_recipe ...................................... nvfp4\n"
              "  first_last_layers_bf16 .......................... True\n"
              "  num_layers_at_start_in_bf16 ..................... 0\n"
              "  num_layers_at_end_in_bf16 ....................... 4\n"
              "  attention_backend ............................... AttnBackend.auto\n"
              "  transformer_impl ................................ transformer_engine\n"
              "  main_grads_dtype ................................ torch.float32\n"
              "  micro_batch_size ................................ 1\n"
              "  world_size ...................................... 16\n"
              "  moe_latent_size ................................. 1024\n"
              "  mtp_num_layers .................................. 1\n" ITERATION("1", "100.0", "64"));
    ck_assert_msg(!log_.refusal, "%s", log_.refusal);
    ck_assert_int_eq(said("layers"), 32);
    ck_assert_int_eq(number_in(log_.workload, "mtp_layers"), 1);
    ck_assert_int_eq(number_in(log_.workload, "kv_heads"), 8);
    ck_assert_int_eq(number_in(log_.workload, "vocab"), 32256);
    ck_assert(json_is_false(json_object_get(log_.workload, "bias")));
    ck_assert_ptr_null(json_object_get(log_.workload, "experts"));
    ck_assert_int_eq(number_in(log_.strategy, "devices"), 16);
    ck_assert_int_eq(number_in(log_.strategy, "global_batch"), 64);
    ck_assert_int_eq(number_in(entry("tensor"), "ways"), 4);
    ck_assert_int_eq(number_in(entry("pipeline"), "chunks"), 32 / 2 / 4);
    ck_assert_int_eq(number_in(entry("recompute"), "layers"), 3);
    ck_assert_int_eq(number_in(entry("zero"), "stage"), 1);
    ck_assert(json_is_true(json_object_get(entry("data"), "overlap")));
    ck_assert_str_eq(json_string_value(json_object_get(log_.strategy, "precision")), "nvfp4");
    ck_assert_int_eq(number_in(log_.strategy, "wide_last_blocks"), 4);
    ck_assert_ptr_null(json_object_get(log_.strategy, "wide_first_blocks"));
    ck_assert_str_eq(log_.software, "megatron-core");
    ck_assert_uint_eq(log_.n_rest, 1); /* what dlsim knows nothing of */
    ck_assert_str_eq(log_.rest[0].name, "moe_latent_size");
}
END_TEST

START_TEST(a_log_of_several_runs_is_of_the_last)
{
    read_text(
        "using world size: 16, data-parallel size: 2, tensor-model-parallel size: 8, pipeline-model-parallel size: "
        "1\n" ITERATION("1", "100.0", "64")
            ITERATION("2", "100.0", "64") "using world size: 8, data-parallel size: 1, tensor-model-parallel size: 8, "
                                          "pipeline-model-parallel size: "
                                          "1\n" ITERATION("2", "300.0", "64"));
    ck_assert_uint_eq(log_.n_runs_before, 1);
    ck_assert_int_eq(said("devices"), 8);
    ck_assert_uint_eq(summary(0).n_steps, 1);
    ck_assert_double_eq(summary(0).median_s, 0.3);
}
END_TEST

START_TEST(meshes_of_torchtitan_are_read)
{
    static const char step[] = "step:  1  loss: 1.0  memory: 2.00GiB(2%)  tps: 8,192  tflops: 1\n";
    static const char *const meshes[] = {
        "Building 3-D device mesh with ['pp', 'dp_shard', 'tp'], [2, 4, 8]\n",
        "Building 3-D device mesh with ['pp', 'dp_shard', 'tp'], [2, 4, 8]\n\"data_parallel_shard_degree\": -1\n",
        "Building device mesh with parallelism: pp=2, dp_replicate=1, dp_shard=4, cp=1, tp=8, ep=1, etp=1\n",
        "Running with args: {'parallelism': {'pipeline_parallel_degree': 2, 'data_parallel_shard_degree': 4, "
        "'tensor_parallel_degree': 8}}\n",
        "\"pipeline_parallel_degree\": 2,\n\"data_parallel_shard_degree\": 4,\n\"tensor_parallel_degree\": 8\n",
    };
    for (size_t i = 0; i < DL_COUNT(meshes); i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s%s", meshes[i], step);
        read_text(text);
        ck_assert_msg(said("pp") == 2 && said("tp") == 8 && said("dp") == 4, "%s", meshes[i]);
        ck_assert_int_eq(said("devices"), 64);
        ck_assert_int_eq(said("zero"), 3);
    }
}
END_TEST

START_TEST(timers_are_of_the_slowest_rank)
{
    read_text(ITERATION("1", "100.0", "64") "(min, max) time across ranks (ms):\n"
                                            "    forward-backward ...............: (60.00, 80.00)\n"
                                            "    optimizer ......................: (3.00, 4.00)\n");
    ck_assert_uint_eq(log_.n_timers, 2);
    ck_assert_str_eq(log_.timers[0].name, "forward-backward");
    ck_assert_double_eq_tol(dl_log_timer_s(&log_.timers[0], 0), 0.08, 1e-15);
    read_text(
        ITERATION("1", "100.0", "64") "time (ms) | forward-compute: 30.00 | backward-compute: 50.00 | optimizer: 5\n");
    ck_assert_uint_eq(log_.n_timers, 3);
    ck_assert_str_eq(log_.timers[1].name, "backward-compute");
    ck_assert_double_eq_tol(dl_log_timer_s(&log_.timers[1], 0), 0.05, 1e-15);
}
END_TEST

/* ---- the table ---- */

START_TEST(every_format_has_what_it_needs)
{
    const struct dl_log_format *const f = dl_log_format_at((size_t)_i);
    ck_assert(f->name && *f->name && f->doc && *f->doc && f->line && f->finish);
    for (size_t i = 0; i < f->n_options; i++) {
        ck_assert_msg(f->options[i].name, "%s: option %zu", f->name, i);
        for (size_t j = 0; j < i; j++) ck_assert_str_ne(f->options[i].name, f->options[j].name);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("logs");
    TCase *const all = tcase_create("all");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_add_test(all, median_and_spread_leave_out_the_beginning);
    tcase_add_test(all, only_steps_with_the_last_global_batch_count);
    tcase_add_test(all, lines_of_ranks_are_one_step);
    tcase_add_test(all, blocks_of_mlperf_are_samples_over_time);
    tcase_add_test(all, megatron_may_tell_seconds);
    tcase_add_test(all, what_is_cut_off_or_garbled_says_nothing);
    tcase_add_test(all, prefixes_colours_and_line_ends_are_of_no_matter);
    tcase_add_test(all, a_text_without_steps_is_no_log);
    tcase_add_test(all, a_line_may_be_longer_than_fits);
    tcase_add_test(all, arguments_of_megatron_are_its_flags);
    tcase_add_test(all, groups_of_micro_batches_are_read_where_stages_have_parts);
    tcase_add_test(all, a_log_of_several_runs_is_of_the_last);
    tcase_add_test(all, meshes_of_torchtitan_are_read);
    tcase_add_test(all, timers_are_of_the_slowest_rank);
    tcase_add_loop_test(all, every_format_has_what_it_needs, 0, (int)dl_log_format_count());
    suite_add_tcase(suite, all);
    return run_suite(suite);
}
