/* training_memory_walk.c - memory of a stage in a second way: what is held is counted anew at every item. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/training_memory.h"

/* What a chunk holds of a micro-batch when items [0, end) are done. */
static double held_of(const struct dl_schedule *schedule, uint32_t stage, uint32_t end, const struct dl_item *of)
{
    const struct dl_position *const p =
        &training.lowered.positions[schedule->position_of[stage * schedule->chunks + of->chunk]];
    bool done[DL_ITEM_W + 1] = {false};
    double saved = 0, for_weights = 0;
    for (uint32_t i = 0; i < end; i++) {
        const struct dl_item *const item = &schedule->items[stage][i];
        if (item->micro == of->micro && item->chunk == of->chunk) done[item->kind] = true;
    }
    for (size_t i = p->first_layer; i < p->end_layer; i++) {
        saved += saved_bytes(&training, i);
        for_weights += allocated(&training, DL_TENSOR_OPERANDS, i);
    }
    const bool splits = schedule->splits_backward;
    return !done[DL_ITEM_F] ? 0 : !done[DL_ITEM_B] ? saved : splits && !done[DL_ITEM_W] ? for_weights : 0;
}

/* The most that is held between two items. */
static double most_between_items(uint32_t stage)
{
    const struct dl_schedule *const schedule = &training.lowered.schedule;
    double most = 0;
    for (uint32_t end = 0; end <= schedule->n_items[stage]; end++) {
        double sum = 0;
        for (uint32_t i = 0; i < schedule->n_items[stage]; i++)
            if (schedule->items[stage][i].kind == DL_ITEM_F)
                sum += held_of(schedule, stage, end, &schedule->items[stage][i]);
        most = fmax(most, sum);
    }
    return most;
}

/* The fullest moment is inside an item: it has all that is held before it, and the work of one layer. */
START_TEST(every_schedule_holds_what_a_recount_says)
{
    static const char *const recomputes[] = {"none", "selective", "full"};
    const struct dl_schedule_kind *const kind = dl_schedule_get((size_t)_i / 3);
    char stack[200], head[100];
    snprintf(head, sizeof head, "'global_batch':16,'microbatch':2,'recompute':'%s'", recomputes[_i % 3]);
    snprintf(stack, sizeof stack, "{'name':'pipeline','ways':4,'schedule':'%s','chunks':%u}", kind->name,
             kind->min_chunks);
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, head, stack);
    double most_work = 0;
    for (size_t i = 0; i < training.model.n_layers; i++)
        most_work = fmax(most_work, allocated(&training, DL_TENSOR_RECOMPUTED, i) + at_work_bytes_of(&training, i));
    for (uint32_t stage = 0; stage < 4; stage++) {
        const struct dl_memory_use *const u = &training.memory[stage];
        const double most = most_between_items(stage), moving = u->activations + u->workspace;
        ck_assert_msg(moving >= most * (1 - 1e-12) && moving <= (most + most_work) * (1 + 1e-12),
                      "%s, stage %u: %g bytes come and go, but between items %g, and a layer needs %g", kind->name,
                      stage, moving, most, most_work);
    }
    dl_session_close(&training);
}
END_TEST

#define PASSING_GRADIENTS "{'schema':'dlsim/software/1','source':'a test','gradient_bytes':2,'gradients_persist':false}"

static uint32_t n_seen;

static void see(void *user, uint32_t stage, const struct dl_sequenced *item, const struct dl_memory_use *fullest,
                const struct dl_memory_use *left)
{
    (void)user, (void)stage, (void)item, (void)fullest, (void)left;
    n_seen++;
}

/* Whoever looks sees every item; nobody looks: what repeats itself is gone through once. */
START_TEST(items_that_repeat_what_was_hold_nothing_else)
{
    const struct dl_schedule_kind *const kind = dl_schedule_get((size_t)_i / 2);
    const char *const software = _i % 2 ? PASSING_GRADIENTS : PLAIN_SOFTWARE;
    char stack[200];
    snprintf(stack, sizeof stack, "{'name':'pipeline','ways':4,'schedule':'%s','chunks':%u}", kind->name,
             kind->min_chunks);
    open_strategy(SMALL_GPT, software, "'global_batch':128,'microbatch':2", stack);
    struct dl_memory_use use[4];
    uint32_t n_items = 0;
    n_seen = 0;
    dl_memory_watch_programs(training.lowered.programs, 4, &training.software, use,
                             &(struct dl_memory_watch){.see = see});
    for (uint32_t stage = 0; stage < 4; stage++) {
        n_items += training.lowered.programs[stage].n_sequence + 1; /* and the end */
        ck_assert_msg(memcmp(&use[stage], &training.memory[stage], sizeof use[stage]) == 0, "%s, stage %u", kind->name,
                      stage);
    }
    ck_assert_uint_eq(n_seen, n_items);
    dl_session_close(&training);
}
END_TEST

/* Of one micro-batch: from layer to layer there are more gradients and fewer activations. */
START_TEST(gradients_that_come_and_go_spare_memory)
{
    open_strategy(SMALL_GPT, PLAIN_SOFTWARE, "'global_batch':2,'microbatch':2", "");
    const struct dl_memory_use persist = training.memory[0];
    check_equal("gradients", persist.gradients, 2 * dl_model_parameters(&training.model));
    dl_session_close(&training);
    open_strategy(SMALL_GPT, PASSING_GRADIENTS, "'global_batch':2,'microbatch':2", "");
    double kept = 0, gradients = 0, most = 0;
    for (size_t i = 0; i < training.model.n_layers; i++) kept += saved_bytes(&training, i);
    for (size_t i = training.model.n_layers; i-- > 0;) {
        gradients += allocated(&training, DL_TENSOR_GRADIENTS, i);
        most = fmax(most, kept + gradients + at_work_bytes_of(&training, i));
        kept -= saved_bytes(&training, i);
    }
    check_equal("peak", training.memory[0].peak, persist.parameters + persist.optimizer + most);
    dl_session_close(&training);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("training_memory_walk");
    tcase_add_loop_test(tests, every_schedule_holds_what_a_recount_says, 0, 3 * (int)dl_schedule_count());
    tcase_add_loop_test(tests, items_that_repeat_what_was_hold_nothing_else, 0, 2 * (int)dl_schedule_count());
    tcase_add_test(tests, gradients_that_come_and_go_spare_memory);
    Suite *const suite = suite_create("training_memory_walk");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
