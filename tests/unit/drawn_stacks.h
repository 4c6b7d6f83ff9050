/* drawn_stacks.h - random jobs for training_battery.c: a machine, a workload and a stack of strategies, as texts. */
#ifndef DL_TESTS_DRAWN_STACKS_H
#define DL_TESTS_DRAWN_STACKS_H

#include "strategies/schedule.h"
#include "tests/training_runs.h"

static const uint64_t seed = 22;

#define WORKLOAD                                                                                                       \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':%u,'hidden':512,'seq':128,"          \
    "'vocab':1024%s}"
/* Pairs of layers, and a loss of which every tensor rank has the whole. */
#define MLP "{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','loss':'cross_entropy','widths':[512"
#define FLASH                                                                                                          \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':1e-6,'attention':'flash',"                     \
    "'ring_repeats_keys':true,'ring_gathers_once':true,'ring_gradient_bytes':4,'ring_merge_moves':12,"                 \
    "'ring_merge_backward_moves':8,'keep_moves':3,'keep_backward_moves':0.5,'kept_times':2,"                           \
    "'repeats_kept_products':true,"                                                                                    \
    "'kernels':[{'operation':'attention','pass':'input_gradient','launches':4,'result_moves':2,'beside':'copy'}]}"
/* Everything in which the host can meet its device, and sends one after the other. */
#define WAITS                                                                                                          \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':1e-5,'host_s_per_group_launch':4e-6,"          \
    "'collective_host_s':2e-5,"                                                                                        \
    "'batch_host_s':1e-4,'overlaps_tensor':true,'sends':'blocking','send_host_s':3e-5,'drains_at_sends':true,"         \
    "'drains_at_waits':true,'drains_at_dispatch':true,'drains_at_recompute':true,'dispatch_overlap_fraction':0.45,"    \
    "'dispatches_by_maps':true,'overlap_host_s':3e-4,'group_host_s':2e-5,"                                             \
    "'gemm_workspaces':2,'group_workspaces':4,'own_workspace_bytes':1e6,'deferred_head_gradients':2,'deals_tensors':"  \
    "true,'bucket_moves':6,'"                                                                                          \
    "scatter_moves':4,"                                                                                                \
    "'gather_moves':2,'casts_model':true,"                                                                             \
    "'offload_blocks':true,'new_memory_bytes_per_s':1e9,'gathers_ahead':0,'gathers_modules':true,"                     \
    "'attention':'unfused','kernels':[{'operation':'softmax',"                                                         \
    "'unless_multiple_of':4,'launches':3,'moves':5},{'operation':'residual','dropout':true,'launches':2,'moves':0.9,"  \
    "'beside':'dropout','beside_moves':0.7},{'operation':'layernorm','launches':2,'wide':true,'beside_moves':1.5},"    \
    "{'operation':'gelu','pass':'input_gradient','experts':true,'launches':1,'unit_s':1e-11},"                         \
    "{'operation':'gemm','pass':'forward','experts':true,'bias':true,'launches':2,'result_moves':2},"                  \
    "{'operation':'gelu','launches':1,'as':'relu'},{'operation':'cross_entropy','launches':2,'drains':true}],"         \
    "'operands':[{'precision':'fp16','moves':2,'launches':1}]}"
/* Experts one by one, with rows that are padded; heads that are; parts of keys that are gathered. */
#define PADS                                                                                                           \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':5e-6,'attention':'flash',"                     \
    "'gathers_key_heads':true,'unfused_wide_groups':true,'batches_without_chunks':true,"                               \
    "'kernels':[{'operation':'permute','launches':2,'each_expert':true,'expert_moves':0.5},"                           \
    "{'operation':'unpermute','launches':3,'each_expert':true,'expert_moves':1},"                                      \
    "{'operation':'attention','launches':1,'head_sizes':[48,80,128]}],"                                                \
    "'operands':[{'precision':'fp16','moves':3,'launches':2,'pads':true,'weight_copies':1}]}"
/* Hosts wait where something comes, not where it goes. */
#define RECEIVES                                                                                                       \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':5e-6,'attention':'flash',"                     \
    "'drains_at_receives':true,'waits_for_collectives':true,'bf16_zero_gradient_bytes':2,'flat_gathers':true,"         \
    "'backward_gradient_bytes':2,'backward_gradients_stay':true,'launch_queue':100}"
