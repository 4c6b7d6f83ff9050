/* row_tables.c - published tables whose columns are described in validation/: which rows their lines become. */
#include "tests/unit/row_fixture.h"

#define HEAD                                                                                                           \
    "id,devices,layers,hidden,ffn,heads,kv_heads,vocab,seq,global_batch,microbatch,tp,pp,dp,zero,ran,step_s,"          \
    "allocated_gb,reserved_gb,allreduce_gb_s,allgather_gb_s,reducescatter_gb_s,mfu_percent\n"

static struct dl_session_request request_of(const struct dl_training_row *row)
{
    struct dl_session_request request = {.engine = "analytic"};
    ck_assert_msg(!dl_training_row_request(row, row->microbatch, arena, &request, &err), "%s", err.text);
    return request;
}

static const json_t *member(const struct dl_input *input, const char *key)
{
    json_t *const doc = json_loads(input->text, 0, NULL), *const value = json_object_get(doc, key);
    json_incref(value);
    json_decref(doc);
    return value; /* the test is over before what it leaks matters */
}

START_TEST(columns_are_renamed_scaled_and_told_by_cases)
{
    read_text(HEAD "a,16,16,2048,8192,32,32,131072,4096,256,2,2,4,2,0,yes,3.5,25,50,425,241.5,241,39.2\n"
                   "b,8,32,4096,14336,32,8,131072,4096,256,8,1,1,8,1,oom,,,,,,,\n");
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(rows.n, 2);
    const struct dl_training_row *const a = &rows.items[0], *const b = &rows.items[1];
    ck_assert_str_eq(a->software, "nanotron");
    ck_assert_double_eq_tol(a->mfu, 0.392, 1e-12);
    ck_assert_double_eq_tol(a->tested.allgather_bytes_per_s, 241.5e9, 1);
    ck_assert(a->ran == DL_RAN && a->step_s == 3.5 && a->tied_embedding == 1);
    ck_assert(b->ran == DL_RAN_OUT_OF_MEMORY && b->step_s == 0 && b->tied_embedding == 0);
    const struct dl_session_request of_a = request_of(a), of_b = request_of(b);
    ck_assert(json_is_true(member(&of_a.workload, "tied_embedding")));
    ck_assert(json_is_false(member(&of_b.workload, "tied_embedding")));
    ck_assert_ptr_nonnull(strstr(of_a.strategy.text, "by_weights"));
    ck_assert_ptr_nonnull(strstr(of_a.strategy.text, "\"overlap\": true"));
    ck_assert_ptr_nonnull(strstr(of_b.strategy.text, "\"overlap\": false"));
}
END_TEST

#define RECIPES                                                                                                        \
    "id,release,model,method,precision,device,n_devices,seq,global_batch,microbatch,tp,pp,cp,ep,etp,vp,dp,fsdp,"       \
    "layers,"                                                                                                          \
    "ga,step_s,tokens_s,spread_min,spread_max,n_releases,checks,source\n"

START_TEST(lines_that_are_no_rows_are_counted_by_their_reason)
{
    read_text(RECIPES "a,1,deepseek-v3-671b,pretrain,bf16,H100,8,4096,32,1,2,4,1,1,1,20,1,,80,32,9,,,,,,x\n"
                      "b,1,llama3.1-405b,pretrain,bf16,H100,32,8192,64,1,8,1,2,1,1,1,2,,8,32,5.4,,,,,,x\n"
                      "c,1,deepseek-v3-671b,pretrain,bf16,H100,32,4096,128,1,2,4,1,1,1,20,4,,80,32,9,,,,,,x\n");
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(rows.n, 1);
    ck_assert_uint_eq(rows.left_out.n, 1);
    ck_assert_uint_eq(rows.left_out.items[0].n, 2);
    ck_assert_str_eq(rows.left_out.items[0].why,
                     "what is recomputed is not said, and without that a step does not fit");
}
END_TEST

/* Of rank 16 on queries, keys and values, as the recipes for performance have it. */
START_TEST(adapters_of_a_recipe_are_in_its_stack)
{
    read_text(RECIPES "a,1,llama3-70b,lora,bf16,H100,8,4096,32,1,2,4,1,1,1,20,1,,80,32,9,,,,,,x\n");
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(rows.n, 1);
    const struct dl_session_request request = request_of(&rows.items[0]);
    ck_assert_ptr_nonnull(strstr(request.strategy.text, "\"lora\""));
    ck_assert_ptr_nonnull(strstr(request.strategy.text, "\"qkv\""));
}
END_TEST

