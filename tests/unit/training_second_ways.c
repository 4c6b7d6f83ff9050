/* training_second_ways.c - a step told in other ways: op by op instead of fused segments, with the collectives of a
 * lockstep group simulated by themselves, and by SimGrid's own network model. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/second_way.h"

#define UNTIED_GPT                                                                                                     \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':10,'hidden':1024,'heads':16,"        \
    "'seq':256,'vocab':8192,'tied_embedding':false}"
#define LATENCY_S 2e-6 /* of the two links between any two devices of the fast system */

/* ---- op by op ---- */

struct clock {
    double host_s, device_s; /* when each is free */
    double by_cause[DL_N_CAUSES];
};

/* The host issues in order and runs ahead; an op starts when it is issued and the one before it has ended. */
static void walk(struct clock *c, const struct dl_template *as_written)
{
    const struct dl_template *const t = training_priced(&training, as_written);
    for (size_t i = 0; i < t->n_instructions; i++) {
        const struct dl_instruction *const op = &t->instructions[i];
        c->host_s += op->host_s;
        if (op->kind == DL_DRAIN) c->host_s = fmax(c->host_s, c->device_s);
        if (op->kind != DL_DO) continue;
        c->by_cause[DL_CAUSE_HOST] += fmax(c->host_s - c->device_s, 0);
        c->by_cause[op->cause] += op->device_s;
        c->device_s = fmax(c->device_s, c->host_s) + op->device_s;
    }
}

static struct clock walk_alone(const struct dl_template *t)
{
    struct clock c = {0};
    walk(&c, t);
    return c;
}

static const struct dl_template *template_of(uint32_t stage, const struct dl_item *item)
{
    return training.lowered.programs[stage].items[item->chunk * DL_N_TEMPLATES + (uint32_t)item->kind];
}

/* When each forward and backward has ended, by position; NAN: not yet. */
struct dates {
    double *ends_s[2];
};

static double *end_of(const struct dates *d, const struct dl_item *item, uint32_t position)
{
    return &d->ends_s[item->kind][position * training.lowered.schedule.micros + item->micro];
}

/* The position from which the item gets its input, or to which it hands on; its own: none. */
static uint32_t partner(uint32_t stage, const struct dl_item *item, bool hands_on)
{
    const struct dl_schedule *const s = &training.lowered.schedule;
    const uint32_t position = s->position_of[stage * s->chunks + item->chunk];
    if (item->kind == DL_ITEM_W) return position;
    if ((item->kind == DL_ITEM_F) == hands_on) return position + 1 < s->n_positions ? position + 1 : position;
    return position ? position - 1 : position;
}

static bool crosses(uint32_t stage, const struct dl_item *item, bool hands_on)
{
    return training.lowered.schedule.stage_of[partner(stage, item, hands_on)] != stage;
}

/* What the item waits for, or NAN if that has no date yet. */
static double ready_s(const struct dates *d, uint32_t stage, const struct dl_item *item)
{
    const struct dl_schedule *const s = &training.lowered.schedule;
    const uint32_t from = partner(stage, item, false);
    if (from == s->position_of[stage * s->chunks + item->chunk]) return 0;
    return *end_of(d, item, from) + (crosses(stage, item, false) ? LATENCY_S : 0);
}

static void call_host(struct clock *c)
{
    c->host_s += training.software.send_host_s;
    if (training.software.drains_at_sends) c->host_s = fmax(c->host_s, c->device_s);
}

/* A message that nobody else is in the way of. */
static void send(struct clock *c, double *sent_s)
{
    c->host_s += training.software.send_host_s;
    *sent_s = c->device_s = fmax(c->device_s, c->host_s);
    if (training.software.sends != DL_SENDS_ASYNCHRONOUS) c->device_s += LATENCY_S;
    if (training.software.drains_at_sends) c->host_s = fmax(c->host_s, c->device_s);
}

/* One pass over the items of a stage, as far as it gets; whether it got any further. */
static bool advance(const struct dates *d, uint32_t stage, uint32_t *next, struct clock *c)
{
    const struct dl_schedule *const s = &training.lowered.schedule;
    const uint32_t before = *next;
    while (*next < s->n_items[stage]) {
        const struct dl_item *const item = &s->items[stage][*next];
        const double ready = ready_s(d, stage, item);
        if (isnan(ready)) break;
        c->device_s = fmax(c->device_s, ready);
        if (crosses(stage, item, false)) call_host(c);
        walk(c, template_of(stage, item));
        double end_s = c->device_s;
        if (crosses(stage, item, true)) send(c, &end_s);
        if (item->kind != DL_ITEM_W) *end_of(d, item, s->position_of[stage * s->chunks + item->chunk]) = end_s;
        ++*next;
    }
    return *next > before;
}

