/* training_check.c - programs and schedules that cannot be played are refused before the run, with who stands where. */
#define _GNU_SOURCE /* fork, MAP_ANONYMOUS */
#include "tests/unit/hand_made_step.h"

static const struct step whole = {.schedule = "1f1b",
                                  .stages = 2,
                                  .replicas = 2,
                                  .micros = 3,
                                  .chunks = 1,
                                  .forward_s = 1,
                                  .backward_s = 2,
                                  .gradient_bytes = BYTES_PER_S,
                                  .barrier = true};

static void swap(struct dl_item *a, struct dl_item *b)
{
    const struct dl_item first = *a;
    *a = *b;
    *b = first;
}

static void wait_for_nothing(struct hand_made *h)
{
    struct dl_template *const end = &h->lowered.programs[1].end;
    end->instructions[0].kind = DL_WAIT;
    end->instructions[0].call = 1;
    fuse_by_hand(end, h->lowered.calls);
}

static void start_what_is_not_there(struct hand_made *h) { h->lowered.programs[0].end.planned.items[0].call = 7; }

/* The first backward of stage 0 before its last forward that is needed for it: 1f1b of two stages is F F B F B B. */
static void wait_in_a_circle(struct hand_made *h)
{
    struct dl_item *const items = h->lowered.schedule.items[0];
    items[0].micro = 1;
    items[1].micro = 0;
    swap(&items[1], &items[2]);
}

static void leave_out_the_last(struct hand_made *h) { h->lowered.schedule.n_items[1]--; }

static void do_one_twice(struct hand_made *h) { h->lowered.schedule.items[1][2].micro = 0; }

static void take_another_chunk(struct hand_made *h) { h->lowered.schedule.items[1][2].chunk = 1; }

static void go_back_first(struct hand_made *h)
{
    swap(&h->lowered.schedule.items[1][0], &h->lowered.schedule.items[1][1]);
}

static void go_with_nothing(struct hand_made *h)
{
    h->lowered.schedule.items[0][h->lowered.schedule.n_items[0] - 1].with_next = true;
}

static void meet_nobody(struct hand_made *h)
{
    h->lowered.calls[0].channel = DL_CHANNEL_STAGES;
    h->lowered.calls[0].members = (struct dl_members){.digits = DL_ALONG_PIPELINE, .is_pair = true, .pair = {0, 1}};
}

static void meet_with_less(struct hand_made *h)
{
    meet_nobody(h);
    h->lowered.calls[1].channel = DL_CHANNEL_STAGES;
    h->lowered.calls[1].members = h->lowered.calls[0].members;
    h->lowered.calls[1].bytes = 5;
}

static const struct {
    void (*spoil)(struct hand_made *h);
    const char *message;
} cases[] = {
    {wait_for_nothing, "run: stage 1 waits for exchange 1, which it has not started"},
    {start_what_is_not_there, "run: stage 0 starts exchange 7, but there are only 2"},
    {meet_nobody, "run: stage 0 comes to exchange 0 with stage 1, which does not come to it"},
    {meet_with_less, "run: stage 0 exchanges 1000000000 bytes with stage 1, which exchanges 5"},
    {wait_in_a_circle,
     "run: stage 0 waits at its item 1 for the backward of micro-batch 0 from stage 1, which waits at "
     "its item 0"},
    {leave_out_the_last, "run: stage 1 has no item for the backward of micro-batch 2 through position 1 of the model"},
    {do_one_twice, "run: item 2 of stage 1 is the forward of micro-batch 0 through chunk 0 once more"},
    {take_another_chunk,
     "run: item 2 of stage 1 is the forward of micro-batch 1 through chunk 1, which it does not hold"},
    {go_back_first, "run: stage 1 does the backward of micro-batch 0 through chunk 0 before its forward"},
    {go_with_nothing, "run: the last item of stage 0, 5, goes with one after it"},
};

START_TEST(what_cannot_be_played_is_refused)
{
    struct hand_made h;
    make_by_hand(&h, &whole);
    cases[_i].spoil(&h);
    const struct dl_training_result result = play_here(&h);
    ck_assert(!result.complete);
    ck_assert_int_eq(h.err.status, DL_STALLED);
    ck_assert_str_eq(h.err.text, cases[_i].message);
    release_by_hand(&h);
}
END_TEST

/* The link fails on which stage 1 of replica 0 sends its gradients back; then the other replica waits in vain too. */
START_TEST(who_waits_for_ever_is_told)
{
    struct step s = whole;
    s.send_bytes = BYTES_PER_S;
    s.scenario = "{'schema':'dlsim/scenario/1','source':'a test','links':[{'link':'node2.device0 -> switch','at_s':0,"
                 "'bandwidth_fraction':0}]}";
    struct hand_made h;
    make_by_hand(&h, &s);
    ck_assert(!play_here(&h).complete);
    ck_assert_int_eq(h.err.status, DL_STALLED);
    ck_assert_str_eq(h.err.text,
                     "run: 4 of 4 lockstep groups wait for ever: stage 0 of replica 0 for the input of its item 2, "
                     "stage 1 of replica 0 for the input of its item 4, stage 0 of replica 1 for its "
                     "exchange 0, stage 1 of replica 1 for its exchange 0");
    release_by_hand(&h);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("check");
    tcase_add_loop_test(tests, what_cannot_be_played_is_refused, 0, (int)DL_COUNT(cases));
    tcase_add_test(tests, who_waits_for_ever_is_told);
    return run_steps(tests, "training_check");
}
