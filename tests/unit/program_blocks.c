/* program_blocks.c - who owns the blocks of programs: a position's are the same ones in all programs that it is in. */
#define _GNU_SOURCE /* fork, pipe */
#include <check.h>
#include <string.h>

#include "sim/program/segments.h"
#include "tests/training_runs.h"
#include "tests/unit/suite.h"

#define STRATEGY(schedule, chunks)                                                                                     \
    "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','global_batch':8,'stack':[{'name':'pipeline',"   \
    "'ways':4,'schedule':'" schedule "'" chunks "}]}"

static const char *const strategies[] = {STRATEGY("1f1b", ""), STRATEGY("interleaved", ",'chunks':2"),
                                         STRATEGY("dualpipe", "")};

static void open(struct dl_session *s, const char *strategy)
{
    training_open(s, &(struct training_inputs){
                         .system = IDEAL_SYSTEM("1e9", "1e-6"),
                         .device = IDEAL_DEVICE,
                         .software = "ideal",
                         .workload = "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':8,"
                                     "'hidden':64,'heads':2,'seq':16,'vocab':32}",
                         .strategy = strategy});
}

/* What is added to a block later, even if its instructions move elsewhere in memory, is in every program that has it.
 */
START_TEST(a_block_that_changes_does_so_in_all_programs)
{
    enum { n_added = 100 };
    const struct dl_instruction more = {.kind = DL_DO, .name = "more", .cause = DL_CAUSE_COMPUTE, .device_s = 1};
    struct dl_session s;
    open(&s, strategies[_i]);
    struct dl_lowered *const l = &s.lowered;
    for (uint32_t position = 0; position < l->n_positions; position++) {
        struct dl_template *const block = &l->positions[position].items[DL_ITEM_F];
        const size_t n_before = block->n_instructions;
        for (int i = 0; i < n_added; i++) dl_template_add(block, &more);
        dl_template_fuse(block, l->calls, &l->plan);
        uint32_t n_found = 0;
        for (uint32_t stage = 0; stage < l->schedule.stages; stage++)
            for (uint32_t chunk = 0; chunk < l->programs[stage].n_chunks; chunk++) {
                const struct dl_program *const p = &l->programs[stage];
                if (l->schedule.position_of[stage * p->n_chunks + chunk] != position) continue;
                const struct dl_template *const there = p->items[chunk * DL_N_TEMPLATES + DL_ITEM_F];
                ck_assert_uint_eq(there->n_instructions, n_before + n_added);
                ck_assert_str_eq(there->instructions[n_before + n_added - 1].name, "more");
                ck_assert_uint_eq(there->planned.items[there->planned.n - 1].end, n_before + n_added);
                n_found++;
            }
        ck_assert_uint_ge(n_found, 1);
    }
    dl_session_close(&s);
}
END_TEST

/* Blocks that a program made for itself go with it, others stay. */
START_TEST(a_program_releases_only_its_own_blocks)
{
    const struct dl_instruction one = {.kind = DL_DO, .name = "one", .cause = DL_CAUSE_COMPUTE, .device_s = 1};
    struct dl_program owner = {.n_chunks = 2}, guest = {.n_chunks = 2};
    dl_program_make_own_items(&owner);
    dl_program_make_items(&guest);
    for (uint32_t i = 0; i < dl_program_n_items(&owner); i++) {
        dl_template_add(owner.items[i], &one);
        guest.items[i] = owner.items[i];
    }
    dl_program_release(&guest);
    for (uint32_t i = 0; i < dl_program_n_items(&owner); i++) {
        ck_assert_uint_eq(owner.items[i]->n_instructions, 1);
        ck_assert_str_eq(owner.items[i]->instructions[0].name, "one");
    }
    dl_program_release(&owner);
    ck_assert_ptr_null(owner.own);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("program_blocks");
    TCase *const tests = tcase_create("program_blocks");
    tcase_add_loop_test(tests, a_block_that_changes_does_so_in_all_programs, 0, (int)DL_COUNT(strategies));
    tcase_add_test(tests, a_program_releases_only_its_own_blocks);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
