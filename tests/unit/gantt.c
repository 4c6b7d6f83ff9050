/* gantt.c - schedules as lines of text: the drawings of the textbooks, when stages take equally long and messages no
 * time. */
#define _GNU_SOURCE /* fork, MAP_ANONYMOUS, open_memstream */
#include "sim/draw/gantt.h"
#include "tests/unit/hand_made_step.h"
#include "tests/unit/suite.h"

/* A column is half of the time of a forward. */
static const struct step textbook = {.schedule = "1f1b",
                                     .stages = 4,
                                     .replicas = 1,
                                     .micros = 8,
                                     .chunks = 1,
                                     .forward_s = 1,
                                     .backward_s = 2,
                                     .barrier = true,
                                     .iterations = 1};

/* On one terminal or two, because SimGrid allows only one simulation a process; for free. */
static void draw_both(struct step s, const struct dl_terminal *terminals, size_t n, char **texts)
{
    struct hand_made h;
    make_by_hand(&h, &s);
    h.timeline = dl_timeline_new(
        &(struct dl_timeline_request){.step = dl_lowered_step(&h.lowered, &h.setting), .topology = h.machine.topology});
    const struct dl_training_result result = play_here(&h);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = 0;
        FILE *const to = open_memstream(&texts[i], &bytes);
        dl_gantt_write(&(struct dl_gantt){h.timeline, result.end_s - result.step_s, result.end_s, terminals[i]}, to);
        fclose(to);
    }
    dl_timeline_free(h.timeline);
    release_by_hand(&h);
}

static char *draw(struct step s, struct dl_terminal terminal)
{
    char *text = NULL;
    draw_both(s, &terminal, 1, &text);
    return text;
}

/* Narayanan et al., SC21, figure 3: PipeDream-Flush with 4 stages and 8 micro-batches. */
START_TEST(one_forward_one_backward_is_the_textbook)
{
    char *const text = draw(textbook, (struct dl_terminal){.columns = 12 + 2 * 33});
    ck_assert_str_eq(text, "schedule    a step of 33.0 s\n"
                           "stage 0     F0F1F2F3............B0<<F4B1<<F5B2<<F6B3<<F7B4<<..B5<<..B6<<..B7<<\n"
                           "stage 1     ..F0F1F2........B0<<F3B1<<F4B2<<F5B3<<F6B4<<F7B5<<..B6<<..B7<<....\n"
                           "stage 2     ....F0F1....B0<<F2B1<<F3B2<<F4B3<<F5B4<<F6B5<<F7B6<<..B7<<........\n"
                           "stage 3     ......F0B0<<F1B1<<F2B2<<F3B3<<F4B4<<F5B5<<F6B6<<F7B7<<............\n"
                           "            |---------------|---------------|---------------|-----------------\n"
                           "            0               8.25 s          16.5 s          24.8 s\n"
                           "            F forward   B backward   . bubble\n");
    free(text);
}
END_TEST

/* Huang et al., GPipe, NeurIPS 2019, figure 2. */
START_TEST(gpipe_is_the_textbook)
{
    struct step s = textbook;
    s.schedule = "gpipe";
    s.stages = 3;
    s.micros = 4;
    char *const text = draw(s, (struct dl_terminal){.columns = 12 + 2 * 18});
    ck_assert_str_eq(text, "schedule    a step of 18.0 s\n"
                           "stage 0     F0F1F2F3............B3<<B2<<B1<<B0<<\n"
                           "stage 1     ..F0F1F2F3......B3<<B2<<B1<<B0<<....\n"
                           "stage 2     ....F0F1F2F3B3<<B2<<B1<<B0<<........\n"
                           "            |--------|--------|--------|--------\n"
                           "            0        4.50 s   9.00 s   13.5 s\n"
                           "            F forward   B backward   . bubble\n");
    free(text);
}
END_TEST

static size_t count(const char *text, const char *what)
{
    size_t n = 0;
    for (; (text = strstr(text, what)); text += strlen(what)) n++;
    return n;
}

/* The same columns, whatever the terminal can do. */
START_TEST(colours_are_ended_and_ascii_is_ascii)
{
    const struct dl_terminal terminals[] = {
        {.columns = 100, .colours = _i ? DL_8_COLOURS : DL_256_COLOURS, .utf8 = true}, {.columns = 100}};
    char *texts[2];
    draw_both(textbook, terminals, 2, texts);
    char *const with = texts[0], *const without = texts[1];
    ck_assert_uint_gt(count(with, "\033[4"), 64);
    ck_assert_uint_eq(count(with, "\033[4"), count(with, "\033[0m"));
    ck_assert_uint_eq(count(without, "\033"), 0);
    for (const char *c = without; *c; c++) ck_assert_int_lt((unsigned char)*c, 128);
    ck_assert_uint_eq(count(with, "F7"), count(without, "F7"));
    free(with);
    free(without);
}
END_TEST

START_TEST(collectives_have_a_line_of_their_own)
{
    struct step s = textbook;
    s.replicas = 2;
    s.gradient_bytes = 8 * BYTES_PER_S;
    char *const text = draw(s, (struct dl_terminal){.columns = 112});
    ck_assert_uint_eq(count(text, "allreduce"), 4);
    ck_assert_uint_gt(count(text, "~"), 0);
    ck_assert_uint_eq(count(text, "the first replica"), 1);
    free(text);
}
END_TEST

/* Of many stages every so-manyth; a number that does not fit is left out rather than cut. */
START_TEST(large_schedules_stay_readable)
{
    struct step s = textbook;
    s.stages = 2 * DL_GANTT_STAGES;
    s.micros = 200;
    char *const text = draw(s, (struct dl_terminal){.columns = 100});
    ck_assert_uint_eq(count(text, "\nstage "), DL_GANTT_STAGES);
    ck_assert_uint_eq(count(text, "one of 2 stages"), 1);
    for (const char *line = text; *line; line = strchr(line, '\n') + 1)
        ck_assert_int_le(strchr(line, '\n') - line, 100);
    free(text);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("gantt");
    TCase *const tests = tcase_create("gantt");
    tcase_add_test(tests, one_forward_one_backward_is_the_textbook);
    tcase_add_test(tests, gpipe_is_the_textbook);
    tcase_add_loop_test(tests, colours_are_ended_and_ascii_is_ascii, 0, 2);
    tcase_add_test(tests, collectives_have_a_line_of_their_own);
    tcase_add_test(tests, large_schedules_stay_readable);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