#define BRIDGE_HEAD                                                                                                    \
    "id,source,system,device,n_devices,model,layers,hidden,ffn,heads,kv_heads,seq,vocab,params_B,gbs,mbs,tp,pp,dp,"    \
    "cp,ep,vpp,sp,zero,recompute,precision,iter_s,tflops_per_dev,pct_peak,tokens_s_dev,other_metric,flop_def,"         \
    "iter_s_derived,confidence,notes\n"
#define BRIDGE_LINE(id, release, device, model, ways, precision)                                                       \
    "MBRIDGE-" id ",\"Megatron-Bridge docs (" release ", Pre-Training Performance)\",DGX," device ",256," model        \
    ",,,,,,4096,,,4096,2," ways ",,dist. optimizer,," precision ",,,,,,,10,made up,\n"

/* What a cell "n/a" means is no number of chunks, and what a release ran is in its configurations. */
START_TEST(steps_of_a_release_ran_as_its_recipes_say)
{
    read_text(BRIDGE_HEAD BRIDGE_LINE("1", "26.04", "GB300", "Qwen3_235B_a22B", "1,4,,1,32,12", "MXFP8")
                  BRIDGE_LINE("2", "26.06", "GB300", "Qwen3_235B_a22B", "1,4,,1,32,n/a", "MXFP8")
                      BRIDGE_LINE("3", "26.06", "H100", "DeepSeekV4", "1,1,,1,8,n/a", "FP8")
                          BRIDGE_LINE("4", "26.02", "B300", "Qwen3_235B_a22B", "1,8,,1,8,4", "MXFP8"));
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(rows.n, 3);
    ck_assert_uint_eq(rows.left_out.n, 1);
    const struct dl_training_row *const partly = &rows.items[0], *const whole = &rows.items[1];
    ck_assert(partly->ep == 32 && partly->vpp == 12 && whole->ep == 32 && whole->vpp == 1 && whole->zero == 1);
    ck_assert_str_eq(partly->topo, "gb300-nvl72");
    ck_assert_str_eq(partly->precision, "mxfp8");
    ck_assert(strstr(partly->stack_text, "outside_experts") && !strstr(partly->stack_text, "\"expert\""));
    ck_assert(strstr(whole->stack_text, "\"step\"") && strstr(whole->stack_text, "\"expert\""));
    ck_assert(strstr(rows.items[2].stack_text, "\"dispatch\": \"to_experts\", \"overlap\": true") != NULL);
}
END_TEST

/* User buffers, which tensor ranks overlap by, have no form for NVFP4. */
START_TEST(steps_in_four_bits_do_not_overlap_tensor_ranks)
{
    read_text(BRIDGE_HEAD BRIDGE_LINE("1", "26.04", "GB200", "LLAMA3_70B", "2,4,,1,n/a,5", "NVFP4")
                  BRIDGE_LINE("2", "26.04", "GB200", "LLAMA3_70B", "2,4,,1,n/a,5", "MXFP8")
                      BRIDGE_LINE("3", "26.04", "GB200", "Nemotron_3_Super", "2,1,,1,64,n/a", "NVFP4")
                          BRIDGE_LINE("4", "26.04", "GB200", "Nemotron_3_Super", "2,1,,1,64,n/a", "MXFP8"));
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(rows.n, 4);
    ck_assert_int_eq(rows.items[2].wide_last_blocks, 14);
    ck_assert(!rows.items[3].wide_last_blocks && !rows.items[0].wide_last_blocks);
    ck_assert(!strstr(rows.items[2].stack_text, "overlap_chunks"));
    ck_assert_str_eq(rows.items[0].precision, "nvfp4");
    ck_assert(rows.items[0].sp == 1 && !strstr(rows.items[0].stack_text, "overlap_chunks"));
    ck_assert(strstr(rows.items[1].stack_text, "overlap_chunks") != NULL);
}
END_TEST