/* Slow enough, and drawing so much, that its clock falls. */
#define HOT_DEVICE                                                                                                     \
    "{'schema':'dlsim/device/1','source':'a test','model':'roofline','peak_flop_per_s':{'fp32':1e13,'fp16':1e13},"     \
    "'memory_bytes':1e18,'memory_bytes_per_s':1e12,'launch_s':0,'figures':{'compute_fraction':1,"                      \
    "'bandwidth_fraction':1},'power':{'limit_w':200,'idle_w':50,'memory_w':100,'function_w':150,'optimizer_w':100,"    \
    "'product_w':500,'convolution_w':500,'fallback_w':300,'attention_w':300,'attention_backward_w':250,"               \
    "'function_clock_share':0.3,'product_clock_share':0.5,'fallback_clock_share':1,'attention_clock_share':0.7,"       \
    "'product_timed_clock_fraction':0.8}}"

/* On ideal networks: messages above some bytes go another way. */
#define TWO_KINDS                                                                                                      \
    "transport.protocols=[{'name':'one','peer':{'network_s':1e-6},'tree':{'network_s':1e-6},"                          \
    "'above':{'bytes':2e5,'network_s':9e-6,'bandwidth_fraction':0.7}}]"

static const struct machine {
    const char *system, *device, *software;
} machines[] = {
    {IDEAL_SYSTEM("1e9", "1e-6"), IDEAL_DEVICE, "ideal"}, {IDEAL_SYSTEM("1e11", "1e-5"), IDEAL_DEVICE, "megatron-2021"},
    {"dgx-a100-hdr4", "a100-40", "megatron-2021"},        {"dgx1-v100", "v100-32", "ideal"},
    {IDEAL_SYSTEM("1e10", "1e-6"), IDEAL_DEVICE, FLASH},  {"dgx-a100-hdr4", "a100-40", "megatron-deepspeed"},
    {"dgx-a100-hdr4", "a100-80", "pytorch-eager"},        {IDEAL_SYSTEM("1e10", "1e-6"), "a100-80", WAITS},
    {IDEAL_SYSTEM("1e10", "1e-6"), "a64fx", "ideal"},     {IDEAL_SYSTEM("1e10", "1e-6"), HOT_DEVICE, "ideal"},
    {IDEAL_SYSTEM("1e10", "1e-6"), "a100-80", PADS},      {"dgx-a100-hdr4", "a100-80", RECEIVES},
};

/* What was drawn, as texts. */
struct drawn {
    const struct machine *machine;
    const char *set; /* as --set; NULL: nothing */
    bool is_mlp, has_experts, by_message;
    char workload[400], strategy[1600];
};

static uint32_t draw(gsl_rng *rng, uint32_t n) { return (uint32_t)gsl_rng_uniform_int(rng, n); }

static const char *one_of(gsl_rng *rng, const char *const *texts, uint32_t n) { return texts[draw(rng, n)]; }

struct ways {
    uint32_t tensor, context, data, pipeline, expert;
    bool experts_over_context;
};

static bool goes_round(const struct drawn *d)
{
    return !d->is_mlp && (strcmp(d->machine->software, FLASH) == 0 || strcmp(d->machine->software, PADS) == 0);
}

static struct ways draw_ways(gsl_rng *rng, const struct drawn *d)
{
    struct ways w = {.tensor = 1u << draw(rng, 4), .pipeline = 1 + draw(rng, 4), .data = 1 + draw(rng, 4)};
    w.context = goes_round(d) ? 1u << draw(rng, 3) : 1;
    w.expert = d->has_experts && w.data % 2 == 0 ? 2 : 1;
    w.experts_over_context = d->has_experts && w.context > 1 && w.context * w.expert <= 4 && draw(rng, 2);
    if (w.experts_over_context) w.expert *= w.context;
    return w;
}

