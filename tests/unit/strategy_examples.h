/* strategy_examples.h - an example of every strategy; one without a line here fails a test. */
#ifndef DL_TESTS_STRATEGY_EXAMPLES_H
#define DL_TESTS_STRATEGY_EXAMPLES_H

#include "tests/unit/strategy_example.h"

/* ---- counts of the model, which has one sample a micro-batch ---- */

static inline double count_inside(const struct dl_model *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n_layers; i++) sum += m->layers[i].parameters_inside;
    return sum;
}

static inline double count_experts(const struct dl_model *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n_layers; i++) sum += m->layers[i].expert_parameters;
    return sum;
}

static inline double count_outside(const struct dl_model *m)
{
    return dl_model_parameters(m) - count_inside(m) - count_experts(m);
}

static inline double count_model_blocks(const struct dl_model *m)
{
    double n = 0;
    for (size_t i = 0; i < m->n_layers; i++) n += m->layers[i].is_block;
    return n;
}

/* Forward, of a sample: twelve squares, and half of the scores with what they weigh. */
static inline double block_flop(const struct dl_model *m)
{
    const double s = m->tokens_per_sample, h = m->hidden;
    return 2 * s * 12 * h * h + 2 * 2 * s * s * h / 2;
}

/* The embedding's, which a tied head needs too: a vocabulary of 512. */
static inline double count_tied(const struct dl_model *m) { return m->hidden * 512; }

/* Of a tensor with a number for each token and column. */
static inline double tensor_bytes(const struct dl_model *m)
{
    return activation_bytes * m->samples * m->tokens_per_sample * m->hidden;
}

/* What passes a port where n ranks sum so many bytes. */
static inline double summed(double n, double bytes) { return 2 * once(n, bytes); }

/* ---- replicas ---- */

static double not_told(const struct dl_model *m, double n) { return (void)m, (void)n, NAN; }
static double held_once(const struct dl_model *m, double n) { return (void)n, dl_model_parameters(m); }

static double sent_by_sums(const struct dl_model *m, double n)
{
    return summed(n, gradient_bytes * dl_model_parameters(m));
}

static double sent_to_a_server(const struct dl_model *m, double n)
{
    return n > 1 ? 2 * n * gradient_bytes * dl_model_parameters(m) : 0;
}

/* Rajbhandari et al., SC20, section 7: gradients are scattered, parameters gathered; in stage 3 for both passes. */
static double sent_by_stage_1(const struct dl_model *m, double n)
{
    return once(n, (gradient_bytes + parameter_bytes) * dl_model_parameters(m));
}

static double sent_by_stage_3(const struct dl_model *m, double n)
{
    return once(n, (gradient_bytes + 2 * parameter_bytes) * dl_model_parameters(m));
}

/* With n bits between four replicas. */
static double sent_in_bits(const struct dl_model *m, double n)
{
    return summed(4, (n / 8 + scale_bytes) * dl_model_parameters(m));
}

/* ---- ranks that share a layer, a sequence or experts ---- */

static double held_by_tensor(const struct dl_model *m, double n) { return count_inside(m) + n * count_outside(m); }

/* Shoeybi et al. 2019, figure 4: two sums forward and two backward in a block, and one each at its ends. */
static double sent_by_tensor(const struct dl_model *m, double n)
{
    return (4 * count_model_blocks(m) + 2) * summed(n, tensor_bytes(m));
}

/* A gather and a scatter for each sum, and tokens are gathered once more for the gradients of weights. */
static double sent_by_sequence(const struct dl_model *m, double n)
{
    return sent_by_tensor(m, n) + (2 * count_model_blocks(m) + 1) * once(n, tensor_bytes(m));
}

/* Optimus, table 1, in one row: what goes along it, 7 b s h for a block and b s h for the head; backward twice. */
static double sent_by_panels(const struct dl_model *m, double n)
{
    return n > 1 ? 3 * (7 * count_model_blocks(m) + 1) * tensor_bytes(m) : 0;
}

