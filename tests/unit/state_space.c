/* state_space.c - layers written down one by one, and mixers of state spaces among them: parameters, flop, what is
 * moved and kept by closed forms; how ranks, stages and recomputation divide them; what is refused. */
#define _GNU_SOURCE /* fork, pipe */
#include "sim/cost/operations.h"
#include "tests/unit/divided_step.h"
#include "workloads/workloads.h"

enum { HIDDEN = 64, SEQ = 64, VOCAB = 512, HEADS = 8, SIZE = 16, STATE = 32, GROUPS = 4, WINDOW = 3, CHUNK = 16 };
enum { INNER = HEADS * SIZE, VECTORS = GROUPS * STATE, COLUMNS = 2 * INNER + 2 * VECTORS + HEADS };
#define SIZES "'state_heads':8,'state_head_size':16,'state_size':32,'state_groups':4,'state_window':3,'state_chunk':16"
#define MODEL(layers, more)                                                                                            \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':" layers                             \
    ",'hidden':64,'seq':64,'vocab':512,'norm':'rmsnorm','positions':'none','bias':false,'dropout':false" more "}"
#define MIXERS MODEL("4", ",'pattern':'MMMM'," SIZES)
#define HYBRID MODEL("8", ",'heads':4,'pattern':'M-M*-MEM','experts':4,'top_k':2,'expert_ffn':32," SIZES)
#define BATCH "'global_batch':8,'microbatch':1"

static const double exactly = 1e-12;

static void open_model(struct dl_session *t, const char *workload, const char *stack)
{
    open_step(t, &(struct step){.software = FLASH, .workload = workload, .head = BATCH, .stack = stack});
}

START_TEST(parameters_are_those_of_mamba2)
{
    struct dl_session t;
    open_model(&t, MIXERS, "{'name':'data'}");
    const struct dl_layer *const mixer = &t.model.layers[1];
    const double filters = (INNER + 2 * VECTORS) * (WINDOW + 1), of_heads = 3 * HEADS;
    const double inside = HIDDEN * COLUMNS + filters + of_heads + INNER + INNER * HIDDEN;
    ck_assert_double_eq(mixer->parameters_inside, inside);
    ck_assert_double_eq(mixer->parameters_outside, HIDDEN);
    ck_assert_double_eq(mixer->n_tensors, 9);
    ck_assert_double_eq(dl_model_parameters(&t.model), 4 * (inside + HIDDEN) + VOCAB * HIDDEN + HIDDEN);
    dl_session_close(&t);
}
END_TEST

/* Megatron-LM's count of a mixer: 2 h (2 d + 2 g n + heads) + 7 d n + 2 d h for a token, three times that in a step. */
START_TEST(flop_are_counted_as_megatron_counts)
{
    struct dl_session t;
    open_model(&t, MIXERS, "{'name':'data'}");
    const double token = 2 * HIDDEN * COLUMNS + 7 * INNER * STATE + 2 * INNER * HIDDEN, head = 2 * HIDDEN * VOCAB;
    const double sample = 3.0 * SEQ * (4 * token + head);
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++)
        check_close("flop of a sample", t.model.model_flop_per_sample[count], sample, exactly);
    check_close("flop that are done", flop_of(&t), sample, exactly);
    dl_session_close(&t);
}
END_TEST

static double moved_by(const struct dl_work *work, size_t n, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(work[i].kernel.name, name) == 0) sum += work[i].kernel.elements;
    return sum;
}