/* In a line, or as a grid. */
static void draw_tensor(gsl_rng *rng, uint32_t ways, char *out, size_t bytes)
{
    static const char *const lines[] = {"'sequence':false",
                                        "'sequence':false",
                                        "'sequence':true",
                                        "'sequence':true",
                                        "'sequence':true,'overlap_chunks':2",
                                        "'sequence':true,'overlap_chunks':2,'overlap_scatters':false",
                                        "'overlap_chunks':4",
                                        "'overlap_chunks':4"};
    static const char *const grids[] = {"2d", "2.5d", "3d"};
    const char *const kind = one_of(rng, grids, DL_COUNT(grids));
    const uint32_t y = 1u << draw(rng, 2), z = strcmp(kind, "2d") == 0 ? 1 : 1 + draw(rng, 2);
    char depth[20] = "";
    if (z > 1) snprintf(depth, sizeof depth, ",'z':%u", z);
    if (ways < y * z || draw(rng, 2))
        snprintf(out, bytes, "%s", one_of(rng, lines, DL_COUNT(lines)));
    else
        snprintf(out, bytes, "'grid':'%s','x':%u,'y':%u%s", kind, ways / y / z, y, depth);
}

/* Mostly what can be. */
static const char *draw_zero(gsl_rng *rng, const struct ways *w, bool is_deepspeed)
{
    static const char *const zeros[] = {"",
                                        "",
                                        "",
                                        ",{'name':'zero','stage':1}",
                                        ",{'name':'zero','stage':2,'gather_bits':8}",
                                        ",{'name':'zero','stage':3}",
                                        ",{'name':'zero','stage':3,'gather_bits':4,'prefetch':3}",
                                        ",{'name':'zero','stage':1,'shard_ways':2}",
                                        ",{'name':'zero','stage':3,'shard_ways':2,'prefetch':0}",
                                        ",{'name':'zero','stage':3,'secondary_ways':2,'scatter_bits':4}",
                                        ",{'name':'zero','stage':3,'reshard':false,'prefetch':2}"};
    const uint32_t n_any = DL_COUNT(zeros) - 4, n_even = n_any + 3, n_deepspeed = 4; /* in a pipeline */
    if (w->pipeline > 1 && is_deepspeed) return one_of(rng, zeros, n_deepspeed);
    return one_of(rng, zeros, w->pipeline == 1 ? DL_COUNT(zeros) : w->data % 2 ? n_any : n_even);
}

/* Stage 3 of ZeRO has no buckets, and those that cut gradients sum by all-reduce. */
static const char *draw_data(gsl_rng *rng, const char *zero)
{
    static const char *const datas[] = {"",
                                        "",
                                        "",
                                        ",'when':'micro'",
                                        ",'bucket_bytes':2e6",
                                        ",'bucket_bytes':2e6,'when':'micro'",
                                        ",'exchange':'parameter_server'",
                                        ",'exchange':'parameter_server','servers':2",
                                        ",'exchange':'rings'",
                                        ",'exchange':'direct_ring'"};
    return one_of(rng, datas, strstr(zero, "'stage':3") ? 4 : *zero ? 5 : DL_COUNT(datas));
}

static void draw_offload(gsl_rng *rng, char *out, size_t bytes)
{
    const double parts[] = {0, 0.25, 1};
    const double optimizer = parts[draw(rng, 3)], parameters = parts[draw(rng, 3)], activations = parts[draw(rng, 3)];
    snprintf(out, bytes, ",{'name':'offload','optimizer':%g,'parameters':%g,'activations':%g}", optimizer, parameters,
             activations);
}

/* A number of blocks for each part, one of them a block away from an even split; now and then they do not add up. */
static void draw_list(gsl_rng *rng, uint32_t n_parts, uint32_t n_blocks, char *out, size_t bytes)
{
    const uint32_t from = draw(rng, n_parts), to = draw(rng, n_parts), lost = draw(rng, 8) == 0;
    size_t used = (size_t)snprintf(out, bytes, ",'layers_per_stage':[");
    for (uint32_t i = 0; i < n_parts; i++) {
        const uint32_t even = n_blocks / n_parts + (i < n_blocks % n_parts);
        const uint32_t blocks = even + (even && n_blocks > n_parts ? (i == to) - (i == from) : 0);
        used += (size_t)snprintf(out + used, bytes - used, "%s%u", i ? "," : "", blocks + (i == 0 && lost));
    }
    snprintf(out + used, bytes - used, "]");
}

static void draw_split(gsl_rng *rng, uint32_t n_parts, uint32_t n_blocks, char *out, size_t bytes)
{
    static const char *const splits[] = {"",
                                         "",
                                         ",'split':'count_ends'",
                                         ",'split':'by_cost'",
                                         ",'split':'by_cost','embedding':'alone'",
                                         ",'head':'alone'",
                                         ",'split':'count_ends','head':'alone','embedding':'alone'"};
    if (draw(rng, 6) == 0)
        draw_list(rng, n_parts, n_blocks, out, bytes);
    else
        snprintf(out, bytes, "%s", one_of(rng, splits, DL_COUNT(splits)));
}

