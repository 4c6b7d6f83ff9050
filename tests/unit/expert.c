/* expert.c - experts divided over replicas: volumes, work, parameters and exchanges against closed forms. */
#define _GNU_SOURCE /* fork, pipe */
#include "sim/plan/plan.h"
#include "tests/unit/divided_step.h"
#include "tests/unit/small_experts.h"

#define DATA_WAYS 8
#define MODEL(more) SMALL_EXPERTS("8", more)
#define BATCH "'global_batch':16,'microbatch':2,'devices':8"
#define DATA ",{'name':'data'}"

static const double exactly = 1e-9, memory_bytes_per_s = 1e18; /* of IDEAL_DEVICE */
static const uint32_t all_ways[] = {2, 4, 8};

static const char *stack_of(uint32_t ways, const char *more)
{
    static char text[300];
    snprintf(text, sizeof text, "{'name':'expert','ways':%u%s}" DATA, ways, more);
    return text;
}

/* Of a layer of one rank, there or back. */
static double travelling_bytes(double capacity) { return activation_bytes * SAMPLES * SEQ * TOP_K * capacity * HIDDEN; }

static double expert_parameters(const struct dl_model *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n_layers; i++) sum += m->layers[i].expert_parameters;
    return sum;
}

/* Tokens go and return, forward and backward; 1/w of them stay where they are. */
START_TEST(tokens_travel_twice_each_way)
{
    static const struct {
        const char *workload;
        double capacity;
    } models[] = {{MODEL(""), 1},
                  {MODEL(",'capacity_factor':1.25"), 1.25},
                  {MODEL(",'capacity_factor':1.25,'routes_by_gemms':true"), 1.25}};
    const uint32_t ways = all_ways[_i % 3];
    struct dl_session t;
    open_step(&t, &(struct step){.workload = models[_i / 3].workload, .head = BATCH, .stack = stack_of(ways, "")});
    const double bytes = LAYERS * 2 * travelling_bytes(models[_i / 3].capacity) * (ways - 1) / ways;
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        check_close("bytes", cause_s(&t, kind, DL_CAUSE_EXPERT) * SLOW_BYTES_PER_S, bytes, exactly);
        ck_assert_uint_eq(count_cause(&t, kind, DL_CAUSE_EXPERT), 2 * LAYERS);
    }
    dl_session_close(&t);
}
END_TEST

START_TEST(sequence_parallelism_divides_what_travels)
{
    static const char *const stacks[] = {"{'name':'tensor','ways':2},{'name':'expert','ways':4}" DATA,
                                         "{'name':'tensor','ways':2,'sequence':true},{'name':'expert','ways':4}" DATA};
    const double bytes = LAYERS * 2 * travelling_bytes(1) * 3 / 4;
    struct dl_session t;
    open_step(&t, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = stacks[_i]});
    check_close("bytes", cause_s(&t, DL_ITEM_F, DL_CAUSE_EXPERT) * SLOW_BYTES_PER_S, bytes / (_i ? 2 : 1), exactly);
    dl_session_close(&t);
}
END_TEST

/* Fewer experts with more tokens: as many flop and as much time as before, with fewer parameters. */
START_TEST(work_stays_and_parameters_are_divided)
{
    const uint32_t ways = all_ways[_i];
    struct dl_session whole, part;
    open_step(&whole, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = "{'name':'data'}"});
    open_step(&part, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = stack_of(ways, "")});
    check_close("flop", flop_of(&part), flop_of(&whole), exactly);
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("seconds", kernels_s(&part, kind, "expert_"), kernels_s(&whole, kind, "expert_"), exactly);
    const double dropped = expert_parameters(&part.model) * (1 - 1.0 / ways) * activation_bytes;
    check_close("parameters", whole.memory[0].parameters - part.memory[0].parameters, dropped, exactly);
    ck_assert_double_eq(part.lowered.model_flop[DL_FLOP_FULL], whole.lowered.model_flop[DL_FLOP_FULL]);
    dl_session_close(&whole);
    dl_session_close(&part);
}
END_TEST

