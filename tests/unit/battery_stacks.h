/* battery_stacks.h - random stacks of the examples of strategies: whatever is put together is refused with the key that
 * must change, or ends by both engines, and nothing is lost. */
#ifndef DL_TESTS_BATTERY_STACKS_H
#define DL_TESTS_BATTERY_STACKS_H

#include "tests/unit/battery.h"
#include "tests/unit/strategy_examples.h"
#include "tests/unit/suite.h"
#include "tests/unit/workload_examples.h"

/* Operands of four bits, that are gathered and kept so, with copies of weights; and of eight. */
#define QUANTISES                                                                                                      \
    "{'schema':'dlsim/software/1','source':'a test','host_s_per_launch':0,'collective_host_s':0,'gradient_bytes':4,"   \
    "'attention':'flash','operands':[{'precision':'nvfp4','moves':3,'launches':2,'gathered':true,'saved':true,"        \
    "'weight_copies':2,'pads':true},{'precision':'mxfp8','moves':2,'launches':1}]}"

/* Machines with a link for each device, and with shared adapters. */
static const struct stack_machine {
    const char *system, *device, *numbers; /* numbers: keys of the strategy file */
    double rounding; /* more, where the slowest lane in latency is not the one on the busiest link: steps are short */
} stack_machines[] = {{IDEAL_SYSTEM("1e10", "1e-6"), "a100-80", "'precision':'fp16'", 1e-9},
                      {IDEAL_SYSTEM("1e10", "1e-6"), "wse-2", "'precision':'fp16'", 1e-9},
                      {IDEAL_SYSTEM("1e9", "1e-5"), "a64fx", "'precision':'fp16'", 1e-9},
                      {"dgx-a100-hdr4", "a100-40", "'precision':'fp16'", 5e-3},
                      {"v100-40gbe", "v100-16", "'precision':'fp16'", 5e-3},
                      {"tpu-v4", "tpu-v4", "'precision':'bf16'", 5e-3},
                      {IDEAL_SYSTEM("1e10", "1e-6"), "b200", "'precision':'nvfp4'", 1e-9},
                      {IDEAL_SYSTEM("1e10", "1e-6"), "b300", "'precision':'mxfp8','wide_last_blocks':1", 1e-9}};

/* Ways of software that decide who waits for whom. */
static const char *const stack_sets[] = {NULL,
                                         "software.sends='blocking'",
                                         "software.sends='batched'",
                                         "software.step_barrier=false",
                                         "software.drains_at_sends=true",
                                         "software.gathers_modules=true",
                                         "software.accumulates='whole'",
                                         "software.overlaps_tensor=true",
                                         "software.dispatch_overlap_fraction=0.45",
                                         "software.overlap_host_s=3e-4",
                                         "software.group_host_s=1e-4",
                                         "software.drains_at_recompute=true",
                                         "software.recomputes_needed=true",
                                         "software.weights_in_activation=true",
                                         "software.communication_fraction=0.15",
                                         "software.collective_units_fraction=0.5",
                                         "optimizer='adam_bf16'",
                                         "software.bucket_moves=6",
                                         "software.collective_rank_host_s=1e-3",
                                         "software.launch_queue=500",
                                         "software.ring_gathers_once=true",
                                         "software.ring_merge_moves=12",
                                         "software.keep_moves=3",
                                         "software.keep_backward_moves=2",
                                         "software.repeats_kept_products=true"};

struct drawn_stack {
    const struct stack_machine *machine;
    const char *workload, *set, *head, *entries;
    const char *single, *of_model; /* the head for one device, and the entries that it has, too */
    bool computes_more;            /* than the model: again, or the same on several ranks */
};

static inline uint32_t draw(gsl_rng *rng, uint32_t n) { return (uint32_t)gsl_rng_uniform_int(rng, n); }

/* One of those of a strategy; NULL: it is not in the stack. */
static inline const struct example *draw_example(gsl_rng *rng, const char *strategy)
{
    const struct example *of_it[64];
    uint32_t n = 0;
    for (size_t i = 0; i < examples.n && n < DL_COUNT(of_it); i++)
        if (strcmp(examples.items[i].strategy, strategy) == 0) of_it[n++] = &examples.items[i];
    const uint32_t which = n ? draw(rng, n) : 0;
    return draw(rng, 3) || !n ? NULL : of_it[which];
}

static inline const char *head_of(const struct stack_machine *machine, uint32_t devices, uint32_t samples,
                                  struct dl_arena *arena)
{
    return dl_arena_format(arena, "%s,'devices':%u,'global_batch':%u", machine->numbers, devices, samples);
}

/* Most workloads here have no dense blocks, and some devices stream weights: what is refused for it is not worth a
 * stack. */
static inline bool can_be_frozen(const struct drawn_stack *d)
{
    return strstr(d->workload, "transformer") && !strstr(d->workload, "experts") && !strstr(d->workload, "kv_rank") &&
           !strstr(d->workload, "mtp_layers") && !strstr(d->workload, "pattern") && !strstr(d->machine->device, "wse");
}

static inline bool divides_sequences_or_layers(const struct example *e)
{
    return strcmp(e->strategy, "context") == 0 || strcmp(e->strategy, "pipeline") == 0;
}

/* Nor are adapters on grids of tensor ranks, weights on the host where narrow copies of them are on the device, or an
 * encoder and a decoder in parts. */
static inline bool is_refused_beside(const struct example *e, const char *entry, const struct drawn_stack *d,
                                     const char *others)
{
    if (strstr(d->workload, "encoder_layers") && divides_sequences_or_layers(e)) return true;
    if (strstr(d->machine->numbers, "nvfp4") && strstr(entry, "'parameters'")) return true;
    return e->is_of_model ? strstr(others, "'grid'") != NULL : *d->of_model && strstr(entry, "'grid'");
}