/* In elements of two bytes; states and scores of chunks are written in fp32, and states go on in the precision of x. */
START_TEST(scans_move_what_their_kernels_read_and_write)
{
    const double x = SEQ * INNER, b = SEQ * VECTORS, dt = SEQ * HEADS, states = SEQ / CHUNK * INNER * STATE;
    const double scores = SEQ * CHUNK * GROUPS;
    const double of_states = x + b + 4 * dt + 2 * states, of_scores = 2 * b + 2 * scores,
                 of_c = x + states + 3 * b + 4 * dt;
    const double of_x = 3 * x + 2 * scores + b + states + 6 * dt, in_chunk = 2 * x + 2 * scores + 4 * dt;
    const struct {
        const char *name;
        double forward, backward;
    } kernels[] = {{"short_convolution", 2 * (x + 2 * b), (2 + 3) * (x + 2 * b)},
                   {"chunk_decay", dt + 4 * dt, 13 * dt},
                   {"chunk_states", of_states, of_states + of_c + 2 * dt},
                   {"pass_states", 3 * states, 10 * states},
                   {"chunk_scores", of_scores, of_scores + 2 * (2 * scores + 4 * b)},
                   {"chunk_scan", 4 * x + b + 4 * dt + 2 * scores + states,
                    6 * x + (x + b + 2 * states) + of_x + of_c + 2 * in_chunk},
                   {"sum_parts", 0, 4 * (scores + 2 * b)},
                   {"gated_norm", 2 * x, 3 * x}};
    struct dl_session t;
    open_model(&t, MIXERS, "{'name':'data'}");
    const struct dl_layer *const mixer = &t.model.layers[1];
    for (size_t i = 0; i < DL_COUNT(kernels); i++) {
        const char *const name = kernels[i].name;
        ck_assert_double_eq(moved_by(mixer->forward, mixer->n_forward, name), kernels[i].forward);
        ck_assert_double_eq(moved_by(mixer->backward, mixer->n_backward, name), kernels[i].backward);
    }
    dl_session_close(&t);
}
END_TEST

/* What in_proj makes and its gradient are copied, and what the scan makes, where samples lie beside each other. */
START_TEST(several_samples_are_put_one_after_the_other)
{
    static const char *const heads[] = {BATCH, "'global_batch':8,'microbatch':2"};
    const double copied = _i == 0 ? 0 : 2 * 2 * SEQ;
    struct dl_session t;
    open_step(&t, &(struct step){.software = FLASH, .workload = MIXERS, .head = heads[_i], .stack = "{'name':'data'}"});
    const struct dl_layer *const mixer = &t.model.layers[1];
    ck_assert_double_eq(moved_by(mixer->forward, mixer->n_forward, "samples_first"), copied * (COLUMNS + INNER));
    ck_assert_double_eq(moved_by(mixer->backward, mixer->n_backward, "samples_first"), copied * COLUMNS);
    dl_session_close(&t);
}
END_TEST

/* The input and its norm; what in_proj makes, what the scan makes before and after its gate, and the norm of that. */
START_TEST(mixers_keep_what_autograd_keeps)
{
    struct dl_session t;
    open_model(&t, MIXERS, "{'name':'data'}");
    const struct dl_saved *const saved = &t.model.layers[1].saved;
    ck_assert_double_eq(saved->outside_bytes, 2 * 2 * SEQ * HIDDEN);
    ck_assert_double_eq(saved->inside_bytes, 2 * SEQ * (COLUMNS + 3 * INNER));
    ck_assert_double_eq(saved->input_bytes, 2 * SEQ * HIDDEN);
    dl_session_close(&t);
}
END_TEST