static void draw_stack(gsl_rng *rng, const struct ways *w, uint32_t n_blocks, bool is_deepspeed, char *out,
                       size_t bytes)
{
    static const char *const quantized[] = {"", "", ",{'name':'quantized_allreduce','bits':8}",
                                            ",{'name':'quantized_allreduce','method':'one_bit'}",
                                            ",{'name':'quantized_allreduce','method':'top_k'}"};
    static const char *const travels[] = {"", ",'dispatch':'to_nodes'", ",'overlap':true",
                                          ",'dispatch':'to_nodes','overlap':true", ",'even':true"};
    static const char *const graphs[] = {"",
                                         "",
                                         ",{'name':'blocking_launches'}",
                                         ",{'name':'graphs','scope':'outside_experts'}",
                                         ",{'name':'graphs','scope':'step'}",
                                         ",{'name':'graphs','scope':'passes'}"};
    const struct dl_schedule_kind *const any = dl_schedule_get(draw(rng, (uint32_t)dl_schedule_count()));
    const bool has_pairs = strcmp(any->name, "dualpipe") || w->pipeline % 2 == 0 || draw(rng, 4) == 0;
    const struct dl_schedule_kind *const kind = has_pairs ? any : dl_schedule_get(0);
    const uint32_t chunks = draw(rng, 8) ? kind->min_chunks : 1 + draw(rng, 3); /* sometimes a wrong number */
    char tensor[100], split[200];
    draw_tensor(rng, w->tensor, tensor, sizeof tensor);
    draw_split(rng, strcmp(kind->name, "dualpipe") == 0 ? w->pipeline : w->pipeline * chunks, n_blocks, split,
               sizeof split);
    const bool overlap = draw(rng, 2);
    const char *const zero = draw_zero(rng, w, is_deepspeed), *const data = draw_data(rng, zero);
    snprintf(out, bytes,
             "[{'name':'pipeline','ways':%u,'schedule':'%s','chunks':%u%s},{'name':'tensor','ways':%u,%s},"
             "{'name':'data','overlap':%s%s}%s%s",
             w->pipeline, kind->name, chunks, split, w->tensor, tensor, overlap ? "true" : "false", data, zero,
             one_of(rng, quantized, DL_COUNT(quantized)));
    const bool zigzag = draw(rng, 2);
    size_t used = strlen(out);
    if (w->context > 1)
        snprintf(out + used, bytes - used, ",{'name':'context','ways':%u,'zigzag':%s}", w->context,
                 zigzag ? "true" : "false");
    used = strlen(out);
    const char *const travel = one_of(rng, travels, DL_COUNT(travels)), *const graph =
                                                                            one_of(rng, graphs, DL_COUNT(graphs));
    if (w->expert > 1)
        snprintf(out + used, bytes - used, ",{'name':'expert','ways':%u%s%s}", w->expert,
                 w->experts_over_context ? ",'over_context':true" : "", travel);
    used = strlen(out);
    snprintf(out + used, bytes - used, "%s", graph);
    used = strlen(out);
    if (draw(rng, 4) == 0) draw_offload(rng, out + used, bytes - used);
}

/* Mixers of a state space in all places, where nothing divides their sequence. */
static void write_mixers(uint32_t n_blocks, struct drawn *out)
{
    char more[300] = ",'state_heads':8,'state_head_size':64,'state_size':16,'state_groups':8,'pattern':'";
    const size_t used = strlen(more);
    memset(more + used, 'M', n_blocks);
    strcpy(more + used + n_blocks, "'");
    snprintf(out->workload, sizeof out->workload, WORKLOAD, n_blocks, more);
}

