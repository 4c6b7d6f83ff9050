/* kept_schedules.c - programs with sequences kept from configurations before are those that are made anew, and what is
 * noted of a sequence is what going through it gives. */
#define _GNU_SOURCE /* fork, pipe, open_memstream */
#include <check.h>

#include "sim/program/program_text.h"
#include "sim/program/repeats.h"
#include "strategies/kept_schedules.h"
#include "tests/unit/drawn_stacks.h"
#include "tests/unit/suite.h"

enum { n_stacks = 120 };
static struct dl_kept_schedules *kept;
static size_t n_kept, n_again;

static char *lower_text(struct dl_session *t, struct dl_kept_schedules *schedules, struct dl_lowered *out)
{
    char *printed;
    size_t bytes;
    dl_lower(&(struct dl_lower_request){.job = &t->job,
                                        .model = &t->model,
                                        .device = &t->device,
                                        .estimator = &t->estimator,
                                        .device_of_rank = t->device_of_rank,
                                        .schedules = schedules},
             t->arena, out, &t->err);
    ck_assert_msg(!t->err.status, "%s", t->err.text);
    const struct dl_step step = dl_lowered_step(out, &t->job.setting);
    FILE *const text = open_memstream(&printed, &bytes);
    dl_step_print(&step, text);
    fclose(text);
    return printed;
}

static void check_noted(const struct dl_program *p)
{
    struct dl_program again = {.n_chunks = p->n_chunks, .sequence = p->sequence, .n_sequence = p->n_sequence};
    struct dl_repeats repeats;
    dl_program_note_sequence(&again);
    ck_assert_uint_eq(p->n_blocks, again.n_blocks);
    ck_assert(memcmp(p->uses, again.uses, p->n_chunks * DL_N_TEMPLATES * sizeof *p->uses) == 0);
    ck_assert(memcmp(p->blocks, again.blocks, p->n_blocks * sizeof *p->blocks) == 0);
    if (p->repeats.period) ck_assert(dl_repeats_find_shifted(p, p->repeats.micros, &repeats));
    if (p->repeats.period) ck_assert(memcmp(&repeats, &p->repeats, sizeof repeats) == 0);
    dl_free(again.uses);
    dl_free(again.blocks);
}

START_TEST(kept_sequences_are_those_made_anew)
{
    struct drawn d;
    struct dl_session t;
    draw_job((uint64_t)_i, &d);
    const struct training_inputs in = {.system = d.machine->system,
                                       .device = d.machine->device,
                                       .software = d.machine->software,
                                       .workload = d.workload,
                                       .strategy = d.strategy,
                                       .set = d.set};
    if (!training_open(&t, &in)) {
        struct dl_lowered first, second, anew;
        char *const texts[] = {lower_text(&t, kept, &first), lower_text(&t, kept, &second),
                               lower_text(&t, NULL, &anew)};
        ck_assert_msg(strcmp(texts[0], texts[2]) == 0 && strcmp(texts[1], texts[2]) == 0, "%s", d.strategy);
        ck_assert_ptr_eq(first.kept, second.kept);
        ck_assert(!anew.kept);
        ck_assert(!first.kept || first.programs[0].sequence == second.programs[0].sequence);
        for (uint32_t i = 0; i < second.schedule.stages; i++) check_noted(&second.programs[i]);
        n_again += first.kept != NULL;
        n_kept++;
        struct dl_lowered *const all[] = {&first, &second, &anew};
        for (size_t i = 0; i < DL_COUNT(all); i++) {
            dl_lowered_release(all[i], t.job.setting.ways[DL_AXIS_PIPELINE]);
            free(texts[i]);
        }
    }
    dl_session_close(&t);
}
END_TEST

START_TEST(many_schedules_are_kept) { ck_assert_uint_gt(3 * n_again, n_kept); }
END_TEST

/* Those that are in use stay, however many there are. */
START_TEST(what_is_taken_stays)
{
    enum { n = 40 };
    struct dl_arena *const arena = dl_arena_new();
    struct dl_kept_schedules *const k = dl_kept_schedules_new();
    struct dl_lowered l[n];
    struct dl_error err = {0};
    const struct dl_software software = {0};
    struct dl_setting s = {.schedule = "1f1b", .chunks = 1, .software = &software};
    for (int axis = 0; axis < DL_N_AXES; axis++) s.ways[axis] = 1;
    s.ways[DL_AXIS_PIPELINE] = 4;
    for (uint32_t i = 0; i < n; i++) {
        s.micros = 4 + i;
        ck_assert_int_eq(dl_kept_schedule_take(k, &s, arena, &l[i], &err), DL_OK);
    }
    for (uint32_t i = 0; i < n; i++) {
        ck_assert_uint_eq(l[i].schedule.n_items[3], 2 * (4 + i));
        ck_assert_uint_eq(l[i].schedule.items[3][2 * i + 7].micro, 3 + i);
        dl_kept_schedule_give_back(l[i].kept);
    }
    dl_kept_schedules_free(k);
    dl_arena_free(arena);
}
END_TEST

START_TEST(groups_of_other_sizes_are_kept_apart)
{
    enum { n = 3 };
    struct dl_arena *const arena = dl_arena_new();
    struct dl_kept_schedules *const k = dl_kept_schedules_new();
    struct dl_lowered l[n];
    struct dl_error err = {0};
    const struct dl_software software = {0};
    struct dl_setting s = {.schedule = "interleaved", .chunks = 2, .micros = 12, .software = &software};
    for (int axis = 0; axis < DL_N_AXES; axis++) s.ways[axis] = 1;
    s.ways[DL_AXIS_PIPELINE] = 2;
    for (uint32_t i = 0; i < n; i++) {
        s.group = 2 + i;
        ck_assert_int_eq(dl_kept_schedule_take(k, &s, arena, &l[i], &err), DL_OK);
        ck_assert_uint_eq(l[i].schedule.items[0][1 + i].chunk, 0); /* the last of the group */
        ck_assert_uint_eq(l[i].schedule.items[0][2 + i].chunk, 1);
    }
    for (uint32_t i = 0; i < n; i++) dl_kept_schedule_give_back(l[i].kept);
    dl_kept_schedules_free(k);
    dl_arena_free(arena);
}
END_TEST

int main(void)
{
    kept = dl_kept_schedules_new();
    TCase *const tests = tcase_create("kept_schedules");
    tcase_add_loop_test(tests, kept_sequences_are_those_made_anew, 0, n_stacks);
    tcase_add_test(tests, many_schedules_are_kept);
    tcase_add_test(tests, what_is_taken_stays);
    tcase_add_test(tests, groups_of_other_sizes_are_kept_apart);
    Suite *const suite = suite_create("kept_schedules");
    suite_add_tcase(suite, tests);
    const int failed = run_without_forking(suite);
    dl_kept_schedules_free(kept);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
