/* program_memory.c - memory by hand-written programs: what they allocate and free, against sums by hand; and lines that
 * no program can have. */
#define _GNU_SOURCE /* strdup */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/memory/memory_use.h"
#include "sim/program/program_text.h"
#include "tests/unit/suite.h"

#define ONE_STAGE "dlsim program 1\ndigit stage values 1 stride 1 stages\nsends asynchronous\nstage 0 tags 0\n"
#define ITEM(kind, micro, block) "item " kind " micro " micro " chunk 0 block " block "\n"
#define TWO_MICROS                                                                                                     \
    ITEM("forward", "0", "0")                                                                                          \
    ITEM("forward", "1", "0") ITEM("backward", "0", "1") ITEM("backward", "1", "1")
#define SAVES "block 0\nalloc saved layer 0 bytes 10\n"
#define BACKWARD "block 1\nalloc gradients layer 0 bytes 7\nfree saved layer 0\n"

static const struct {
    const char *what, *program;
    struct dl_memory_use use; /* what is not given is 0 */
} cases[] = {
    {"nothing", ONE_STAGE TWO_MICROS, {.peak = 0}},
    {"what is there before the first step stays",
     ONE_STAGE "begin\nalloc parameters layer 0 bytes 3\nalloc optimizer layer 0 bytes 9\n" TWO_MICROS,
     {.parameters = 3, .optimizer = 9}},
    {"each micro-batch has its activations; the first backward makes the gradients",
     ONE_STAGE SAVES BACKWARD TWO_MICROS,
     {.activations = 20, .gradients = 7}},
    {"gradients that the end frees are made anew, and what it needs is there beside them",
     ONE_STAGE SAVES BACKWARD
     "end\nalloc updating layer 0 bytes 50\nfree updating layer 0\nfree gradients layer 0\n" TWO_MICROS,
     {.gradients = 7, .workspace = 50}},
    {"gradients that are there are not made",
     ONE_STAGE "begin\nalloc gradients layer 0 bytes 7\n" SAVES BACKWARD TWO_MICROS,
     {.activations = 20, .gradients = 7}},
    {"the fullest moment is inside a block",
     ONE_STAGE "block 0\nalloc gathered layer 0 bytes 100\nalloc gathered layer 1 bytes 60\nfree gathered layer 0\n"
               "alloc saved layer 0 bytes 10\nfree gathered layer 1\nblock 1\nfree saved layer 0\n" TWO_MICROS,
     {.activations = 10, .buffers = 160}},
    {"what is there grows to what is asked for, and no further",
     ONE_STAGE "begin\nalloc unreduced layer 0 bytes 5\nalloc unreduced layer 0 bytes 8\nalloc unreduced layer 0 "
               "bytes 6\n",
     {.buffers = 8}},
    {"to free what is not there does nothing",
     ONE_STAGE "block 0\nfree gathered layer 3\nfree saved layer 1\nalloc saved layer 0 bytes 10\nblock 1\nfree saved "
               "layer 0\nfree saved layer 2\n" TWO_MICROS,
     {.activations = 20}},
    {"the host is apart",
     ONE_STAGE "begin\nalloc host_optimizer layer 0 bytes 30\nblock 0\nalloc host_saved layer 0 bytes 4\nblock 1\n"
               "free host_saved layer 0\n" TWO_MICROS,
     {.on_host = 38}},
};

static void check_bytes(const char *what, const char *part, double is, double should)
{
    ck_assert_msg(is == should, "%s: %s %.17g, not %.17g", what, part, is, should);
}

static enum dl_status read_text(const char *program, struct dl_arena *arena, struct dl_read_step *out,
                                struct dl_error *err)
{
    char *const text = strdup(program);
    const enum dl_status status = dl_step_read(text, "test.txt", arena, out, err);
    free(text);
    return status;
}

START_TEST(the_peak_is_the_sum_by_hand)
{
    struct dl_arena *const arena = dl_arena_new();
    const struct dl_software software = {0};
    const struct dl_memory_use *const should = &cases[_i].use;
    struct dl_memory_use use;
    struct dl_read_step read;
    struct dl_error err = {0};
    ck_assert_msg(!read_text(cases[_i].program, arena, &read, &err), "%s: %s", cases[_i].what, err.text);
    dl_memory_of_programs(read.programs, 1, &software, &use);
    check_bytes(cases[_i].what, "parameters", use.parameters, should->parameters);
    check_bytes(cases[_i].what, "gradients", use.gradients, should->gradients);
    check_bytes(cases[_i].what, "optimizer", use.optimizer, should->optimizer);
    check_bytes(cases[_i].what, "activations", use.activations, should->activations);
    check_bytes(cases[_i].what, "buffers", use.buffers, should->buffers);
    check_bytes(cases[_i].what, "workspace", use.workspace, should->workspace);
    check_bytes(cases[_i].what, "on the host", use.on_host, should->on_host);
    check_bytes(cases[_i].what, "peak", use.peak,
                should->parameters + should->gradients + should->optimizer + should->activations + should->buffers +
                    should->workspace);
    dl_read_step_release(&read);
    dl_arena_free(arena);
}
END_TEST

static const struct {
    const char *program, *message;
} refused[] = {
    {ONE_STAGE "alloc saved layer 0 bytes 1\n", "test.txt:5: 'alloc' must be in a block"},
    {ONE_STAGE "begin\nfree parameters layer 0\n", "test.txt:6: nothing is there to free before the first step"},
    {ONE_STAGE "begin\nwork cause compute device_s 1 name a\n", "test.txt:6: 'work' must be in a block"},
    {ONE_STAGE "block 0\nalloc savings layer 0 bytes 1\n", "test.txt:6: must be one of parameters, frozen, gradients"},
    {ONE_STAGE "block 0\nalloc saved bytes 1\n", "test.txt:6: needs 'layer'"},
    {ONE_STAGE "block 0\nalloc saved layer 131072 bytes 1\n", "test.txt:6: '131072' is not a number"},
    {ONE_STAGE "block 0\nfree saved layer 0 bytes 1\n", "test.txt:6: 'bytes' means nothing here"},
};

START_TEST(what_no_program_can_have_is_refused_by_its_line)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_read_step read;
    struct dl_error err = {0};
    ck_assert(read_text(refused[_i].program, arena, &read, &err));
    ck_assert_msg(strstr(err.text, refused[_i].message), "'%s', not '%s'", err.text, refused[_i].message);
    dl_read_step_release(&read);
    dl_arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("program_memory");
    TCase *const tests = tcase_create("program_memory");
    tcase_add_loop_test(tests, the_peak_is_the_sum_by_hand, 0, DL_COUNT(cases));
    tcase_add_loop_test(tests, what_no_program_can_have_is_refused_by_its_line, 0, DL_COUNT(refused));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