/* Keys and values are gathered forward and backward, and their gradients scattered. */
static double sent_by_gathers(const struct dl_model *m, double n)
{
    return 3 * count_model_blocks(m) * once(n, 2 * tensor_bytes(m)) + sent_by_sums(m, n);
}

/* In a ring these gradients go home in the end. */
static double sent_by_ring(const struct dl_model *m, double n)
{
    return (3 * n - 2) * count_model_blocks(m) * 2 * tensor_bytes(m) / n + sent_by_sums(m, n);
}

/* Queries, keys, values and results, each way. */
static double sent_by_alltoalls(const struct dl_model *m, double n)
{
    return 2 * count_model_blocks(m) * once(n, 4 * tensor_bytes(m) / n) + sent_by_sums(m, n);
}

static double held_by_experts(const struct dl_model *m, double n)
{
    return count_experts(m) + n * (count_inside(m) + count_outside(m));
}

/* Tokens go to their experts and return, forward and backward. */
static double sent_by_experts(const struct dl_model *m, double n)
{
    const double common = count_inside(m) + count_outside(m);
    return 4 * count_model_blocks(m) * once(n, m->routing.top_k * tensor_bytes(m)) + summed(n, gradient_bytes * common);
}

/* Or once to each rank that has any of their experts. */
static double sent_once_to_experts(const struct dl_model *m, double n)
{
    const double common = count_inside(m) + count_outside(m), visits = dl_routing_visits(&m->routing, n);
    return 4 * count_model_blocks(m) * once(n, visits * tensor_bytes(m)) + summed(n, gradient_bytes * common);
}

/* Tensor ranks that have whole experts: pairs of products are those of attention, and tokens go to other ranks. */
static double held_by_tensor_experts(const struct dl_model *m, double n)
{
    return count_inside(m) + count_experts(m) + n * count_outside(m);
}

static double sent_by_tensor_experts(const struct dl_model *m, double n)
{
    const double pairs = count_model_blocks(m), ends = 1;
    return 2 * (pairs + ends) * summed(n, tensor_bytes(m)) + (pairs + ends) * once(n, tensor_bytes(m)) +
           4 * count_model_blocks(m) * once(n, m->routing.top_k * tensor_bytes(m) / n);
}

/* Two of them divide each expert, and gather the tokens that came to both: forward, and backward for what they
 * scattered.
 */
static double sent_by_divided_experts(const struct dl_model *m, double n)
{
    const double pairs = count_model_blocks(m), ends = 1, copies = m->routing.top_k * tensor_bytes(m);
    return 2 * (pairs + ends) * summed(n, tensor_bytes(m)) + (pairs + ends) * once(n, tensor_bytes(m)) +
           4 * pairs * (once(n / 2, copies / n) + once(2, copies * 2 / n));
}

/* Context ranks that have experts of their own: a ring, tokens that go to other ranks, and no sums of experts. */
static double sent_by_context_experts(const struct dl_model *m, double n)
{
    const double common = count_inside(m) + count_outside(m);
    return (3 * n - 2) * count_model_blocks(m) * 2 * tensor_bytes(m) / n +
           4 * count_model_blocks(m) * once(n, m->routing.top_k * tensor_bytes(m) / n) +
           summed(n, gradient_bytes * common);
}

/* ---- stages, memory, hosts ---- */

static double held_by_stages(const struct dl_model *m, double n)
{
    return dl_model_parameters(m) + (n > 1 ? count_tied(m) : 0);
}

static double held_twice(const struct dl_model *m, double n) { return (void)n, 2 * dl_model_parameters(m); }

/* One micro-batch goes forth and back; then two stages sum the gradients of their table. */
static double sent_by_stages(const struct dl_model *m, double n)
{
    return 2 * (n - 1) * tensor_bytes(m) + (n > 1 ? summed(2, gradient_bytes * count_tied(m)) : 0);
}

static double again_of_blocks(const struct dl_model *m, double n) { return n * block_flop(m); }

/* n tenths are on the host. */
static double held_less(const struct dl_model *m, double n) { return (1 - n / 10) * dl_model_parameters(m); }