/* From 26.06 on GB300 keeps all of DeepSeek-V3 in MXFP8, and its attention in it, GB200 does not; B300 is as before. */
START_TEST(steps_recompute_what_their_recipes_say)
{
    static const char *const software[] = {"megatron-bridge", "megatron-bridge-fused", "megatron-bridge-fp8-attention",
                                           "megatron-bridge", "megatron-bridge",       "megatron-bridge-fp8-windows",
                                           "megatron-bridge"};
    static const char *const modules[] = {
        "[\"mla_up_proj\"]", "[\"mla_up_proj\"]", NULL, "[\"layernorm\", \"moe_act\"]", NULL, NULL, NULL};
    read_text(BRIDGE_HEAD BRIDGE_LINE("1", "26.04", "GB300", "DeepSeekV3", "1,2,,1,32,8", "MXFP8")
                  BRIDGE_LINE("2", "26.08", "GB200", "DeepSeekV3", "1,4,,1,64,4", "MXFP8")
                      BRIDGE_LINE("3", "26.08", "GB300", "DeepSeekV3", "1,2,,1,32,8", "MXFP8")
                          BRIDGE_LINE("4", "26.02", "H100", "GPT OSS 120B", "1,4,,1,8,n/a", "BF16")
                              BRIDGE_LINE("5", "26.02", "GB300", "GPT OSS 120B", "1,1,,1,64,n/a", "BF16")
                                  BRIDGE_LINE("6", "26.06", "GB300", "GPT OSS 120B", "1,1,,1,16,n/a", "MXFP8")
                                      BRIDGE_LINE("7", "26.06", "B300", "GPT OSS 120B", "1,1,,1,8,n/a", "MXFP8"));
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(rows.n, DL_COUNT(modules));
    for (size_t i = 0; i < DL_COUNT(modules); i++)
        ck_assert_msg(!strstr(rows.items[i].stack_text, modules[i] ? modules[i] : "recompute") == !modules[i], "%s: %s",
                      rows.items[i].id, rows.items[i].stack_text);
    for (size_t i = 0; i < DL_COUNT(software); i++) ck_assert_str_eq(rows.items[i].software, software[i]);
}
END_TEST

/* Which attention and which loss, configure.sh and the configuration of each recipe say. */
START_TEST(recipes_of_nemo_leave_fused_kernels_out_as_they_say)
{
#define NEMO_LINE(release, model)                                                                                      \
    "a," release "," model ",pretrain,bf16,H100,128,8192,1024,1,4,2,2,1,1,1,8,,,1,9,,,,,,x\n"
    static const char *const software[] = {"nemo-2024-loss", "nemo-delayed", "nemo-2024-loss", "nemo-2024",
                                           "nemo-2025",      "nemo-2025",    "nemo-delayed",   "nemo-2025-tensorwise"};
    read_text(RECIPES NEMO_LINE("v25.04.02", "grok1-314b") NEMO_LINE("v25.05.05", "grok1-314b")
                  NEMO_LINE("v25.04.02", "gpt3-175b") NEMO_LINE("v25.03", "nemotron4-340b")
                      NEMO_LINE("v25.05.05", "nemotron4-340b") NEMO_LINE("v25.04.02", "nemotron4-15b")
                          NEMO_LINE("v25.03", "nemotron4-15b") NEMO_LINE("v25.05.05", "nemotron-h-56b"));
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(rows.n, DL_COUNT(software));
    for (size_t i = 0; i < DL_COUNT(software); i++) ck_assert_str_eq(rows.items[i].software, software[i]);
}
END_TEST

START_TEST(recipes_in_jax_shard_over_as_many_as_they_say)
{
    read_text(RECIPES "a,1,llama3-70b-maxtext,pretrain,fp8,H100,512,8192,1024,2,1,1,1,1,1,1,512,128,80,1,9,,,,,,x\n"
                      "b,1,llama3-70b-maxtext,pretrain,fp8,H100,128,8192,256,2,1,1,1,1,1,1,128,128,80,1,9,,,,,,x\n");
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(rows.n, 2);
    ck_assert_str_eq(rows.items[0].software, "jax-toolbox");
    ck_assert_ptr_nonnull(strstr(rows.items[0].stack_text, "\"shard_ways\": 128"));
    ck_assert_ptr_null(strstr(rows.items[1].stack_text, "shard_ways"));
}
END_TEST

