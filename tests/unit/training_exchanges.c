/* training_exchanges.c - exchanges among replicas beside the work, told in another way: lines of work, exchanges and
 * launches by hand, and message by message. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/second_way.h"

/* ---- lines ---- */

#define EXCHANGE_BYTES_PER_S 4e12 /* so that now the work, now the exchanges take longer */

/* The only stage, replicas in step: work on one line, exchanges one after the other on another, the host on a third. */
struct lines {
    double work_s, exchanges_s, host_s; /* when each is free */
    double *done_s;                     /* by call: its latest exchange */
};

static double exchange_s(const struct dl_comm *call)
{
    const double n = dl_members_count(&training.job.setting.ranks, &call->members);
    const double passes = call->op == DL_ALLREDUCE ? 2 : 1;
    const double sent = call->op == DL_BROADCAST ? 1 : (n - 1) / n;
    const double bytes = dl_payload_bytes(&call->payload, call->bytes, (uint32_t)n);
    return passes * sent * bytes / EXCHANGE_BYTES_PER_S;
}

static void follow(struct lines *l, const struct dl_template *as_written)
{
    const struct dl_template *const t = training_priced(&training, as_written);
    for (size_t i = 0; i < t->n_instructions; i++) {
        const struct dl_instruction *const op = &t->instructions[i];
        l->host_s += op->host_s;
        if (op->kind == DL_DRAIN) {
            l->host_s = fmax(l->host_s, l->work_s);
        } else if (op->kind == DL_WAIT) {
            l->work_s = fmax(l->work_s, op->call == DL_EVERY_CALL ? l->exchanges_s : l->done_s[op->call]);
        } else if (op->kind == DL_DO) {
            l->work_s = fmax(l->work_s, l->host_s) + op->device_s;
        } else {
            const double launched_s = fmax(l->work_s, l->host_s);
            l->exchanges_s = fmax(l->exchanges_s, launched_s) + exchange_s(&training.lowered.calls[op->call]);
            l->done_s[op->call] = l->exchanges_s;
        }
    }
}

static double step_of_lines_s(void)
{
    const struct dl_schedule *const s = &training.lowered.schedule;
    const struct dl_program *const p = &training.lowered.programs[0];
    struct lines l = {.done_s = dl_alloc((training.lowered.n_calls + 1) * sizeof *l.done_s)};
    for (uint32_t i = 0; i < s->n_items[0]; i++) {
        const bool last = training.job.setting.last_backward_differs && i + 1 == s->n_items[0];
        follow(&l, p->items[last ? DL_TEMPLATE_LAST : (int)s->items[0][i].kind]);
    }
    follow(&l, &p->end);
    dl_free(l.done_s);
    return l.work_s;
}

static const char *const exchanging_stacks[] = {
    "[{'name':'data'}]",
    "[{'name':'data','overlap':true}]",
    "[{'name':'data'},{'name':'zero','stage':1}]",
    "[{'name':'data','overlap':true},{'name':'zero','stage':2}]",
    "[{'name':'data'},{'name':'zero','stage':3}]",
    "[{'name':'data','overlap':true},{'name':'zero','stage':3},{'name':'recompute','mode':'full'}]",
    "[{'name':'data','overlap':true},{'name':'tensor','ways':2}]",
    "[{'name':'data','overlap':true,'bucket_bytes':3e7}]",
    "[{'name':'data','overlap':true,'bucket_bytes':3e7},{'name':'zero','stage':2}]",
    "[{'name':'data','overlap':true,'when':'micro'}]",
    "[{'name':'data','when':'micro','bucket_bytes':3e7}]",
    "[{'name':'data'},{'name':'zero','stage':3,'prefetch':0}]",
    "[{'name':'data'},{'name':'zero','stage':3,'prefetch':3}]",
    "[{'name':'data','overlap':true},{'name':'zero','stage':3,'reshard':false}]",
    "[{'name':'data'},{'name':'zero','stage':3,'gather_bits':8}]",
    "[{'name':'data','overlap':true},{'name':'zero','stage':3,'shard_ways':4}]",
    "[{'name':'data','overlap':true},{'name':'quantized_allreduce','method':'one_bit'}]",
};

#define SLOW_HOST                                                                                                      \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':1e-5,'collective_host_s':3e-5,"                \
    "'attention':'unfused'"
static const char *const exchanging_softwares[] = {"ideal", SLOW_HOST "}", SLOW_HOST ",'drains_at_waits':true}",
                                                   SLOW_HOST ",'deals_tensors':true,'bucket_moves':6}"};
enum { n_exchanging_cases = DL_COUNT(exchanging_stacks) * DL_COUNT(exchanging_softwares) };

START_TEST(exchanges_go_on_beside_the_work)
{
    char strategy[600];
    const char *const stack = exchanging_stacks[(size_t)_i % DL_COUNT(exchanging_stacks)];
    snprintf(strategy, sizeof strategy,
             "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','devices':8,'global_batch':64,"
             "'microbatch':4,'stack':%s}",
             stack);
    const struct training_inputs inputs = {.system = IDEAL_SYSTEM("4e12", "0"),
                                           .device = IDEAL_DEVICE,
                                           .software = exchanging_softwares[(size_t)_i / DL_COUNT(exchanging_stacks)],
                                           .workload = GPT,
                                           .strategy = strategy};
    const struct training_outcome outcome = play(&inputs, "simgrid");
    check_close(stack, outcome.result.step_s, step_of_lines_s(), 1e-6);
    dl_session_close(&training);
}
END_TEST