/* The step without replicas and copies: every stage goes through its items, and ends with the optimizer. */
static double step_by_hand_s(void)
{
    const struct dl_schedule *const s = &training.lowered.schedule;
    const size_t n = (size_t)s->n_positions * s->micros;
    const struct dates d = {.ends_s = {dl_alloc(n * sizeof(double)), dl_alloc(n * sizeof(double))}};
    for (size_t i = 0; i < n; i++) d.ends_s[0][i] = d.ends_s[1][i] = NAN;
    uint32_t *const next = dl_alloc(s->stages * sizeof *next);
    struct clock *const clocks = dl_alloc(s->stages * sizeof *clocks);
    double last_s = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t stage = 0; stage < s->stages; stage++) moved |= advance(&d, stage, &next[stage], &clocks[stage]);
    }
    for (uint32_t stage = 0; stage < s->stages; stage++) {
        walk(&clocks[stage], &training.lowered.programs[stage].end);
        last_s = fmax(last_s, clocks[stage].device_s);
    }
    void *const blocks[] = {d.ends_s[0], d.ends_s[1], next, clocks};
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
    return last_s;
}

static const char *const stacks[] = {
    "'recompute':'none','stack':[]",
    "'recompute':'full','stack':[{'name':'tensor','ways':4}]",
    "'recompute':'none','stack':[{'name':'pipeline','ways':5}]",
    "'recompute':'selective','stack':[{'name':'pipeline','ways':3,'schedule':'gpipe'}]",
    "'recompute':'full','stack':[{'name':'pipeline','ways':2,'schedule':'interleaved','chunks':4}]",
    "'recompute':'none','stack':[{'name':'pipeline','ways':4,'schedule':'zb-h1'},{'name':'tensor','ways':2}]",
    "'recompute':'full','stack':[{'name':'pipeline','ways':3,'schedule':'zb-2p'}]",
    "'recompute':'selective','stack':[{'name':'pipeline','ways':4,'schedule':'zbv','chunks':2}]",
    "'recompute':'none','stack':[{'name':'pipeline','ways':4,'schedule':'breadth-first','chunks':2},"
    "{'name':'tensor','ways':2,'sequence':true}]",
    "'recompute':'selective','stack':[{'name':'pipeline','ways':10},{'name':'tensor','ways':8,'sequence':true}]",
};
#define RUNS_AHEAD                                                                                                     \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':8e-6,'launches_per_kernel':2,"                 \
    "'collective_host_s':1e-5,'send_host_s':3e-5,'attention':'unfused'}"
#define MEETS_ITS_DEVICE                                                                                               \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':4e-6,'launches_per_kernel':2,"                 \
    "'send_host_s':2e-5,'attention':'unfused','drains_at_sends':true}"
static const char *const softwares[] = {"ideal", "megatron-2021", RUNS_AHEAD, MEETS_ITS_DEVICE};
enum { n_fused_cases = DL_COUNT(stacks) * DL_COUNT(softwares) };

START_TEST(fused_is_as_op_by_op)
{
    const double tolerance = 1e-9;
    char strategy[600];
    const char *const stack = stacks[(size_t)_i % DL_COUNT(stacks)];
    snprintf(strategy, sizeof strategy,
             "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','global_batch':12,%s}", stack);
    const struct training_inputs inputs = {.system = FAST_SYSTEM,
                                           .device = "a100-80",
                                           .software = softwares[(size_t)_i / DL_COUNT(stacks)],
                                           .workload = UNTIED_GPT,
                                           .strategy = strategy};
    ck_assert_msg(!training_open(&training, &inputs), "%s", training.err.text);
    training.device.taken_by_sends = (struct dl_taken){{0}}; /* ops by themselves */
    const struct training_outcome outcome = play_opened("simgrid");
    for (uint32_t i = 0; i < training.lowered.n_positions; i++)
        for (int kind = 0; kind <= DL_ITEM_W; kind++) {
            const struct dl_template *const t = &training.lowered.positions[i].items[kind];
            const struct clock c = walk_alone(t);
            check_close(stack, t->total.seconds, c.device_s, tolerance);
            for (int cause = 0; cause < DL_N_CAUSES; cause++)
                ck_assert_double_le(fabs(t->total.by_cause[cause] - c.by_cause[cause]), tolerance * c.device_s);
        }
    check_close(stack, outcome.result.step_s, step_by_hand_s(), tolerance);
    dl_session_close(&training);
}
END_TEST

/* ---- a lockstep group, and its collectives by themselves ---- */

/* Seconds of all but the collectives, which are counted. */
static double without_collectives_s(const struct dl_template *as_written, double *n_collectives)
{
    const struct dl_template *const t = training_priced(&training, as_written);
    double sum = 0;
    for (size_t i = 0; i < t->n_instructions; i++) {
        if (t->instructions[i].cause == DL_CAUSE_TENSOR)
            ++*n_collectives;
        else
            sum += t->instructions[i].device_s;
    }
    return sum;
}