/* Policies of jax.checkpoint in configure.sh of each release. */
START_TEST(recipes_in_jax_keep_what_they_say)
{
#define JAX_LINE(model, n) "a,1," model ",pretrain,bf16,H100," n ",4096,2048,2,1,1,1,1,1,1," n ",128,80,1,9,,,,,,x\n"
    static const char *const kept[] = {"[\"qkv\"]", "[\"qkv\"]", "[\"qkv\", \"projection\"]",
                                       "[\"qkv\", \"projection\"]"};
    read_text(RECIPES JAX_LINE("llama3-70b-maxtext", "128") JAX_LINE("llama3-70b-maxtext", "1024")
                  JAX_LINE("llama2-70b-maxtext", "128") JAX_LINE("llama2-70b-maxtext", "1024"));
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(rows.n, DL_COUNT(kept));
    for (size_t i = 0; i < DL_COUNT(kept); i++)
        ck_assert_msg(strstr(rows.items[i].stack_text, kept[i]), "%zu: %s", i, rows.items[i].stack_text);
}
END_TEST

START_TEST(a_part_of_the_model_of_a_file)
{
    read_text(RECIPES "b,1,llama3.1-405b,pretrain,bf16,H100,32,8192,64,1,8,1,2,1,1,1,2,,8,32,5.4,,,,,,x\n");
    ck_assert_msg(!err.status, "%s", err.text);
    const struct dl_session_request request = request_of(&rows.items[0]);
    ck_assert_str_eq(request.workload.name, "llama3-405b");
    ck_assert_str_eq(request.set.items[0], "workload.seq=8192");
    ck_assert_str_eq(request.set.items[1], "workload.layers=8");
}
END_TEST

#define OTHERS                                                                                                         \
    "id,set,source,device,n_devices,model,layers,seq,global_batch,microbatch,grad_accum,tp,pp,cp,ep,vp,dp,fsdp,zero,"  \
    "schedule,recompute,precision,status,step_s,tokens_s_dev,samples_s,tflops_dev,memory_gb,notes\n"

START_TEST(smaller_tables_are_told_by_their_set)
{
    read_text(OTHERS "a,TT,x,H100 96GB HBM2e 500W,8,Llama 3.1 8B,,8192,16,2,,1,1,1,,,8,8,,,selective,bf16+float8,ok,"
                     "2.5,,,,82.68,compile\n"
                     "b,AURORA,x,Intel PVC tile (Aurora),96,\"69B GPT (80 x 8192, kv 8)\",80,4096,24,1,4,2,8,,,,6,,1,"
                     ",full,bf16,OOM,,,,,,\n"
                     "c,PRIMUS,x,MI300X,8,Llama-2-7B,,,,,,1,8,,,2,,,,v-min,,,ok,,8897.2,,208.5,11.9,\n");
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(rows.n, 2);
    ck_assert_uint_eq(rows.left_out.n, 1);
    const struct dl_training_row *const a = &rows.items[0], *const b = &rows.items[1];
    ck_assert_str_eq(a->topo, "grand-teton");
    ck_assert_str_eq(a->precision, "fp8");
    ck_assert_double_eq_tol(a->reserved_bytes, 82.68e9, 1);
    ck_assert(a->zero == 3 && !a->recompute && strstr(a->stack_text, "recompute"));
    ck_assert(b->ran == DL_RAN_OUT_OF_MEMORY && b->zero == 1 && !b->step_s);
    ck_assert_str_eq(b->workload, "llama2-70b");
    ck_assert_str_eq(b->recompute, "full");
}
END_TEST

/* Which release ran decides what it compiled and kept: products of Transformer Engine in fp8 are none that the
 * checkpoint policy of Paxml saves. */
START_TEST(lines_of_others_run_as_the_code_of_their_time)
{
    read_text(OTHERS "TT-2412-a,TT,x,H200,8,Llama 3.1 8B,,8192,16,2,,1,1,1,,,8,8,,,full,bf16,ok,2.5,,,,,compile\n"
                     "TT-2506-a,TT,x,H200,8,Llama 3.1 8B,,8192,16,2,,1,1,1,,,8,8,,,full,bf16,ok,2.5,,,,,compile\n"
                     "a,JAXT,x,A100 80G SXM,256,GPT 5B,,2048,2048,8,,1,1,,,,1,256,3,,,bf16,ok,4.4,,,,,\n"
                     "b,JAXT,x,H100 80G SXM,256,GPT 175B,,2048,1536,6,,1,1,,,,1,256,3,,,te fp8,ok,23.4,,,,,\n"
                     "c,JAXT,x,H100 80G SXM,256,GPT 5B,,2048,2048,8,,1,1,,,,1,256,3,,,te fp8,ok,1.59,,,,,\n");
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(rows.n, 5);
    ck_assert_str_eq(rows.items[0].software, "torchtitan-2024");
    ck_assert_str_eq(rows.items[1].software, "torchtitan-2025");
    ck_assert_str_eq(rows.items[2].software, "paxml-2023");
    ck_assert_str_eq(rows.items[2].recompute, "selective");
    ck_assert(rows.items[3].vocab == 50257);
    ck_assert_str_eq(rows.items[3].software, "jax-toolbox-2023");
    ck_assert_str_eq(rows.items[3].recompute, "full");
    ck_assert_str_eq(rows.items[4].recompute, "full");
}
END_TEST