/* What is gathered for a layer is what the layer waits for. */
START_TEST(a_layer_waits_for_its_own_parameters)
{
    const struct training_inputs inputs = {
        .system = FAST_SYSTEM,
        .device = IDEAL_DEVICE,
        .software = "ideal",
        .workload = GPT,
        .strategy = "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','devices':4,'global_batch':4,"
                    "'stack':[{'name':'data','overlap':true},{'name':'zero','stage':3}]}"};
    ck_assert_msg(!training_open(&training, &inputs), "%s", training.err.text);
    for (int kind = 0; kind < DL_N_TEMPLATES; kind++) {
        const struct dl_template *const t = &training.lowered.positions[0].items[kind];
        for (size_t i = 0; i < t->n_instructions; i++)
            if (t->instructions[i].kind == DL_WAIT && t->instructions[i].call != DL_EVERY_CALL)
                ck_assert_int_eq(training.lowered.calls[t->instructions[i].call].op, DL_ALLGATHER);
    }
    dl_session_close(&training);
}
END_TEST

/* ---- message by message ---- */

/* Rings of equal links: folded or not, a piece is on its way for as long. */
START_TEST(single_messages_give_the_same_step)
{
    char strategy[600];
    snprintf(strategy, sizeof strategy,
             "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','devices':8,'global_batch':64,"
             "'microbatch':4,'stack':%s}",
             exchanging_stacks[_i]);
    const struct training_inputs inputs = {.system = IDEAL_SYSTEM("4e12", "1e-9"),
                                           .device = "a100-80",
                                           .software = "megatron-core",
                                           .workload = GPT,
                                           .strategy = strategy};
    const struct training_outcome folded = play(&inputs, "simgrid");
    training.request.fidelity = "step";
    const struct training_outcome single = play_opened("simgrid");
    check_close(exchanging_stacks[_i], single.result.step_s, folded.result.step_s, 1e-9);
    ck_assert(single.report_hash != folded.report_hash); /* there are more events, and it says so */
    dl_session_close(&training);
}
END_TEST

/* ---- where that is too much ---- */

static const struct {
    const char *system, *head, *stack;
} unfolded[] = {
    {"crossbar", "'devices':8,'global_batch':8", "{'name':'data'}"},
    {"crossbar", "'devices':12,'global_batch':12", "{'name':'data'},{'name':'tensor','ways':2}"},
    {"crossbar", "'devices':16,'global_batch':16", "{'name':'data'},{'name':'zero','stage':1}"},
};

static void open_unfolded(int which)
{
    const struct training_inputs inputs = {
        .system = unfolded[which].system, .device = "a100-80", .software = "ideal", .workload = GPT};
    ck_assert_msg(!training_open_stack(&training, inputs, unfolded[which].head, unfolded[which].stack), "%s",
                  training.err.text);
}

/* They meet nobody, so that they take as long as if they were alone. */
START_TEST(exchanges_that_are_timed_take_their_own_time)
{
    open_unfolded(_i);
    const struct training_outcome played = play_opened("simgrid");
    ck_assert_double_eq(played.result.n_timed_alone, 0);
    training.request.most.effort = 1;
    const struct training_outcome timed = play_opened("simgrid"), again = play_opened("cm02");
    ck_assert_double_gt(timed.result.n_timed_alone, 0);
    check_close(unfolded[_i].stack, timed.result.step_s, played.result.step_s, 1e-9);
    check_close(unfolded[_i].stack, again.result.step_s, timed.result.step_s, 1e-9);
    dl_session_close(&training);
}
END_TEST

static const struct {
    const char *engine, *fidelity;
    bool is_limited;
} asked[] = {
    {"simgrid", "fluid", true}, {"cm02", "fluid", true}, {"simgrid", "step", false}, {"analytic", "fluid", false}};

START_TEST(what_is_asked_for_message_by_message_is_played)
{
    open_unfolded(0);
    training.request.most.effort = 1;
    training.request.fidelity = asked[_i].fidelity;
    ck_assert_int_eq(play_opened(asked[_i].engine).result.n_timed_alone > 0, asked[_i].is_limited);
    dl_session_close(&training);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("training_exchanges");
    tcase_add_loop_test(tests, exchanges_go_on_beside_the_work, 0, n_exchanging_cases);
    tcase_add_test(tests, a_layer_waits_for_its_own_parameters);
    tcase_add_loop_test(tests, single_messages_give_the_same_step, 0, (int)DL_COUNT(exchanging_stacks));
    tcase_add_loop_test(tests, exchanges_that_are_timed_take_their_own_time, 0, (int)DL_COUNT(unfolded));
    tcase_add_loop_test(tests, what_is_asked_for_message_by_message_is_played, 0, (int)DL_COUNT(asked));
    Suite *const suite = suite_create("training_exchanges");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