static inline struct drawn_stack draw_stack(uint64_t index, struct dl_arena *arena)
{
    gsl_rng *const rng = dl_random_new(21, "stacks of examples", index);
    const uint32_t replicas = 1u << draw(rng, 4), samples = 2u << draw(rng, 3);
    const char *data = DATA, *others = "";
    uint32_t ranks = 1;
    struct drawn_stack d = {.machine = &stack_machines[draw(rng, DL_COUNT(stack_machines))],
                            .workload = kinds[draw(rng, DL_COUNT(kinds))].text,
                            .set = stack_sets[draw(rng, DL_COUNT(stack_sets))],
                            .of_model = ""};
    for (size_t i = 0; i < dl_strategy_count(); i++) {
        const struct example *const e = draw_example(rng, dl_strategy_get(i)->name);
        if (!e || (e->is_of_model && !can_be_frozen(&d))) continue;
        const uint32_t n = e->n[draw(rng, (uint32_t)count_numbers(e))];
        const char *const entry = entry_with(e, n, arena);
        if (is_refused_beside(e, entry, &d, others)) continue;
        if (strcmp(e->strategy, "data") == 0)
            data = entry;
        else
            others = dl_arena_format(arena, "%s,%s", others, entry);
        if (e->is_of_model) d.of_model = entry;
        if (e->counts == RANKS) ranks *= n;
        if (e->workload) d.workload = e->workload;
        d.computes_more = d.computes_more || e->again;
    }
    d.computes_more = d.computes_more || strstr(d.workload, "experts"); /* each tensor rank routes all tokens */
    gsl_rng_free(rng);
    d.entries = dl_arena_format(arena, "%s%s", data, others);
    d.head = head_of(d.machine, ranks * replicas, replicas * samples, arena);
    d.single = head_of(d.machine, 1, 1, arena);
    return d;
}

static inline void open_drawn(struct dl_session *t, const struct drawn_stack *d, const char *head, const char *entries)
{
    const struct training_inputs in = {.system = d->machine->system,
                                       .device = d->machine->device,
                                       .software = QUANTISES,
                                       .workload = d->workload,
                                       .set = d->set};
    training_open_stack(t, in, head, entries);
}

/* What prices may be above a simulation where links are shared: those of copies are as if all devices of a host copied
 * at once, though stages take turns; those of exchanges take the slowest lane in latency and the busiest link, which
 * need not be the same. Where each device has a link of its own, a collective and a message share it: the collective
 * ends later, and what comes after it may be beside less of the next message, at most by all that this takes. */
static inline double priced_too_long_s(const struct stack_machine *machine, const struct dl_training_result *alone)
{
    const double n_steps = alone->end_s / alone->step_s;
    if (machine->rounding < 1e-6) return n_steps * alone->exposed_s[DL_CAUSE_INTERFERENCE];
    return n_steps * (alone->exposed_s[DL_CAUSE_OFFLOAD] + alone->exposed_s[DL_CAUSE_DATA] / 5);
}

static inline void check_played(struct dl_session *t, const struct drawn_stack *d, const char *what)
{
    const struct training_outcome once_more = training_simulate(t, "simgrid");
    const struct dl_training_result all = simulated(t, what), alone = estimated(t, what);
    check_causes(&all, what);
    check_causes(&alone, what);
    ck_assert_msg(once_more.result.step_s == all.step_s, "%s: %.17g s, and again %.17g", what, all.step_s,
                  once_more.result.step_s);
    ck_assert_msg(alone.end_s <= all.end_s * (1 + d->machine->rounding) + priced_too_long_s(d->machine, &alone),
                  "%s: ends after %.12g s alone, %.12g with others", what, alone.end_s, all.end_s);
}

/* False: it is refused. */
static inline bool check_drawn(const struct drawn_stack *d)
{
    char what[1200];
    struct dl_session t, single;
    snprintf(what, sizeof what, "%s: %s: %s: %s", d->machine->device, d->set ? d->set : "", d->head, d->entries);
    open_drawn(&t, d, d->head, d->entries);
    if (t.err.status) {
        ck_assert_msg(t.err.status == DL_IMPOSSIBLE && strstr(t.err.text, "test.json:/"), "%s: %s", what, t.err.text);
        dl_session_close(&t);
        return false;
    }
    open_drawn(&single, d, d->single, d->of_model);
    check_played(&t, d, what);
    estimated(&single, "single");
    check_memory(&t, what);
    check_states(&t, &single, what);
    const double flop = spent_per_sample(&t), least = spent_per_sample(&single);
    ck_assert_msg(flop >= least * (1 - 1e-9) && (d->computes_more || flop <= least * (1 + 1e-9)),
                  "%s: %.12g flop, the model has %.12g", what, flop, least);
    dl_session_close(&t);
    dl_session_close(&single);
    return true;
}

static size_t n_possible;

START_TEST(a_stack_of_examples_is_refused_or_loses_nothing)
{
    struct dl_arena *const arena = dl_arena_new();
    const struct drawn_stack d = draw_stack((uint64_t)_i, arena);
    n_possible += check_drawn(&d);
    dl_arena_free(arena);
}
END_TEST

/* From one number on to another; a third of them must be possible. */
static inline int run_stacks(const char *name, int from, int to)
{
    TCase *const tests = tcase_create(name);
    tcase_add_loop_test(tests, a_stack_of_examples_is_refused_or_loses_nothing, from, to);
    Suite *const suite = suite_create(name);
    suite_add_tcase(suite, tests);
    const int failed = run_without_forking(suite);
    printf("%zu of %d stacks are possible\n", n_possible, to - from);
    return failed || 3 * n_possible < (size_t)(to - from) ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