#define TRAINING                                                                                                       \
    "id,source,system,device,n_devices,model,layers,hidden,ffn,heads,kv_heads,seq,vocab,params_B,gbs,mbs,tp,pp,dp,cp," \
    "ep,vpp,sp,zero,recompute,precision,iter_s,tflops_per_dev,pct_peak,tokens_s_dev,other_metric,flop_def,"            \
    "iter_s_derived,confidence,notes\n"

/* LoRA of MLPerf: devices x accumulation / batch is the product of the ways; which they are, NVIDIA's configurations
 * say. */
#define MLPERF_HEAD                                                                                                    \
    "id,benchmark,round,division,org,system,device,n_devices,n_nodes,global_batch,grad_accum,seq,step_s,step_from,"    \
    "step_s_blocks,runs,tp,pp,vp,cp,microbatch,minibatch,fp8,fp4,seq_parallel,tp_comm_overlap,config_file,"            \
    "config_match,notes,source\n"
#define MLPERF_LORA(id, round, device, devices, batch, accumulation, tp, cp)                                           \
    id ",llama2_70b_lora," round ",closed,x,s," device "," devices ",1," batch "," accumulation                        \
       ",8192,1.5,log,,10," tp ",,," cp ",,,,,,,,,,x\n"

START_TEST(ways_of_adapters_that_are_not_told_follow_from_batch_and_device)
{
    read_text(MLPERF_HEAD MLPERF_LORA("a", "v4.0", "NVIDIA H100-SXM5-80GB", "8", "8", "4", "", "")
                  MLPERF_LORA("b", "v4.1", "NVIDIA H100-SXM5-80GB", "32", "8", "2", "", "")
                      MLPERF_LORA("c", "v5.0", "NVIDIA H200-SXM5-141GB", "8", "8", "2", "", "")
                          MLPERF_LORA("d", "v5.0", "NVIDIA Blackwell GPU (GB200)", "32", "8", "1", "", "")
                              MLPERF_LORA("e", "v5.1", "AMD Instinct MI350X", "8", "8", "1", "", ""));
    ck_assert_msg(!err.status, "%s", err.text);
    static const struct {
        int64_t tp, cp, accumulation;
        const char *software;
    } told[] = {{4, 1, 4, "megatron-bridge"},
                {4, 2, 2, "megatron-bridge"},
                {1, 2, 2, "mlperf-lora-transposed"},
                {1, 4, 1, "megatron-bridge"},
                {1, 1, 1, "mlperf-lora-transposed"}};
    ck_assert_uint_eq(rows.n, DL_COUNT(told));
    for (size_t i = 0; i < rows.n; i++) {
        const struct dl_training_row *const row = &rows.items[i];
        ck_assert_int_eq(row->tp, told[i].tp);
        ck_assert_str_eq(row->software, told[i].software);
        ck_assert_int_eq(row->cp, told[i].cp);
        ck_assert_int_eq(row->devices * told[i].accumulation / row->global_batch, row->tp * row->cp);
        ck_assert_ptr_nonnull(strstr(row->assumed, "tp cp"));
        request_of(row);
    }
}
END_TEST

START_TEST(adapters_of_a_round_ran_as_its_code)
{
#define BLACKWELL(id, round, device, devices, batch, cp)                                                               \
    MLPERF_LORA(id, round, "NVIDIA Blackwell " device, devices, batch, "1", "1", cp)
    read_text(
        MLPERF_HEAD BLACKWELL("a", "v5.0", "GPU (B200-SXM-180GB)", "8", "8",
                              "1") BLACKWELL("b", "v5.1", "GPU (B200-SXM-180GB)", "8", "8", "1")
            BLACKWELL("c", "v5.1", "GPU (B200-SXM-180GB)", "64", "8", "8") BLACKWELL(
                "d", "v5.1", "Ultra GPU (GB300)", "8", "8",
                "1") "e,llama2_70b_lora,v5.1,closed,x,s,NVIDIA Blackwell GPU (GB200),8,2,8,1,8192,1.2,log,,10,1,,,1,,,,"
                     "True,,,,,,x\n");
    ck_assert_msg(!err.status, "%s", err.text);
    static const char *const software[] = {"mlperf-lora", "mlperf-lora-fused-stored", "mlperf-lora-fused",
                                           "mlperf-lora-fused", "mlperf-lora-fused"};
    ck_assert_uint_eq(rows.n, DL_COUNT(software));
    for (size_t i = 0; i < rows.n; i++) {
        ck_assert_str_eq(rows.items[i].software, software[i]);
        ck_assert_str_eq(rows.items[i].precision, i == 4 ? "nvfp4" : "fp8");
    }
}
END_TEST

