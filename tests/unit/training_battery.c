/* training_battery.c - random stacks of strategies: whatever is put together either is refused with the key that must
 * change, or ends, and adds up. */
#define _GNU_SOURCE /* fork, pipe */
#include <check.h>
#include <math.h>

#include "tests/unit/drawn_stacks.h"
#include "tests/unit/memory_recount.h"
#include "tests/unit/suite.h"
#include "tests/unit/workload_counts.h"

enum { n_stacks = 200 };

/* ---- what must hold ---- */

static void check_refusal(const struct drawn *d, const struct dl_error *err)
{
    ck_assert_msg(err->status == DL_IMPOSSIBLE, "%s: %s", d->strategy, err->text);
    ck_assert_msg(strstr(err->text, "test.json:/"), "%s: no key in '%s'", d->strategy, err->text);
}

static void check_causes(const struct drawn *d, const struct dl_training_result *r)
{
    const double slack = 1e-9 * r->step_s;
    double sum = 0;
    for (int i = 0; i < DL_N_CAUSES; i++) {
        ck_assert_msg(r->exposed_s[i] >= -slack && r->busy_s[i] >= -slack && r->busy_s[i] <= r->step_s + slack,
                      "%s: %s exposed %g, busy %g of %g", d->strategy, dl_cause_name((enum dl_cause)i), r->exposed_s[i],
                      r->busy_s[i], r->step_s);
        sum += r->exposed_s[i];
    }
    ck_assert_double_eq(r->exposed_s[DL_CAUSE_STRAGGLER], 0); /* nothing is slowed */
    ck_assert_msg(fabs(sum - r->step_s) <= slack, "%s: causes sum to %.12g of %.12g", d->strategy, sum, r->step_s);
}

/* The texts that were drawn, as documents: what is expected is counted from them, not from what was built of them. */
struct asked {
    json_t *workload, *strategy;
    json_t *held;        /* the workload with as many heads of keys and values as the tensor ranks have */
    double padded_heads; /* how much wider they are than the model's */
};