/* The busiest rank has so many times the tokens; in the mean nothing changes. */
START_TEST(everybody_waits_for_the_busiest_rank)
{
    struct dl_session even, uneven;
    open_step(&even, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = stack_of(8, "")});
    open_step(&uneven, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = stack_of(8, ",'imbalance':1.5")});
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        check_close("work", kernels_s(&uneven, kind, "expert_"), 1.5 * kernels_s(&even, kind, "expert_"), exactly);
        check_close("travel", cause_s(&uneven, kind, DL_CAUSE_EXPERT), 1.5 * cause_s(&even, kind, DL_CAUSE_EXPERT),
                    exactly);
        check_close("others", kernels_s(&uneven, kind, "qkv"), kernels_s(&even, kind, "qkv"), exactly);
    }
    check_close("flop", flop_of(&uneven), flop_of(&even), exactly);
    dl_session_close(&even);
    dl_session_close(&uneven);
}
END_TEST

static double drawn_imbalance(double skew, int seed, double even_s)
{
    char options[80];
    struct dl_session uneven;
    snprintf(options, sizeof options, ",'skew':%g,'seed':%d", skew, seed);
    open_step(&uneven, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = stack_of(2, options)});
    const double imbalance = kernels_s(&uneven, DL_ITEM_F, "expert_") / even_s;
    dl_session_close(&uneven);
    return imbalance;
}

/* Of two ranks whose tokens are exponentially distributed (deviation = mean) the share of one is uniform, so that the
 * busier has 3/2 of the mean on average. */
START_TEST(skew_is_drawn_from_the_seed)
{
    const int n_seeds = 300;
    const double even = 1e-6, chance = 0.05; /* three deviations of the mean of so many */
    struct dl_session t;
    double sum = 0;
    open_step(&t, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = stack_of(2, "")});
    const double even_s = kernels_s(&t, DL_ITEM_F, "expert_");
    dl_session_close(&t);
    for (int seed = 1; seed <= n_seeds; seed++) sum += drawn_imbalance(1, seed, even_s);
    ck_assert_double_eq_tol(sum / n_seeds, 1.5, chance);
    ck_assert_double_eq(drawn_imbalance(1, 7, even_s), drawn_imbalance(1, 7, even_s));
    ck_assert_double_ne(drawn_imbalance(1, 7, even_s), drawn_imbalance(1, 8, even_s));
    ck_assert_double_eq_tol(drawn_imbalance(1e-7, 7, even_s), 1, even);
}
END_TEST

/* Two nodes of four devices, each with its own way out, or all with one. */
#define NODES(inside, outside, nics, attach)                                                                           \
    "{'schema':'dlsim/system/1','source':'a test','nodes':2,'transport':'ideal','node':{'device':'a test',"            \
    "'devices':4,'parts':[{'kind':'switch','bandwidth_bytes_per_s':" inside ",'latency_s':0,'link':'ideal'}],"         \
    "'nics':{'count':" nics ",'attach':" attach ",'bandwidth_bytes_per_s':" outside ",'latency_s':0,'link':'ideal'}}," \
    "'network':{'kind':'crossbar','link':'ideal','bandwidth_bytes_per_s':1e15,'latency_s':0}}"
#define EACH "['device0','device1','device2','device3']"

/* Bytes of a rank's tokens to a node or a rank, if each goes once where it has any expert. */
static double once_bytes(double chance) { return chance * travelling_bytes(1) / TOP_K; }

/* Of two of eight experts, none is among the four of a node with 3/14, or at a rank with 3/4. Three of four ranks of a
 * node are others, to which the tokens of both nodes go. */
START_TEST(tokens_may_travel_once_to_each_node_and_rank)
{
    static const struct {
        const char *system, *options;
        double bytes; /* over the slow link, for a trip of a layer */
    } cases[] = {
        {NODES("1e15", "1e3", "4", EACH), ",'dispatch':'to_nodes'", 11.0 / 14},
        {NODES("1e15", "1e3", "1", "['nvswitch0']"), ",'dispatch':'to_nodes'", 4 * 11.0 / 14},
        {NODES("1e3", "1e15", "4", EACH), ",'dispatch':'to_nodes'", 2 * 3 * 1.0 / 4},
        {NODES("1e15", "1e3", "4", EACH), ",'dispatch':'to_experts'", 4 * TOP_K / 8.0},
    };
    struct dl_session t;
    open_step(&t, &(struct step){.system = cases[_i].system,
                                 .workload = MODEL(""),
                                 .head = BATCH,
                                 .stack = stack_of(8, cases[_i].options)});
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        check_close("bytes", cause_s(&t, kind, DL_CAUSE_EXPERT) * SLOW_BYTES_PER_S,
                    LAYERS * 2 * once_bytes(cases[_i].bytes), 1e-6);
    dl_session_close(&t);
}
END_TEST