/* A block of a transformer is two letters: the same work, parameters and bytes, counted by hand or not. */
START_TEST(attention_and_feed_forward_by_letters_are_blocks)
{
    static const char *const models[][2] = {{MODEL("4", ",'heads':4"), MODEL("8", ",'heads':4,'pattern':'*-*-*-*-'")},
                                            {MODEL("2", ",'heads':4,'experts':4,'top_k':2"),
                                             MODEL("4", ",'heads':4,'experts':4,'top_k':2,'pattern':'*E*E'")},
                                            {MODEL("2", ",'heads':4,'kv_heads':2,'window':16"),
                                             MODEL("4", ",'heads':4,'kv_heads':2,'window':16,'pattern':'*-*-'")}};
    struct dl_session blocks, letters;
    open_model(&blocks, models[_i][0], "{'name':'data'}");
    open_model(&letters, models[_i][1], "{'name':'data'}");
    ck_assert_double_eq(dl_model_parameters(&letters.model), dl_model_parameters(&blocks.model));
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++)
        check_close("flop", letters.model.model_flop_per_sample[count], blocks.model.model_flop_per_sample[count],
                    exactly);
    struct dl_saved kept[2] = {{0}};
    for (size_t i = 0; i < blocks.model.n_layers; i++) dl_saved_add(&kept[0], &blocks.model.layers[i].saved);
    for (size_t i = 0; i < letters.model.n_layers; i++) dl_saved_add(&kept[1], &letters.model.layers[i].saved);
    ck_assert_double_eq(kept[1].inside_bytes, kept[0].inside_bytes);
    ck_assert_double_eq(kept[1].outside_bytes, kept[0].outside_bytes);
    check_close("work", flop_of(&letters), flop_of(&blocks), exactly);
    dl_session_close(&blocks);
    dl_session_close(&letters);
}
END_TEST

/* Tokens are brought to a smaller width before they travel, and back; the router sees all of it. */
START_TEST(latent_experts_work_on_fewer_columns)
{
    enum { LATENT = 16, EXPERTS = 4, TOP = 2, FFN = 32 };
    static const char model[] =
        MODEL("1", ",'pattern':'E','experts':4,'top_k':2,'expert_ffn':32,'expert_hidden':16,'activation':'relu'");
    struct dl_session t;
    open_model(&t, model, "{'name':'data'}");
    const struct dl_layer *const layer = &t.model.layers[1];
    ck_assert_double_eq(layer->expert_parameters, EXPERTS * 2 * LATENT * FFN);
    ck_assert_double_eq(layer->parameters_outside, HIDDEN + HIDDEN * EXPERTS + 2 * HIDDEN * LATENT);
    double sent = 0;
    for (size_t i = 0; i < layer->n_forward; i++) sent += layer->forward[i].to_experts + layer->forward[i].from_experts;
    ck_assert_double_eq(sent, 2 * TOP * SEQ * LATENT);
    const double token = 2 * HIDDEN * EXPERTS + 2 * 2 * HIDDEN * LATENT + TOP * 2 * 2 * LATENT * FFN;
    check_close("flop", t.model.model_flop_per_sample[0], 3.0 * SEQ * (token + 2 * HIDDEN * VOCAB), exactly);
    dl_session_close(&t);
}
END_TEST

/* Chunks are no longer than a sequence. */
START_TEST(short_sequences_are_one_chunk)
{
#define SHORT(more)                                                                                                    \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':1,'hidden':64,'seq':32,'vocab':512," \
    "'pattern':'M','state_heads':8,'state_head_size':16,'state_size':32" more "}"
    struct dl_session absent, given;
    open_model(&absent, SHORT(""), "{'name':'data'}");
    open_model(&given, SHORT(",'state_chunk':32"), "{'name':'data'}");
    const struct dl_layer *const a = &absent.model.layers[1], *const b = &given.model.layers[1];
    ck_assert_double_eq(moved_by(a->forward, a->n_forward, "chunk_scan"),
                        moved_by(b->forward, b->n_forward, "chunk_scan"));
    dl_session_close(&absent);
    dl_session_close(&given);
}
END_TEST

/* On a GPU products inside of chunks take the time of its units. */
START_TEST(products_of_scans_take_units)
{
    struct dl_kernel k = {.kind = DL_KERNEL_MEMORY, .name = "chunk_scan", .elements = 1e9, .products_per_element = 100};
    const double once = dl_kernel_unit_s(&k);
    ck_assert_double_gt(once, 0);
    k.products_per_element *= 2;
    check_close("twice the products", dl_kernel_unit_s(&k), 2 * once, exactly);
    k.unit_s = once / 2; /* what software says goes before */
    ck_assert_double_eq(dl_kernel_unit_s(&k), once / 2);
}
END_TEST