/* Of so many bytes that no work hides them. */
#define FOUR_WITH_SAMPLES                                                                                              \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':4,'seq':32,"   \
    "'vocab':512,'samples':{'count':8,'stored_bytes':1e9}}"
#define DATA "{'name':'data'}"
#define ZERO(stage) .strategy = "zero", .entry = "{'name':'zero','stage':" stage "}", .beside = DATA, .counts = REPLICAS
#define TENSOR(more) .strategy = "tensor", .entry = "{'name':'tensor','ways':#" more "}", .counts = RANKS
#define CONTEXT(more)                                                                                                  \
    .strategy = "context", .entry = "{'name':'context','ways':#" more "}", .beside = DATA, .counts = RANKS

#define EXPERT(more)                                                                                                   \
    .strategy = "expert", .entry = "{'name':'expert','ways':#" more "}", .beside = DATA, .workload = TWO_WITH_EXPERTS, \
    .counts = REPLICAS

/* Beside the model its adapters, in four blocks: rows of A and columns of B, of four layers. */
static double held_with_adapters(const struct dl_model *m, double n)
{
    const double hidden = 64, blocks = 4, rows = hidden * (1 + 1 + 1 + 4), columns = hidden * (3 + 1 + 4 + 1);
    const double block = 12 * hidden * hidden + 13 * hidden, ends = (512 + 32 + 2) * hidden; /* with biases and norms */
    check_close("adapters", dl_model_parameters(m), blocks * n * (rows + columns), 0);
    return blocks * (block + n * (rows + columns)) + ends;
}

static double held_with_frozen(const struct dl_model *m, double n)
{
    check_close("adapters", dl_model_parameters(m), 4 * n * (64 + 64), 0);
    return dl_model_parameters(m) + dl_model_frozen(m);
}