/* The software decides unless the strategy does; where there is one node, each rank is sent to once. */
START_TEST(the_strategy_says_how_tokens_travel_or_the_software_does)
{
    static const char software[] = "{'schema':'dlsim/software/1','source':'a test','attention':'flash',"
                                   "'dispatch':'to_nodes'}";
    const double none = 3.0 / 14, copies = travelling_bytes(1) / 2; /* as above: a rank has four of eight experts */
    static const char *const options[] = {"", ",'dispatch':'to_experts'"};
    struct dl_session t;
    open_step(&t, &(struct step){.system = NODES("1e3", "1e15", "4", EACH),
                                 .software = software,
                                 .workload = MODEL(""),
                                 .head = BATCH,
                                 .stack = stack_of(2, options[_i])});
    check_close("bytes", cause_s(&t, DL_ITEM_F, DL_CAUSE_EXPERT) * SLOW_BYTES_PER_S,
                LAYERS * 2 * (_i ? copies : once_bytes(1 - none)), 1e-6);
    dl_session_close(&t);
}
END_TEST

/* Copies that come from several ranks are sorted where a rank has several experts, once they have come and before they
 * return; those that are sent once are not copies yet. */
START_TEST(copies_are_sorted_by_expert)
{
    static const struct {
        uint32_t ways;
        const char *options;
        uint32_t n_sorts;
    } cases[] = {{2, "", 2 * LAYERS}, {4, "", 2 * LAYERS}, {8, "", 0}, {4, ",'dispatch':'to_nodes'", 0}};
    struct dl_session t;
    open_step(
        &t, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = stack_of(cases[_i].ways, cases[_i].options)});
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        uint32_t n_sorts = 0;
        for (size_t i = 0; i < item(&t, kind)->n_instructions; i++)
            n_sorts += strcmp(item(&t, kind)->instructions[i].name, "sort") == 0;
        ck_assert_uint_eq(n_sorts, cases[_i].n_sorts);
        const double bytes = cases[_i].n_sorts * 2 * travelling_bytes(1);
        check_close("sorted", kernels_s(&t, kind, "sort") * memory_bytes_per_s, bytes, exactly);
    }
    dl_session_close(&t);
}
END_TEST

/* Software that needs the numbers of tokens on the host tells them to all ranks first, and sends the weights of copies
 * apart: forward and, as gradients, backward. Nothing of it where tokens go to nodes. */
START_TEST(counts_and_weights_of_tokens_travel_too)
{
    static const char software[] = "{'schema':'dlsim/software/1','source':'a test','attention':'flash',"
                                   "'drains_at_dispatch':true}";
    static const struct {
        uint32_t ways;
        const char *options;
        uint32_t n[2]; /* exchanges of a layer: forward, backward */
    } cases[] = {{4, "", {4, 3}}, {8, "", {4, 3}}, {4, ",'dispatch':'to_nodes'", {2, 2}}};
    const uint32_t ways = cases[_i].ways;
    const double count_bytes = 8, weight_bytes = 4, experts = 8, others = (double)(ways - 1) / ways;
    const double counts = count_bytes * experts * (ways - 1), weights = weight_bytes * SAMPLES * SEQ * TOP_K * others;
    struct dl_session t;
    open_step(&t, &(struct step){.workload = MODEL(""),
                                 .software = software,
                                 .head = BATCH,
                                 .stack = stack_of(ways, cases[_i].options)});
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        const bool forward = kind == DL_ITEM_F;
        ck_assert_uint_eq(count_cause(&t, kind, DL_CAUSE_EXPERT), cases[_i].n[!forward] * LAYERS);
        if (cases[_i].n[0] == 2) continue;
        check_close("bytes", cause_s(&t, kind, DL_CAUSE_EXPERT) * SLOW_BYTES_PER_S,
                    LAYERS * (2 * travelling_bytes(1) * others + weights + (forward ? counts : 0)), exactly);
    }
    dl_session_close(&t);
}
END_TEST

/* Of two micro-batches the first goes forward, and the last backward, with no other beside it: half of what travels is
 * not hidden. The other half is, unless it takes longer than the layer, and then all that travels is seen: both halves
 * go over the same links, one after the other. */