/* Software takes no time here, so ops follow each other. */
START_TEST(a_lockstep_group_takes_the_time_of_its_simulated_collectives)
{
    const uint32_t ways = 1u << (1 + _i);
    const double micros = 4, seq = 256, hidden = 1024, activation_bytes = 2;
    char strategy[400];
    snprintf(strategy, sizeof strategy,
             "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','global_batch':4,"
             "'stack':[{'name':'tensor','ways':%u}]}",
             ways);
    const struct training_inputs inputs = {
        .system = "crossbar", .device = "a100-80", .software = PLAIN_SOFTWARE, .workload = GPT, .strategy = strategy};
    const struct training_outcome outcome = play(&inputs, "simgrid");
    const struct setting setting = {.system = "crossbar", .engine = "simgrid"};
    const struct job job = {
        .op = DL_ALLREDUCE, .algorithm = "auto", .n = ways, .bytes = seq * hidden * activation_bytes, .fluid = true};
    struct outcome alone;
    run_jobs(&setting, &job, 1, &alone);
    double n_collectives = 0, others_s = 0;
    for (int kind = DL_ITEM_F; kind <= DL_ITEM_B; kind++)
        others_s += without_collectives_s(training.lowered.programs[0].items[kind], &n_collectives);
    const double end_s = walk_alone(&training.lowered.programs[0].end).device_s;
    check_close("step", outcome.result.step_s, micros * (others_s + n_collectives * alone.result.time_s) + end_s, 1e-9);
    dl_session_close(&training);
}
END_TEST

/* ---- another engine ---- */

/* Routes of these systems are fixed, one way for each pair. */
static const struct engine_case {
    const char *system, *device, *strategy;
} engine_cases[] = {
    {"crossbar", "a100-80",
     "'devices':64,'global_batch':64,'stack':[{'name':'pipeline','ways':4},{'name':'tensor','ways':2},"
     "{'name':'data'}]"},
    {"crossbar", "a100-80",
     "'devices':48,'global_batch':96,'stack':[{'name':'pipeline','ways':2,'schedule':'interleaved','chunks':2},"
     "{'name':'data','overlap':true},{'name':'zero','stage':2}]"},
    {"crossbar", "a100-80", "'devices':32,'global_batch':64,'stack':[{'name':'data'},{'name':'zero','stage':3}]"},
    {"crossbar", "a100-80",
     "'devices':32,'global_batch':64,'stack':[{'name':'data','overlap':true},"
     "{'name':'zero','stage':3,'shard_ways':8,'gather_bits':8,'prefetch':2}]"},
    {"crossbar", "a100-80",
     "'devices':12,'global_batch':24,'stack':[{'name':'data','overlap':true,'bucket_bytes':25e6,"
     "'exchange':'parameter_server','servers':3}]"},
    {"crossbar", "a100-80",
     "'devices':16,'global_batch':32,'stack':[{'name':'data'},{'name':'quantized_allreduce','method':'top_k'}]"},
    {"dgx1-v100", "v100-32",
     "'devices':128,'global_batch':128,'precision':'fp16','order':['tensor','pipeline','data'],'stack':"
     "[{'name':'pipeline','ways':4},{'name':'tensor','ways':4},{'name':'data','overlap':true}]"},
    {"dgx1-v100", "v100-32",
     "'devices':512,'global_batch':512,'precision':'fp16','stack':[{'name':'pipeline','ways':8},"
     "{'name':'tensor','ways':8},{'name':'data'},{'name':'zero','stage':1}]"},
    {"crossbar", "a100-80",
     "'devices':16,'global_batch':32,'stack':[{'name':'pipeline','ways':4,'schedule':'dualpipe','chunks':2},"
     "{'name':'tensor','ways':2},{'name':'data','overlap':true},{'name':'zero','stage':2}]"},
};

START_TEST(simgrids_own_model_gives_the_same_step)
{
    const struct engine_case *const c = &engine_cases[_i];
    char strategy[600];
    snprintf(strategy, sizeof strategy, "{'schema':'dlsim/strategy/1','source':'a test','workload':'none',%s}",
             c->strategy);
    const struct training_inputs inputs = {
        .system = c->system, .device = c->device, .software = "megatron-2021", .workload = GPT, .strategy = strategy};
    const struct training_outcome ours = play(&inputs, "simgrid");
    const struct training_outcome theirs = training_simulate(&training, "cm02");
    ck_assert_msg(!theirs.err.status && theirs.result.complete, "%s", theirs.err.text);
    check_close(c->strategy, ours.result.step_s, theirs.result.step_s, 1e-9);
    for (int cause = 0; cause < DL_N_CAUSES; cause++)
        ck_assert_double_le(fabs(ours.result.exposed_s[cause] - theirs.result.exposed_s[cause]),
                            1e-9 * ours.result.step_s);
    dl_session_close(&training);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("training_second_ways");
    tcase_add_loop_test(tests, fused_is_as_op_by_op, 0, n_fused_cases);
    tcase_add_loop_test(tests, a_lockstep_group_takes_the_time_of_its_simulated_collectives, 0, 3);
    tcase_add_loop_test(tests, simgrids_own_model_gives_the_same_step, 0, (int)DL_COUNT(engine_cases));
    Suite *const suite = suite_create("training_second_ways");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
