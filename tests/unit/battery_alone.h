/* battery_alone.h - strategies one by one, by their examples: flop, parameters and bytes are conserved, memory is what
 * it must be, no rank waits for ever, and both engines agree where nobody shares a link. */
#ifndef DL_TESTS_BATTERY_ALONE_H
#define DL_TESTS_BATTERY_ALONE_H

#include "tests/unit/battery.h"
#include "tests/unit/strategy_example.h"

static const double exactly = 1e-9;

#define USUAL_SYSTEM IDEAL_SYSTEM("1e10", "1e-6")

static struct examples battery; /* set by battery_alone */
static struct dl_arena *arena;
static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

static void open_example(struct dl_session *t, const struct example *e, uint32_t n, const char *system)
{
    struct step step = {.system = system, .workload = workload_of(e)};
    example_texts(e, n, arena, &step.head, &step.stack);
    open_step(t, &step);
}

/* The same model on one device, with nothing done about it but what says how it is trained. */
static void open_single(struct dl_session *t, const struct example *e)
{
    open_step(t, &(struct step){.system = USUAL_SYSTEM,
                                .workload = workload_of(e),
                                .head = "'precision':'fp16','devices':1,'global_batch':1",
                                .stack = e->is_of_model ? entry_with(e, e->n[0], arena) : ""});
}

/* ---- conservation ---- */

START_TEST(all_ranks_compute_what_the_model_needs)
{
    const struct example *const e = &battery.items[_i];
    struct dl_session single;
    open_single(&single, e);
    estimated(&single, "single");
    for (size_t i = 0; i < count_numbers(e); i++) {
        struct dl_session t;
        open_example(&t, e, e->n[i], USUAL_SYSTEM);
        estimated(&t, e->entry);
        const double again = e->again ? e->again(&t.model, e->n[i]) : 0;
        check_close(e->entry, spent_per_sample(&t), spent_per_sample(&single) + again, exactly);
        check_close(e->entry, t.lowered.model_flop[DL_FLOP_CAUSAL] / t.job.setting.global_batch,
                    single.lowered.model_flop[DL_FLOP_CAUSAL], exactly);
        dl_session_close(&t);
    }
    dl_session_close(&single);
}
END_TEST

START_TEST(all_ranks_hold_the_model)
{
    const struct example *const e = &battery.items[_i];
    struct dl_session single;
    open_single(&single, e);
    for (size_t i = 0; i < count_numbers(e); i++) {
        struct dl_session t;
        open_example(&t, e, e->n[i], USUAL_SYSTEM);
        const double each = t.job.n_devices * dl_model_parameters(&t.model);
        check_close(e->entry, held_bytes(&t).parameters / parameter_bytes, e->held ? e->held(&t.model, e->n[i]) : each,
                    exactly);
        check_states(&t, &single, e->entry);
        dl_session_close(&t);
    }
    dl_session_close(&single);
}
END_TEST

/* On a network so slow that the step is its bytes. */
START_TEST(ports_pass_the_bytes_of_the_formula)
{
    const struct example *const e = &battery.items[_i];
    for (size_t i = 0; i < count_numbers(e); i++) {
        struct dl_session slow, fast;
        open_example(&slow, e, e->n[i], SLOW_SYSTEM);
        open_example(&fast, e, e->n[i], FAST_SYSTEM);
        const double expected = e->sent ? e->sent(&slow.model, e->n[i]) : 0, work_s = simulated(&fast, e->entry).step_s;
        const double bytes = (simulated(&slow, e->entry).step_s - work_s) * SLOW_BYTES_PER_S;
        ck_assert_msg(isnan(expected) || fabs(bytes - expected) <= exactly * expected + work_s * SLOW_BYTES_PER_S,
                      "%s with %u: %.12g bytes, not %.12g", e->entry, e->n[i], bytes, expected);
        dl_session_close(&slow);
        dl_session_close(&fast);
    }
}
END_TEST

/* ---- memory ---- */

START_TEST(memory_is_there_and_spared)
{
    const struct example *const e = &battery.items[_i];
    double last = INFINITY;
    for (size_t i = 0; i < count_numbers(e); i++) {
        struct dl_session t;
        open_example(&t, e, e->n[i], USUAL_SYSTEM);
        check_memory(&t, e->entry);
        ck_assert_msg(!e->spares || fullest_bytes(&t) < last, "%s with %u: %g bytes, and with less of it %g", e->entry,
                      e->n[i], fullest_bytes(&t), last);
        last = fullest_bytes(&t);
        dl_session_close(&t);
    }
}
END_TEST

/* ---- both engines ---- */

static const struct machine {
    const char *system, *device;
    uint64_t iterations; /* without a barrier between them; 0: until they are alike */
    bool alike;          /* nobody shares a link here, unless the example says so */
    const char *set;     /* as --set; NULL: nothing */
} machines[] = {{USUAL_SYSTEM, "a100-80", 0, true, NULL},
                {USUAL_SYSTEM, IDEAL_DEVICE, 3, true, "software.step_barrier=false"},
                {"v100-40gbe", "v100-16", 0, false, "topo.storage={'write_bytes_per_s':1e9,'latency_s':1e-3}"}};

static void check_engines(const struct example *e, uint32_t n, const struct machine *machine)
{
    const char *head, *stack;
    struct dl_session t;
    const struct training_inputs in = {.system = machine->system,
                                       .device = machine->device,
                                       .software = FLASH,
                                       .workload = workload_of(e),
                                       .set = machine->set};
    example_texts(e, n, arena, &head, &stack);
    ck_assert_msg(!training_open_stack(&t, in, head, stack), "%s", t.err.text);
    t.request.iterations = machine->iterations;
    const struct dl_training_result all = simulated(&t, e->entry), alone = estimated(&t, e->entry);
    check_causes(&all, e->entry);
    check_causes(&alone, e->entry);
    ck_assert_msg(alone.step_s <= all.step_s * (1 + exactly), "%s with %u: %.12g s alone, %.12g s with others",
                  e->entry, n, alone.step_s, all.step_s);
    if (machine->alike && !e->shares) check_close(e->entry, alone.step_s, all.step_s, exactly);
    dl_session_close(&t);
}

START_TEST(a_step_ends_by_both_engines)
{
    const struct example *const e = &battery.items[(size_t)_i / DL_COUNT(machines)];
    for (size_t i = 0; i < count_numbers(e); i++) check_engines(e, e->n[i], &machines[(size_t)_i % DL_COUNT(machines)]);
}
END_TEST

static inline TCase *battery_alone(const char *name, struct examples all)
{
    battery = all;
    TCase *const tests = tcase_create(name);
    tcase_add_checked_fixture(tests, begin, end);
    const int n = (int)all.n;
    tcase_add_loop_test(tests, all_ranks_compute_what_the_model_needs, 0, n);
    tcase_add_loop_test(tests, all_ranks_hold_the_model, 0, n);
    tcase_add_loop_test(tests, ports_pass_the_bytes_of_the_formula, 0, n);
    tcase_add_loop_test(tests, memory_is_there_and_spared, 0, n);
    tcase_add_loop_test(tests, a_step_ends_by_both_engines, 0, n * (int)DL_COUNT(machines));
    return tests;
}

#endif