static void draw_workload(gsl_rng *rng, const struct ways *w, uint32_t n_blocks, struct drawn *out)
{
    if (!out->is_mlp && !out->has_experts && w->context == 1 && n_blocks % 7 == 6) {
        write_mixers(n_blocks, out);
        return;
    }
    static const char *const dense[] = {",'heads':8,'attention_dropout':false",
                                        ",'heads':8,'parallel_norms':1",
                                        ",'heads':8,'kv_heads':2",
                                        ",'heads':8",
                                        ",'heads':8,'parallel_norms':2",
                                        ",'heads':8,'kv_heads':1",
                                        ",'heads':8"};
    if (!out->is_mlp) {
        snprintf(out->workload, sizeof out->workload, WORKLOAD, n_blocks,
                 !out->has_experts ? dense[n_blocks % DL_COUNT(dense)]
                 : !draw(rng, 2)   ? ",'heads':8,'experts':4,'top_k':2,'expert_groups':2,'top_groups':1"
                 : n_blocks % 2
                     ? ",'heads':8,'experts':4,'top_k':2,'qk_norm':true"
                     : ",'heads':8,'experts':4,'top_k':2,'qk_norm':true,'capacity_factor':1.5,'routes_by_gemms':true");
        return;
    }
    size_t used = (size_t)snprintf(out->workload, sizeof out->workload, MLP);
    for (uint32_t i = 0; i < 2 * n_blocks; i++)
        used += (size_t)snprintf(out->workload + used, sizeof out->workload - used, ",512");
    snprintf(out->workload + used, sizeof out->workload - used, "]}");
}

/* Some jobs train adapters alone. */
static const char *adapters_of(uint64_t index, const struct drawn *d, const char *stack)
{
    static const char *const entries[] = {
        ",{'name':'lora','rank':16,'targets':['qkv','projection','fc1','fc2'],'dropout':true}",
        ",{'name':'lora','rank':8,'targets':['projection','fc1']}"};
    const bool has_attention = !d->is_mlp && !strstr(d->workload, "'pattern'");
    return has_attention && !d->has_experts && !strstr(stack, "'grid'") && index % 7 == 6 ? entries[index / 7 % 2] : "";
}

static void draw_job(uint64_t index, struct drawn *out)
{
    static const char *const orders[] = {"['tensor','context','data','pipeline']",
                                         "['pipeline','tensor','data','context']",
                                         "['data','pipeline','context','tensor']"};
    static const char *const recomputes[] = {"{'name':'recompute','mode':'none'}",
                                             "{'name':'recompute','mode':'selective'}",
                                             "{'name':'recompute','mode':'full'}",
                                             "{'name':'recompute','mode':'full','layers':1}",
                                             "{'name':'recompute','mode':'full','every':2}",
                                             "{'name':'recompute','mode':'full','layers':3,'every':2}",
                                             "{'name':'recompute','mode':'full','keeps':'alternate_gemms'}",
                                             "{'name':'recompute','mode':'full','kept_results':['qkv','context']}"};
    static const char *const precisions[] = {"fp16", "fp32"};
    static const char *const optimizers[] = {"sgd", "momentum", "adam", "lamb"};
    gsl_rng *const rng = dl_random_new(seed, "battery", index);
    char stack[1000];
    out->machine = &machines[draw(rng, DL_COUNT(machines))];
    out->is_mlp = index % 8 == 7;
    out->has_experts = !out->is_mlp && draw(rng, 4) == 0;
    const struct ways w = draw_ways(rng, out);
    const uint32_t rows = out->is_mlp ? 8 : 1; /* of a sample there are more in the others */
    const uint32_t microbatch = rows * (1 + draw(rng, 4)), micros = draw(rng, 8) ? w.pipeline * (1 + draw(rng, 4)) : 1;
    const uint32_t n_blocks = w.pipeline * (2 + draw(rng, 4)) + draw(rng, 3);
    draw_stack(rng, &w, n_blocks, strstr(out->machine->software, "deepspeed"), stack, sizeof stack);
    draw_workload(rng, &w, n_blocks, out);
    snprintf(out->strategy, sizeof out->strategy,
             "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','devices':%u,'global_batch':%u,"
             "'microbatch':%u,'precision':'%s','optimizer':'%s','order':%s,'stack':%s,%s%s]}",
             w.tensor * w.context * w.pipeline * w.data, w.data * microbatch * micros, microbatch,
             one_of(rng, precisions, 2), one_of(rng, optimizers, 4), one_of(rng, orders, 3), stack,
             one_of(rng, recomputes, DL_COUNT(recomputes) - out->is_mlp), /* the last names parts of attention */
             adapters_of(index, out, stack));
    out->by_message = draw(rng, 4) == 0;
    out->set = out->machine->system[0] == '{' && draw(rng, 2) ? TWO_KINDS : NULL;
    gsl_rng_free(rng);
}

#endif