START_TEST(tokens_may_travel_beside_other_work)
{
    static const struct {
        const char *system;
        double seen;
    } cases[] = {{SLOW_SYSTEM, 1}, {FAST_SYSTEM, 0.5}};
    static const char twice[] = "'global_batch':32,'microbatch':2,'devices':8";
    static const char *const engines[] = {"analytic", "simgrid"};
    const double micros = 2;
    struct dl_session alone, beside;
    struct step step = {.system = cases[_i].system, .workload = MODEL(""), .head = twice, .stack = stack_of(8, "")};
    open_step(&alone, &step);
    step.stack = stack_of(8, ",'overlap':true");
    open_step(&beside, &step);
    double travel_s = 0;
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++) {
        check_close("work", cause_s(&beside, kind, DL_CAUSE_COMPUTE), cause_s(&alone, kind, DL_CAUSE_COMPUTE), exactly);
        check_close("seen", cause_s(&beside, kind, DL_CAUSE_EXPERT),
                    cases[_i].seen * cause_s(&alone, kind, DL_CAUSE_EXPERT), 1e-3);
        travel_s += micros * cause_s(&alone, kind, DL_CAUSE_EXPERT);
    }
    for (size_t i = 0; i < DL_COUNT(engines); i++) {
        const struct training_outcome outcome = training_simulate(&beside, engines[i]);
        ck_assert(outcome.result.complete);
        check_close(engines[i], outcome.result.exposed_s[DL_CAUSE_EXPERT], cases[_i].seen * travel_s, 1e-3);
    }
    dl_session_close(&alone);
    dl_session_close(&beside);
}
END_TEST

/* Sums of gradients go over the same links: both take longer than by themselves. */
START_TEST(tokens_beside_other_work_meet_sums)
{
    struct dl_session t;
    open_step(&t, &(struct step){.workload = MODEL(""),
                                 .head = "'global_batch':32,'microbatch':2,'devices':8",
                                 .stack = "{'name':'expert','ways':4,'overlap':true},{'name':'data','overlap':true}"});
    size_t n_simulated = 0;
    for (size_t i = 0; i < t.lowered.n_calls; i++)
        n_simulated += t.lowered.calls[i].channel == DL_CHANNEL_BESIDE && t.lowered.plan.calls[i];
    ck_assert_uint_gt(n_simulated, 0);
    const struct training_outcome together = training_simulate(&t, "simgrid");
    dl_plan_nothing(&t.lowered);
    const struct training_outcome alone = training_simulate(&t, "simgrid");
    ck_assert(together.result.complete && alone.result.complete);
    ck_assert_double_gt(together.result.step_s, 1.001 * alone.result.step_s);
    dl_session_close(&t);
}
END_TEST

/* An all-reduce of P bytes over n ranks takes 2 (n - 1) / n P of a link. */
static double allreduce_s(double parameters, double n)
{
    return 2 * (n - 1) / n * parameters * gradient_bytes / SLOW_BYTES_PER_S;
}

/* Those of experts over data / w ranks and w-th parts, the others over all. */
START_TEST(gradients_are_summed_where_parameters_are_the_same)
{
    static const struct {
        const char *stack;
        double ways, copies; /* of the others */
    } cases[] = {
        {"{'name':'expert','ways':1}" DATA, 1, DATA_WAYS},
        {"{'name':'expert','ways':2}" DATA, 2, DATA_WAYS},
        {"{'name':'expert','ways':4}" DATA, 4, DATA_WAYS},
        {"{'name':'expert','ways':8}" DATA, 8, DATA_WAYS},
        {"{'name':'expert','ways':2},{'name':'zero','stage':1}" DATA, 2, DATA_WAYS}, /* the same bytes in two halves */
        {"{'name':'expert','ways':2},{'name':'context','ways':2}" DATA, 2, DATA_WAYS},
    };
    struct dl_session t;
    open_step(&t, &(struct step){.workload = MODEL(""), .head = BATCH, .stack = cases[_i].stack});
    const struct training_outcome outcome = training_simulate(&t, "simgrid");
    ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s", outcome.err.text);
    const double of_experts = expert_parameters(&t.model), others = dl_model_parameters(&t.model) - of_experts;
    const double in_two_halves = t.job.setting.zero_stage ? (1 + activation_bytes / gradient_bytes) / 2 : 1;
    const double seconds = allreduce_s(others, cases[_i].copies) +
                           allreduce_s(of_experts / cases[_i].ways, cases[_i].copies / cases[_i].ways);
    check_close("data", outcome.result.exposed_s[DL_CAUSE_DATA], in_two_halves * seconds, 1e-6);
    dl_session_close(&t);
}
END_TEST