/* Two tables with the same columns: one knows a share of peak, of the other all lines are rows of shipped tables. */
START_TEST(tables_with_the_same_columns_are_told_by_their_ids)
{
    read_text(TRAINING "MAXTEXT-1x_v5p-128-32B,x,,TPU v5p,64,32B,,,,,,2048,,,,,,,,,,,,,,bf16,,328,71.47,,,,,,\n"
                       "SC21-T1-01,x,,A100-80,32,GPT,24,,,,,,,,512,16,1,1,32,,,,no,0,full,fp16,,137,44,,,,3.53,,\n");
    ck_assert_msg(!err.status, "%s", err.text);
    ck_assert_uint_eq(rows.n, 1);
    ck_assert_uint_eq(rows.left_out.items[0].n, 1);
    ck_assert(rows.items[0].global_batch == 448 && rows.items[0].tp == 4 && rows.items[0].step_s == 0);
    ck_assert_double_eq_tol(rows.items[0].mfu, 0.7147, 1e-12);
    ck_assert_str_eq(rows.items[0].workload, "maxtext-32b");
}
END_TEST

START_TEST(a_table_without_a_line_to_simulate_says_why)
{
    read_text(TRAINING "SC21-T1-01,x,,A100-80,32,GPT,24,,,,,,,,512,16,1,1,32,,,,no,0,full,fp16,,137,44,,,,3.53,,\n");
    ck_assert_str_eq(err.text, "us.csv: has no line that can be simulated (1: rows of shipped tables)");
}
END_TEST

/* One column more is another table, which no description is of. */
START_TEST(a_description_is_of_all_columns)
{
    read_text("more," HEAD);
    ck_assert_str_eq(err.text, "us.csv:1: unknown column 'more', did you mean 'model'?");
}
END_TEST

START_TEST(a_step_that_ran_needs_its_time)
{
    read_text(HEAD "a,16,16,2048,8192,32,32,131072,4096,256,2,2,4,2,0,yes,,25,50,425,241.5,241,\n");
    ck_assert_str_eq(err.text, "us.csv:2: needs the key 'step_s'");
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("tables of rows");
    TCase *const tests = tcase_create("tables of rows");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_test(tests, columns_are_renamed_scaled_and_told_by_cases);
    tcase_add_test(tests, lines_that_are_no_rows_are_counted_by_their_reason);
    tcase_add_test(tests, adapters_of_a_recipe_are_in_its_stack);
    tcase_add_test(tests, steps_of_a_release_ran_as_its_recipes_say);
    tcase_add_test(tests, steps_recompute_what_their_recipes_say);
    tcase_add_test(tests, steps_in_four_bits_do_not_overlap_tensor_ranks);
    tcase_add_test(tests, recipes_of_nemo_leave_fused_kernels_out_as_they_say);
    tcase_add_test(tests, recipes_in_jax_shard_over_as_many_as_they_say);
    tcase_add_test(tests, recipes_in_jax_keep_what_they_say);
    tcase_add_test(tests, a_part_of_the_model_of_a_file);
    tcase_add_test(tests, smaller_tables_are_told_by_their_set);
    tcase_add_test(tests, lines_of_others_run_as_the_code_of_their_time);
    tcase_add_test(tests, ways_of_adapters_that_are_not_told_follow_from_batch_and_device);
    tcase_add_test(tests, adapters_of_a_round_ran_as_its_code);
    tcase_add_test(tests, tables_with_the_same_columns_are_told_by_their_ids);
    tcase_add_test(tests, a_table_without_a_line_to_simulate_says_why);
    tcase_add_test(tests, a_description_is_of_all_columns);
    tcase_add_test(tests, a_step_that_ran_needs_its_time);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