/* They were timed on an H200, whose chip the H100 has too. */
START_TEST(runs_list_that_scans_were_timed_elsewhere)
{
    static const struct {
        const char *device, *workload;
        size_t listed;
    } cases[] = {{"h200", HYBRID, 0},   {"h100", HYBRID, 0},    {"b200", HYBRID, 1},
                 {"mi300x", HYBRID, 1}, {"tpu-v5p", HYBRID, 1}, {"b200", MODEL("2", ",'heads':4"), 0}};
    struct dl_session t;
    size_t n = 0;
    open_step(&t, &(struct step){.device = cases[_i].device,
                                 .workload = cases[_i].workload,
                                 .head = BATCH ",'precision':'bf16'",
                                 .stack = "{'name':'data'}"});
    dl_session_list_assumptions(&t);
    for (size_t i = 0; i < t.report.assumptions.n; i++)
        n += strncmp(t.report.assumptions.items[i].why, "scans of state spaces", 21) == 0;
    ck_assert_uint_eq(n, cases[_i].listed);
    dl_session_close(&t);
}
END_TEST

static double steps_of(const struct dl_work *work, size_t n, const char *name)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(work[i].kernel.name, name) == 0)
            sum += work[i].kernel.elements * work[i].kernel.products_per_element;
    return sum;
}

/* Rows of groups one after the other: of up to 256 columns four programs a unit, of 512 two, of more one. */
START_TEST(norms_go_through_rows_backward)
{
    static const struct {
        const char *size;
        double programs;
    } cases[] = {{"64", 4}, {"128", 4}, {"256", 2}, {"512", 1}, {"300", 1}, {"4096", 1}};
    char model[512];
    snprintf(model, sizeof model,
             MODEL("1", ",'pattern':'M','state_heads':8,'state_head_size':%s,'state_size':32,'state_groups':4,"
                        "'state_chunk':16"),
             cases[_i].size);
    struct dl_session t;
    open_model(&t, model, "{'name':'data'}");
    const struct dl_layer *const mixer = &t.model.layers[1];
    ck_assert_double_eq(steps_of(mixer->forward, mixer->n_forward, "gated_norm"), 0);
    check_close("rows", steps_of(mixer->backward, mixer->n_backward, "gated_norm"), SEQ * 4 / cases[_i].programs,
                exactly);
    dl_session_close(&t);
}
END_TEST

static uint32_t count(const struct dl_session *t, enum dl_item_kind kind, const char *op)
{
    const struct dl_template *const of = item(t, kind);
    uint32_t n = 0;
    for (size_t i = 0; i < of->n_instructions; i++) n += strcmp(of->instructions[i].name, op) == 0;
    return n;
}

/* Ranks have whole groups, with their columns of in_proj and rows of out_proj: one sum each way, and half the work. */
START_TEST(tensor_ranks_divide_groups)
{
    struct dl_session alone, two;
    open_model(&alone, MIXERS, "{'name':'data'}");
    open_step(&two, &(struct step){.software = FLASH,
                                   .workload = MIXERS,
                                   .head = BATCH ",'devices':2",
                                   .stack = "{'name':'tensor','ways':2}"});
    ck_assert_uint_eq(count(&two, DL_ITEM_F, "allreduce"), 4 + 1);
    ck_assert_uint_eq(count(&two, DL_ITEM_B, "allreduce"), 4 + 1);
    check_close("work", flop_of(&two), flop_of(&alone) / 2, exactly);
    dl_session_close(&alone);
    dl_session_close(&two);
}
END_TEST

/* Of all stages, for a micro-batch. */
static double flop_of_stages(const struct dl_session *t)
{
    double sum = 0;
    for (uint32_t i = 0; i < t->lowered.n_positions; i++)
        for (int kind = 0; kind < DL_TEMPLATE_LAST; kind++) sum += t->lowered.positions[i].items[kind].total.flop;
    return sum;
}