/* Each rank keeps the n-th part of what n ranks hold in common. */
START_TEST(zero_cuts_what_is_held_in_common)
{
    struct dl_session t;
    open_step(&t, &(struct step){.workload = MODEL(""),
                                 .head = BATCH,
                                 .stack = "{'name':'expert','ways':4},{'name':'zero','stage':3}" DATA});
    check_close("parameters", t.memory[0].parameters * DATA_WAYS, dl_model_parameters(&t.model) * activation_bytes,
                exactly);
    const struct training_outcome outcome = training_simulate(&t, "simgrid");
    ck_assert_msg(!outcome.err.status && outcome.result.complete, "%s", outcome.err.text);
    dl_session_close(&t);
}
END_TEST

START_TEST(what_cannot_be_divided_is_refused)
{
    static const struct {
        struct step step;
        const char *message;
    } bad[] = {
        {{.workload = MODEL(""), .head = BATCH, .stack = "{'name':'expert','ways':3}" DATA},
         "test.json:/stack/0/ways: must divide the experts, 8, got 3; 2 or 4 would do"},
        {{.workload = MODEL(""), .head = "'global_batch':16,'devices':2", .stack = "{'name':'expert','ways':4}" DATA},
         "test.json:/stack/0/ways: must divide the data ways, 2, got 4; 2 would do"},
        {{.workload = "gpt2-125m", .head = BATCH, .stack = "{'name':'expert','ways':4}" DATA},
         "test.json:/stack/0: gpt2-125m has no experts"},
        {{.workload = MODEL(""), .head = BATCH, .stack = "{'name':'expert','ways':4,'imbalance':5}" DATA},
         "test.json:/stack/0/imbalance: must be at most ways, 4, when one rank gets everything; got 5"},
        {{.workload = MODEL(""), .head = BATCH, .stack = "{'name':'expert','ways':4,'imbalance':0.5}" DATA},
         "test.json:/stack/0/imbalance: must be in [1, 65536], got 0.5"},
        {{.workload = MODEL(""), .head = BATCH, .stack = "{'name':'expert','ways':4,'imbalance':2,'skew':1}" DATA},
         "test.json:/stack/0/skew: means nothing beside imbalance; say one of them"},
        {{.workload = MODEL(""), .head = BATCH, .stack = "{'name':'expert','ways':4,'seed':3}" DATA},
         "test.json:/stack/0/seed: means nothing without skew"},
        {{.workload = MODEL(""), .head = BATCH, .stack = "{'name':'expert','ways':4,'overlap':true}" DATA},
         "test.json:/stack/0/overlap: needs two micro-batches of a replica at least; there is one"},
        {{.workload = MODEL(""), .head = BATCH, .stack = "{'name':'expert','ways':4,'dispatch':'to_racks'}" DATA},
         "test.json:/stack/0/dispatch: must be one of to_experts, to_nodes, got 'to_racks'"},
    };
    check_refusal(&bad[_i].step, bad[_i].message);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("expert");
    tcase_add_loop_test(tests, tokens_travel_twice_each_way, 0, 9);
    tcase_add_loop_test(tests, sequence_parallelism_divides_what_travels, 0, 2);
    tcase_add_loop_test(tests, work_stays_and_parameters_are_divided, 0, 3);
    tcase_add_test(tests, everybody_waits_for_the_busiest_rank);
    tcase_add_test(tests, skew_is_drawn_from_the_seed);
    tcase_add_loop_test(tests, gradients_are_summed_where_parameters_are_the_same, 0, 6);
    tcase_add_test(tests, zero_cuts_what_is_held_in_common);
    tcase_add_loop_test(tests, what_cannot_be_divided_is_refused, 0, 9);
    tcase_add_loop_test(tests, tokens_may_travel_once_to_each_node_and_rank, 0, 4);
    tcase_add_loop_test(tests, the_strategy_says_how_tokens_travel_or_the_software_does, 0, 2);
    tcase_add_loop_test(tests, copies_are_sorted_by_expert, 0, 4);
    tcase_add_loop_test(tests, counts_and_weights_of_tokens_travel_too, 0, 3);
    tcase_add_test(tests, tokens_beside_other_work_meet_sums);
    tcase_add_loop_test(tests, tokens_may_travel_beside_other_work, 0, 2);
    Suite *const suite = suite_create("expert");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