static const struct example every_example[] = {
    {.strategy = "lora",
     .entry = "{'name':'lora','rank':#,'targets':['qkv','projection','fc1','fc2'],'dropout':true}",
     .n = {8},
     .is_of_model = true,
     .held = held_with_adapters},
    {.strategy = "lora",
     .entry = "{'name':'lora','rank':#,'targets':['projection']}",
     .n = {8},
     .is_of_model = true,
     .held = held_with_frozen},
    {.strategy = "data", .entry = DATA, .counts = REPLICAS, .n = {1, 2, 8}, .sent = sent_by_sums},
    {.strategy = "data",
     .entry = "{'name':'data','overlap':true,'exchange':'direct_ring'}",
     .counts = REPLICAS,
     .n = {1, 4},
     .sent = sent_by_sums},
    {.strategy = "data",
     .entry = "{'name':'data','exchange':'parameter_server'}",
     .counts = REPLICAS,
     .n = {1, 2, 4},
     .sent = sent_to_a_server,
     .shares = true},
    {ZERO("1"), .n = {1, 2, 4}, .sent = sent_by_stage_1, .spares = true},
    {ZERO("2"), .n = {1, 2, 4}, .sent = sent_by_stage_1, .spares = true},
    {ZERO("3"), .n = {1, 2, 8}, .held = held_once, .sent = sent_by_stage_3, .spares = true},
    {.strategy = "quantized_allreduce",
     .entry = "{'name':'quantized_allreduce','bits':#}",
     .beside = DATA,
     .n = {1, 4, 8},
     .replicas = 4,
     .sent = sent_in_bits},
    {.strategy = "quantized_allreduce",
     .entry = "{'name':'quantized_allreduce','method':'top_k'}",
     .beside = DATA,
     .n = {1},
     .replicas = 4,
     .sent = not_told},
    {TENSOR(""), .n = {1, 2, 4}, .held = held_by_tensor, .sent = sent_by_tensor, .spares = true},
    {TENSOR(",'sequence':true"), .n = {1, 2, 4}, .held = held_by_tensor, .sent = sent_by_sequence, .spares = true},
    {TENSOR(",'grid':'2d','x':#,'y':1"), .n = {2, 4}, .held = held_once, .sent = sent_by_panels, .spares = true},
    {TENSOR(",'grid':'2.5d','x':#,'y':1,'z':1"), .n = {2, 4}, .held = held_once, .sent = sent_by_panels,
     .spares = true},
    {TENSOR(",'grid':'3d','x':#,'y':1"), .n = {2, 4}, .held = held_by_tensor, .sent = not_told, .spares = true},
    {CONTEXT(",'kind':'allgather'"), .n = {1, 2, 4}, .sent = sent_by_gathers, .spares = true},
    {CONTEXT(",'zigzag':true"), .n = {2, 8}, .sent = sent_by_ring, .spares = true},
    {CONTEXT(",'kind':'alltoall'"), .n = {1, 2, 4}, .sent = sent_by_alltoalls, .spares = true},
    {EXPERT(""), .n = {1, 2, 8}, .held = held_by_experts, .sent = sent_by_experts, .spares = true},
    {.strategy = "expert",
     .entry = "{'name':'expert','ways':#,'over_tensor':true}",
     .beside = "{'name':'tensor','ways':#,'sequence':true}",
     .workload = TWO_WITH_EXPERTS,
     .counts = RANKS,
     .n = {2, 4},
     .held = held_by_tensor_experts,
     .sent = sent_by_tensor_experts,
     .spares = true},
    {.strategy = "expert",
     .entry = "{'name':'expert','ways':2,'over_tensor':true,'tensor_ways':2}",
     .beside = "{'name':'tensor','ways':#,'sequence':true}",
     .workload = TWO_WITH_EXPERTS,
     .counts = RANKS,
     .n = {4},
     .held = held_by_tensor_experts,
     .sent = sent_by_divided_experts,
     .spares = true},
    {.strategy = "expert",
     .entry = "{'name':'expert','ways':#,'over_context':true}",
     .beside = "{'name':'context','ways':#,'zigzag':true}," DATA,
     .workload = TWO_WITH_EXPERTS,
     .counts = RANKS,
     .n = {2, 4},
     .held = held_by_experts,
     .sent = sent_by_context_experts,
     .spares = true},
    {EXPERT(",'dispatch':'to_nodes'"), .n = {1, 2, 8}, .held = held_by_experts, .sent = sent_once_to_experts,
     .spares = true},
    {.strategy = "pipeline",
     .entry = "{'name':'pipeline','ways':#}",
     .counts = RANKS,
     .n = {1, 2, 4},
     .held = held_by_stages,
     .sent = sent_by_stages,
     .spares = true},
    {.strategy = "pipeline",
     .entry = "{'name':'pipeline','ways':#,'schedule':'dualpipe','chunks':2}",
     .counts = RANKS,
     .n = {2, 4},
     .samples = 8,
     .held = held_twice,
     .sent = not_told,
     .shares = true},
    {.strategy = "recompute",
     .entry = "{'name':'recompute','mode':'full','layers':#}",
     .n = {1, 2, 4},
     .again = again_of_blocks,
     .spares = true},
    {.strategy = "recompute",
     .entry = "{'name':'recompute','mode':'selective','modules':['layernorm','moe_act']}",
     .workload = TWO_WITH_EXPERTS,
     .n = {1},
     .spares = true},
    {.strategy = "offload",
     .entry = "{'name':'offload','parameters':0.#}",
     .n = {1, 5, 9},
     .held = held_less,
     .spares = true},
    {.strategy = "input", .entry = "{'name':'input','from':'memory'}", .workload = FOUR_WITH_SAMPLES, .n = {1}},
    {.strategy = "input",
     .entry = "{'name':'input','from':'memory','late':true}",
     .workload = FOUR_WITH_SAMPLES,
     .n = {1}},
    {.strategy = "graphs", .entry = "{'name':'graphs','scope':'step'}", .n = {1}},
    {.strategy = "blocking_launches", .entry = "{'name':'blocking_launches'}", .n = {1}},
};

static const struct examples examples = {every_example, DL_COUNT(every_example)};

#endif