static json_t *parse(const char *drawn, struct dl_arena *arena)
{
    json_t *const json = json_loads(training_text(drawn, arena), 0, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

static const json_t *entry_of(const struct asked *a, const char *name)
{
    size_t i;
    json_t *entry;
    json_array_foreach(json_object_get(a->strategy, "stack"), i, entry)
    {
        if (strcmp(json_string_value(json_object_get(entry, "name")), name) == 0) return entry;
    }
    return NULL;
}

static double option(const struct asked *a, const char *name, const char *key, double otherwise)
{
    const json_t *const entry = entry_of(a, name);
    return entry ? key_of(entry, key, otherwise) : otherwise;
}

static bool is_mode(const struct asked *a, const char *mode)
{
    return strcmp(json_string_value(json_object_get(entry_of(a, "recompute"), "mode")), mode) == 0;
}

static bool has_adapters(const struct asked *a) { return entry_of(a, "lora"); }

static bool has_grid(const struct asked *a) { return json_object_get(entry_of(a, "tensor"), "grid"); }

static double key_heads(const json_t *workload) { return key_of(workload, "kv_heads", key_of(workload, "heads", 0)); }

/* A rank without a head of keys has a copy of one, unless these are gathered. */
static void note_copies(struct asked *a, const struct drawn *d, const struct dl_session *t)
{
    const double ways = option(a, "tensor", "ways", 1);
    a->padded_heads = strcmp(d->machine->software, PADS) == 0 ? 80.0 / 64 : 1;
    a->held = json_deep_copy(a->workload);
    if (ways > key_heads(a->workload) && !is_kind(a->workload, "mlp") && !has_grid(a) &&
        !t->software.code.gathers_key_heads)
        json_object_set_new(a->held, "kv_heads", json_integer((json_int_t)ways));
}

/* Blocks that are computed again: all, or the first so many of each position. */
static double count_again(const struct asked *a, const struct dl_session *t)
{
    const double most = option(a, "recompute", "layers", INFINITY);
    double n_blocks = 0, again = 0;
    for (uint32_t i = 0; i < t->lowered.n_positions; i++) {
        n_blocks += t->lowered.positions[i].n_blocks;
        again += fmin(t->lowered.positions[i].n_blocks, most);
    }
    ck_assert_double_eq(n_blocks, count_blocks(a->workload));
    return is_mode(a, "none") ? 0 : again;
}

/* How many tensor ranks do the same: what is not divided is done by all, unless each has a part of the tokens. What
 * grids divide is theirs (tensor_grids.c). */
static double times_repeated(const struct asked *a, const struct dl_session *t)
{
    const double tensor = option(a, "tensor", "ways", 1);
    if (has_grid(a)) return tensor / t->job.setting.parts.outside;
    return json_is_true(json_object_get(entry_of(a, "tensor"), "sequence")) ? 1 : tensor;
}

/* Products at the end of a block, which do not come again; of a group of blocks those of its last. Tensor ranks share
 * them. Which kernels these are is held by recompute.c. */
static double flop_after_needed(const struct dl_layer *layer)
{
    double flop = 0;
    for (size_t i = layer->n_needed; i < layer->n_forward; i++) {
        const struct dl_kernel *const k = &layer->forward[i].kernel;
        if (k->kind == DL_KERNEL_GEMM) flop += 2 * k->batch * k->m * k->n * k->k;
    }
    return flop;
}

static double flop_not_again(const struct asked *a, const struct dl_session *t)
{
    const double most = option(a, "recompute", "layers", INFINITY), every = option(a, "recompute", "every", 1);
    double flop = 0;
    if (!t->software.recomputes_needed || !is_mode(a, "full")) return 0;
    for (uint32_t i = 0; i < t->lowered.n_positions; i++) {
        const struct dl_position *const p = &t->lowered.positions[i];
        const double end = fmin(p->n_blocks, most);
        double next = 1;
        for (size_t j = p->first_layer; j < p->end_layer; j++) {
            const struct dl_layer *const layer = &t->model.layers[j];
            if (!layer->is_block) continue;
            if (next == end || (next < end && fmod(next, every) == 0)) flop += flop_after_needed(layer);
            next++;
        }
    }
    return flop / t->job.setting.microbatch;
}

static double expected_flop(const struct asked *a, const struct dl_session *t, bool with_all)
{
    const bool is_fused = strcmp(t->software.code.attention, "unfused") != 0;
    const struct flop_counts f = count_flop(with_all ? a->held : a->workload, is_fused);
    const double repeated = with_all ? f.repeated * times_repeated(a, t) : f.repeated;
    const double parts = has_grid(a) && with_all ? option(a, "tensor", "ways", 1) / t->job.setting.parts.inside : 1;
    const double attention = f.attention * parts * (with_all ? a->padded_heads : 1), block = f.divided + repeated;
    const double core = is_mixer(a->workload) ? 0 : attention; /* a scan is no part that is repeated alone */
    const double again = is_mode(a, "selective") ? core : block + attention;
    const double sample = count_blocks(a->workload) * (3 * block + (1 + f.attention_backward) * attention) +
                          3 * f.head - f.not_needed + (with_all ? count_again(a, t) * again - flop_not_again(a, t) : 0);
    return sample * key_of(a->strategy, "global_batch", 0);
}

/* By items, as the lockstep groups go through them. */
static double played_flop(const struct dl_session *t)
{
    const struct dl_schedule *const s = &t->lowered.schedule;
    double sum = 0;
    for (uint32_t stage = 0; stage < s->stages; stage++)
        for (uint32_t i = 0; i < s->n_items[stage]; i++) {
            const struct dl_item *const item = &s->items[stage][i];
            sum += t->lowered.programs[stage].items[item->chunk * DL_N_TEMPLATES + (uint32_t)item->kind]->total.flop;
        }
    const uint32_t *const ways = t->job.setting.ways;
    return sum * ways[DL_AXIS_TENSOR] * ways[DL_AXIS_CONTEXT] * ways[DL_AXIS_DATA];
}

static bool keeps_results(const struct asked *a)
{
    const json_t *const recompute = entry_of(a, "recompute");
    return json_object_get(recompute, "keeps") || json_object_get(recompute, "kept_results");
}

/* What results that are kept spare, and what products that move tokens take, is in recompute_results.c and
 * workload_layers.c; flop and bytes of adapters are in lora.c. */
static bool is_compared(const struct asked *a)
{
    return !keeps_results(a) && !json_object_get(a->workload, "routes_by_gemms");
}

static void check_flop(const struct drawn *d, const struct asked *a, const struct dl_session *t)
{
    if (has_adapters(a)) return;
    const double expected = expected_flop(a, t, true), model = expected_flop(a, t, false), played = played_flop(t);
    if (strcmp(t->software.code.attention, "unfused") == 0) /* fused attention leaves out what the mask hides */
        ck_assert_msg(fabs(model - t->lowered.model_flop[DL_FLOP_FULL]) <= 1e-9 * model,
                      "%s: %.12g flop of the model, not %.12g", d->strategy, t->lowered.model_flop[DL_FLOP_FULL],
                      model);
    if (!is_compared(a)) return;
    ck_assert_msg(fabs(played - expected) <= 1e-9 * expected, "%s: %.12g flop, not %.12g", d->strategy, played,
                  expected);
}

/* What completes the gradients does the same work as in the other micro-batches. */
static void check_last_items(const struct drawn *d, const struct dl_session *t)
{
    if (!t->job.setting.last_backward_differs) return;
    const int completes = t->lowered.schedule.splits_backward ? DL_ITEM_W : DL_ITEM_B;
    for (uint32_t i = 0; i < t->lowered.n_positions; i++) {
        const struct dl_template *const items = t->lowered.positions[i].items;
        ck_assert_msg(items[DL_TEMPLATE_LAST].total.flop == items[completes].total.flop, "%s: position %u", d->strategy,
                      i);
    }
}

static void check_parts(const struct drawn *d, const struct dl_memory_use *m)
{
    const double parts[] = {m->parameters, m->gradients, m->optimizer, m->activations, m->buffers, m->workspace};
    double sum = 0;
    for (size_t k = 0; k < DL_COUNT(parts); k++) {
        ck_assert_msg(parts[k] >= 0, "%s: part %zu is %g bytes", d->strategy, k, parts[k]);
        sum += parts[k];
    }
    ck_assert_msg(fabs(sum - m->peak) <= 1e-9 * sum && m->fragmentation >= 0, "%s: the peak is %g bytes, not %g",
                  d->strategy, m->peak, sum);
}

static double count_replicas(const struct asked *a)
{
    const double others =
        option(a, "tensor", "ways", 1) * option(a, "context", "ways", 1) * option(a, "pipeline", "ways", 1);
    return key_of(a->strategy, "devices", 1) / others;
}

/* Of all stages together, on a rank of each: tensor ranks share most, expert ranks the experts, and ZeRO 3 cuts over
 * all ranks that would hold the same. */
static double rank_parameters(const struct asked *a, const struct dl_session *t, struct parameter_counts p)
{
    const struct dl_tensor_parts *const parts = &t->job.setting.parts;
    const double weights = has_grid(a) ? parts->weights : option(a, "tensor", "ways", 1);
    const double others = has_grid(a) ? parts->others : 1, context = option(a, "context", "ways", 1);
    const bool is_cut = option(a, "zero", "stage", 0) == 3;
    const double shards = is_cut ? option(a, "zero", "shard_ways", count_replicas(a)) * context : 1;
    const double of_experts = p.experts / weights / (is_cut ? shards : option(a, "expert", "ways", 1));
    return (p.inside / weights + p.outside / others) / shards + of_experts;
}

/* From the embedding, whose table it needs too. */
static bool head_is_apart(const struct asked *a, const struct dl_session *t)
{
    const struct dl_schedule *const s = &t->lowered.schedule;
    return is_kind(a->workload, "transformer") && s->n_paths == 1 && s->stage_of[0] != s->stage_of[s->n_positions - 1];
}

static double adapters_of_rank(const struct asked *a, const struct dl_session *t)
{
    const struct parameter_counts all = {.inside = has_adapters(a) ? dl_model_parameters(&t->model) : 0};
    return rank_parameters(a, t, all);
}

static double expected_parameters(const struct asked *a, const struct dl_session *t)
{
    const struct parameter_counts table = {.inside = count_table(a->workload)};
    return rank_parameters(a, t, count_parameters(a->held)) + adapters_of_rank(a, t) +
           (head_is_apart(a, t) ? rank_parameters(a, t, table) : 0);
}

static void check_memory(const struct drawn *d, const struct asked *a, const struct dl_session *t)
{
    const bool is_half = strcmp(json_string_value(json_object_get(a->strategy, "precision")), "fp16") == 0;
    double parameters = 0;
    for (uint32_t i = 0; i < t->lowered.schedule.stages; i++) {
        check_parts(d, &t->memory[i]);
        check_memory_of_stage(d->strategy, &t->lowered.programs[i], &t->memory[i]);
        parameters += t->memory[i].parameters / (is_half ? 2 : 4);
    }
    const double away = option(a, "offload", "parameters", 0);
    const double expected =
        expected_parameters(a, t) * t->lowered.schedule.n_paths * (1 - away); /* some hold it twice */
    ck_assert_msg(fabs(parameters - expected) <= 1e-9 * expected, "%s: %.12g parameters, not %.12g", d->strategy,
                  parameters, expected);
}

/* ---- bytes ---- */

static size_t n_with_sums, n_with_gradients; /* stacks of which they are known */

static double activation_bytes(const struct asked *a)
{
    return strcmp(json_string_value(json_object_get(a->strategy, "precision")), "fp16") == 0 ? 2 : 4;
}

/* Sums over the tensor ranks in a template, each of a micro-batch's activations. */
static double count_sums(const struct drawn *d, const struct asked *a, const struct dl_template *t,
                         const struct dl_comm *calls)
{
    const bool cuts_tokens = json_is_true(json_object_get(entry_of(a, "tensor"), "sequence"));
    const char *const name = cuts_tokens ? "reducescatter" : "allreduce";
    const double bytes = key_of(a->strategy, "microbatch", 0) * key_of(a->workload, "seq", 1) * width_of(a->workload) *
                         activation_bytes(a);
    double n = 0;
    for (size_t i = 0; i < t->n_instructions; i++) {
        const struct dl_instruction *const one = &t->instructions[i];
        if (one->kind != DL_START || strcmp(one->name, name)) continue;
        const struct dl_comm *const comm = &calls[one->call];
        if (comm->channel != DL_CHANNEL_LOCKSTEP) continue;
        n++;
        ck_assert_msg(comm->bytes == bytes, "%s: a sum of %g bytes, not %g", d->strategy, comm->bytes, bytes);
    }
    return n;
}

/* Shoeybi et al. 2019, figure 4: a block has two forward and two backward, the embedding one forward, the head one
 * backward; a pair of layers of an MLP has one each, but for the gradient of data. Those of the forward come again with
 * full recomputation. */
static void check_sums(const struct drawn *d, const struct asked *a, const struct dl_session *t)
{
    const json_t *const tensor = entry_of(a, "tensor");
    if (option(a, "tensor", "ways", 1) == 1 || has_grid(a) || json_object_get(tensor, "overlap_chunks") ||
        (!d->is_mlp && key_heads(a->workload) < option(a, "tensor", "ways", 1)) || d->has_experts ||
        option(a, "context", "ways", 1) > 1 || key_of(a->workload, "parallel_norms", 0) > 0 ||
        json_object_get(entry_of(a, "recompute"), "keeps") || has_adapters(a))
        return;
    const double blocks = count_blocks(a->workload), of_block = d->is_mlp || is_mixer(a->workload) ? 1 : 2;
    const double expected =
        2 * blocks * of_block + (d->is_mlp ? -1 : 2) + (is_mode(a, "full") ? of_block * count_again(a, t) : 0);
    double n = 0;
    for (uint32_t i = 0; i < t->lowered.n_positions; i++)
        for (int kind = 0; kind < DL_TEMPLATE_LAST; kind++)
            n += count_sums(d, a, &t->lowered.positions[i].items[kind], t->lowered.calls);
    n_with_sums++;
    ck_assert_msg(n == expected, "%s: %g sums of tensor ranks, not %g", d->strategy, n, expected);
}

static double summed_bytes(const struct dl_session *t, const struct dl_template *template)
{
    double sum = 0;
    for (size_t i = 0; i < template->n_instructions; i++) {
        if (template->instructions[i].kind != DL_START) continue;
        const struct dl_comm *const call = &t->lowered.calls[template->instructions[i].call];
        if (call->channel == DL_CHANNEL_REPLICAS) sum += call->bytes;
    }
    return sum;
}

/* In a step; of each chunk the last item that completes its gradients may be another. */
static double stage_bytes(const struct dl_session *t, uint32_t stage)
{
    const struct dl_schedule *const s = &t->lowered.schedule;
    const struct dl_program *const p = &t->lowered.programs[stage];
    const int completes = s->splits_backward ? DL_ITEM_W : DL_ITEM_B;
    double sum = summed_bytes(t, &p->end);
    for (uint32_t i = 0; i < s->n_items[stage]; i++) {
        const struct dl_item *const item = &s->items[stage][i];
        sum += summed_bytes(t, p->items[item->chunk * DL_N_TEMPLATES + (uint32_t)item->kind]);
    }
    for (uint32_t chunk = 0; t->job.setting.last_backward_differs && chunk < p->n_chunks; chunk++) {
        struct dl_template *const *const blocks = &p->items[chunk * DL_N_TEMPLATES];
        sum += summed_bytes(t, blocks[DL_TEMPLATE_LAST]) - summed_bytes(t, blocks[completes]);
    }
    return sum;
}

/* Gradients that a rank of each stage gives to sums over the replicas, where ZeRO cuts nothing. */
static void check_gradients(const struct drawn *d, const struct asked *a, const struct dl_session *t)
{
    const struct dl_schedule *const s = &t->lowered.schedule;
    const double replicas = count_replicas(a), copies = replicas * option(a, "context", "ways", 1);
    if (entry_of(a, "zero") || entry_of(a, "quantized_allreduce") || d->has_experts || s->n_paths > 1) return;
    double sum = 0;
    for (uint32_t stage = 0; stage < s->stages; stage++) sum += stage_bytes(t, stage);
    const bool is_pure = t->software.pure == DL_PURE_ALL || (t->software.pure == DL_PURE_LANGUAGE_MODELS && !d->is_mlp);
    const double bytes = is_pure ? activation_bytes(a) : fmax(activation_bytes(a), t->software.gradient_bytes);
    const double micros = key_of(a->strategy, "global_batch", 0) / replicas / key_of(a->strategy, "microbatch", 1);
    const double times = json_object_get(entry_of(a, "data"), "when") ? micros : 1; /* in every micro-batch */
    const double trained = has_adapters(a) ? adapters_of_rank(a, t) : expected_parameters(a, t);
    const double expected = copies > 1 ? trained * bytes * times : 0;
    n_with_gradients += expected > 0;
    ck_assert_msg(fabs(sum - expected) <= 1e-9 * expected, "%s: %.12g bytes of gradients, not %.12g", d->strategy, sum,
                  expected);
}

/* The hash of the report, or 0 if the stack is refused. */
static uint64_t play(const struct drawn *d)
{
    struct dl_session t;
    const struct training_inputs inputs = {.system = d->machine->system,
                                           .device = d->machine->device,
                                           .software = d->machine->software,
                                           .workload = d->workload,
                                           .strategy = d->strategy,
                                           .set = d->set};
    struct training_outcome outcome = {0};
    if (training_open(&t, &inputs)) {
        check_refusal(d, &t.err);
    } else {
        if (d->by_message) t.request.fidelity = "step";
        outcome = training_simulate(&t, "simgrid");
        ck_assert_msg(outcome.result.complete && !outcome.err.status, "%s: %s", d->strategy, outcome.err.text);
        check_causes(d, &outcome.result);
        struct dl_arena *const texts = dl_arena_new();
        struct asked asked = {parse(d->workload, texts), parse(d->strategy, texts), NULL, 1};
        note_copies(&asked, d, &t);
        check_flop(d, &asked, &t);
        check_last_items(d, &t);
        check_memory(d, &asked, &t);
        check_sums(d, &asked, &t);
        check_gradients(d, &asked, &t);
        json_decref(asked.workload);
        json_decref(asked.strategy);
        json_decref(asked.held);
        dl_arena_free(texts);
    }
    dl_session_close(&t);
    return outcome.report_hash;
}

static size_t n_refused;

START_TEST(a_random_stack_is_refused_or_adds_up)
{
    struct drawn d;
    draw_job((uint64_t)_i, &d);
    const uint64_t hash = play(&d);
    if (!hash) n_refused++;
    if (_i % 4 == 0) ck_assert_msg(play(&d) == hash, "%s: the same input gives another report", d.strategy);
}
END_TEST

START_TEST(most_stacks_are_possible)
{
    ck_assert_uint_lt(2 * n_refused, n_stacks);
    ck_assert_uint_gt(20 * n_with_sums, n_stacks);
    ck_assert_uint_gt(20 * n_with_gradients, n_stacks);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("training_battery");
    tcase_add_loop_test(tests, a_random_stack_is_refused_or_adds_up, 0, n_stacks);
    tcase_add_test(tests, most_stacks_are_possible);
    Suite *const suite = suite_create("training_battery");
    suite_add_tcase(suite, tests);
    return run_without_forking(suite);
}