static double forward_flop_of_blocks(const struct dl_model *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n_layers; i++)
        for (size_t j = 0; m->layers[i].is_block && j < m->layers[i].n_forward; j++)
            sum += dl_kernel_flop(&m->layers[i].forward[j].kernel);
    return sum;
}

/* Letters differ; what all stages and ranks do together does not depend on how they are dealt. */
START_TEST(hybrids_go_with_every_axis)
{
    static const struct {
        const char *stack;
        double devices, ranks, again; /* ranks that share a layer; forwards of blocks that are repeated */
    } cases[] = {
        {"{'name':'pipeline','ways':4}", 4, 1, 0},
        {"{'name':'pipeline','ways':2,'chunks':2,'schedule':'interleaved'}", 2, 1, 0},
        {"{'name':'pipeline','ways':4,'schedule':'zb-h1'}", 4, 1, 0},
        {"{'name':'tensor','ways':2,'sequence':true},{'name':'data'}", 4, 2, 0},
        {"{'name':'data'},{'name':'zero','stage':3}", 4, 1, 0},
        {"{'name':'data'},{'name':'expert','ways':4}", 4, 1, 0},
        {"{'name':'pipeline','ways':2},{'name':'recompute','mode':'full'}", 2, 1, 1},
        {"{'name':'data'},{'name':'zero','stage':1}", 4, 1, 0},
    };
    char head[100];
    snprintf(head, sizeof head, BATCH ",'devices':%g", cases[_i].devices);
    struct dl_session alone, t;
    open_model(&alone, HYBRID, "{'name':'data'}");
    open_step(&t, &(struct step){.software = FLASH, .workload = HYBRID, .head = head, .stack = cases[_i].stack});
    const double again = cases[_i].again * forward_flop_of_blocks(&alone.model);
    check_close(cases[_i].stack, cases[_i].ranks * flop_of_stages(&t), flop_of_stages(&alone) + again, exactly);
    dl_session_close(&alone);
    dl_session_close(&t);
}
END_TEST

START_TEST(what_cannot_be_is_refused)
{
    static const struct {
        const char *workload, *stack, *message;
    } cases[] = {
        {MIXERS, "{'name':'tensor','ways':8}",
         "test.json:/stack/0/ways: must divide the groups of heads of the state space, 4, got 8; 4 would do"},
        {HYBRID, "{'name':'context','ways':8},{'name':'data'}",
         "test.json:/stack/0: test has layers of a state space, of which dlsim cannot divide the sequence"},
    };
    const struct step step = {
        .workload = cases[_i].workload, .head = "'global_batch':8,'devices':8", .stack = cases[_i].stack};
    check_refusal(&step, cases[_i].message);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("state_space");
    TCase *const tests = tcase_create("state_space");
    tcase_add_test(tests, parameters_are_those_of_mamba2);
    tcase_add_test(tests, flop_are_counted_as_megatron_counts);
    tcase_add_test(tests, scans_move_what_their_kernels_read_and_write);
    tcase_add_loop_test(tests, several_samples_are_put_one_after_the_other, 0, 2);
    tcase_add_test(tests, mixers_keep_what_autograd_keeps);
    tcase_add_loop_test(tests, attention_and_feed_forward_by_letters_are_blocks, 0, 3);
    tcase_add_test(tests, latent_experts_work_on_fewer_columns);
    tcase_add_test(tests, short_sequences_are_one_chunk);
    tcase_add_test(tests, products_of_scans_take_units);
    tcase_add_loop_test(tests, runs_list_that_scans_were_timed_elsewhere, 0, 6);
    tcase_add_loop_test(tests, norms_go_through_rows_backward, 0, 6);
    tcase_add_test(tests, tensor_ranks_divide_groups);
    tcase_add_loop_test(tests, hybrids_go_with_every_axis, 0, 8);
    tcase_add_loop_test(tests, what_cannot_be_is_refused, 0, 2);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
