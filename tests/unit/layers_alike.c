/* layers_alike.c - layers that are alike go through a stack once: programs, memory, sums and draws are those of a stack
 * that every layer goes through by itself; to rounding, since sums of a layer are multiplied. */
#define _GNU_SOURCE /* fork, pipe, open_memstream */
#include <check.h>
#include <math.h>

#include "sim/program/program_text.h"
#include "tests/unit/drawn_stacks.h"
#include "tests/unit/suite.h"

enum { n_stacks = 240 };
static size_t n_opened, n_with_repeats, n_other_orders;

struct made {
    struct dl_lowered lowered;
    char *text;
    size_t bytes;
};

static void make(struct dl_session *t, bool layer_by_layer, struct made *out)
{
    dl_lower(&(struct dl_lower_request){.job = &t->job,
                                        .model = &t->model,
                                        .device = &t->device,
                                        .estimator = &t->estimator,
                                        .device_of_rank = t->device_of_rank,
                                        .layer_by_layer = layer_by_layer},
             t->arena, &out->lowered, &t->err);
    ck_assert_msg(!t->err.status, "%s", t->err.text);
    const struct dl_step step = dl_lowered_step(&out->lowered, &t->job.setting);
    FILE *const text = open_memstream(&out->text, &out->bytes);
    dl_step_print(&step, text);
    fclose(text);
}

static void release(struct made *m, const struct dl_session *t)
{
    dl_lowered_release(&m->lowered, t->job.setting.ways[DL_AXIS_PIPELINE]);
    free(m->text);
}

static void check_numbers(const char *stack, const char *what, const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(fabs(a[i] - b[i]) <= 1e-12 * fabs(b[i]), "%s: %s differ: %.17g became %.17g", stack, what, b[i],
                      a[i]);
}

static void compare_sums(const char *what, const struct dl_lowered *a, const struct dl_lowered *b)
{
    check_numbers(what, "clocks", &a->clock, &b->clock, 1);
    check_numbers(what, "draws", (const double *)a->draw, (const double *)b->draw, sizeof a->draw / (sizeof(double)));
    check_numbers(what, "grounds", a->by_ground, b->by_ground, DL_N_GROUNDS);
    for (uint32_t i = 0; i < a->n_positions; i++)
        for (int kind = 0; kind < DL_N_TEMPLATES; kind++)
            check_numbers(what, "totals", (const double *)&a->positions[i].items[kind].total,
                          (const double *)&b->positions[i].items[kind].total,
                          sizeof(struct dl_segment) / sizeof(double)); /* it has nothing else */
}

/* Layers that are alike are announced where they are written once. */
static void drop_announcements(char *text)
{
    static const char word[] = "\nrepeated ";
    for (char *at = text; (at = strstr(at, word));) {
        const char *const end = strchr(at + 1, '\n');
        memmove(at, end, strlen(end) + 1);
    }
}

/* The clock of a device depends on sums, and all times on that: numbers are the same to rounding. */
static bool is_same_word(const char *a, const char *b, size_t n_a, size_t n_b)
{
    if (n_a == n_b && memcmp(a, b, n_a) == 0) return true;
    char *end_a, *end_b;
    const double x = strtod(a, &end_a), y = strtod(b, &end_b);
    return end_a == a + n_a && end_b == b + n_b && fabs(x - y) <= 1e-12 * fabs(y);
}

/* Where programs differ, what follows in both. */
static void compare_texts(const char *what, const char *a, const char *b)
{
    while (*a && *b) {
        const size_t n_a = strcspn(a, " \n"), n_b = strcspn(b, " \n");
        ck_assert_msg(is_same_word(a, b, n_a, n_b) && a[n_a] == b[n_b], "%s: '%.100s' became '%.100s'", what, b, a);
        a += n_a + (a[n_a] != 0);
        b += n_b + (b[n_b] != 0);
    }
    ck_assert_msg(*a == *b, "%s: '%.100s' became '%.100s'", what, b, a);
}

/* Some schedules go by the sums of items, of which two may be as long but for rounding. */
static bool has_same_order(const struct dl_schedule *a, const struct dl_schedule *b)
{
    for (uint32_t stage = 0; stage < a->stages; stage++)
        for (uint32_t i = 0; i < a->n_items[stage]; i++) {
            const struct dl_item *const x = &a->items[stage][i], *const y = &b->items[stage][i];
            if (x->kind != y->kind || x->micro != y->micro || x->chunk != y->chunk) return false;
        }
    return true;
}

/* How many layers were written again; 0 as well if the job is refused. */
static size_t compare(const char *what, const struct training_inputs *in)
{
    struct dl_session t;
    struct made once = {0}, each = {0};
    if (training_open(&t, in)) {
        dl_session_close(&t);
        return 0;
    }
    make(&t, false, &once);
    make(&t, true, &each);
    const size_t n = once.lowered.n_layers_again;
    ck_assert_uint_eq(each.lowered.n_layers_again, 0);
    drop_announcements(once.text);
    if (has_same_order(&once.lowered.schedule, &each.lowered.schedule))
        compare_texts(what, once.text, each.text);
    else
        n_other_orders++;
    compare_sums(what, &once.lowered, &each.lowered);
    n_opened++;
    n_with_repeats += n > 0;
    release(&once, &t);
    release(&each, &t);
    dl_session_close(&t);
    return n;
}

START_TEST(random_stacks_are_lowered_as_layer_by_layer)
{
    struct drawn d;
    draw_job((uint64_t)_i, &d);
    compare(d.strategy, &(struct training_inputs){.system = d.machine->system,
                                                  .device = d.machine->device,
                                                  .software = d.machine->software,
                                                  .workload = d.workload,
                                                  .strategy = d.strategy,
                                                  .set = d.set});
}
END_TEST

START_TEST(many_stacks_repeat_layers)
{
    ck_assert_uint_gt(4 * n_with_repeats, n_opened);
    ck_assert_uint_lt(50 * n_other_orders, n_opened);
}
END_TEST

#define SIXTEEN_BLOCKS                                                                                                 \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':16,'hidden':512,'heads':8,"          \
    "'seq':128,'vocab':1024,'experts':4,'top_k':2,'dense_layers':3}"

static size_t of_experts(const char *entry)
{
    char strategy[400];
    snprintf(strategy, sizeof strategy,
             "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','devices':4,'global_batch':8,"
             "'recompute':'full','stack':[{'name':'data'},{'name':'expert','ways':4%s}]}",
             entry);
    return compare(strategy, &(struct training_inputs){.system = IDEAL_SYSTEM("1e10", "1e-6"),
                                                       .device = IDEAL_DEVICE,
                                                       .software = "ideal",
                                                       .workload = SIXTEEN_BLOCKS,
                                                       .strategy = strategy});
}

/* Forward, backward, and what is held. */
enum { n_passes = 3 };

/* Of 3 blocks without experts and 13 with them, the first of each kind goes through the stack, in all passes. */
START_TEST(each_kind_of_block_is_lowered_once) { ck_assert_uint_eq(of_experts(""), n_passes * (3 - 1 + 13 - 1)); }
END_TEST

/* Each with experts has a draw of its own. */
START_TEST(layers_with_draws_are_not_repeated) { ck_assert_uint_eq(of_experts(",'skew':0.3"), n_passes * (3 - 1)); }
END_TEST

/* Of all instructions of the step, those that are kept and those that are executed, for so many blocks. */
static void count_instructions(int blocks, size_t *kept, size_t *executed)
{
    char workload[300];
    struct dl_session t;
    struct made once = {0};
    snprintf(workload, sizeof workload,
             "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':%d,'hidden':512,'heads':8,"
             "'seq':128,'vocab':1024}",
             blocks);
    ck_assert(!training_open(
        &t, &(struct training_inputs){.system = IDEAL_SYSTEM("1e10", "1e-6"),
                                      .device = IDEAL_DEVICE,
                                      .software = "ideal",
                                      .workload = workload,
                                      .strategy = "{'schema':'dlsim/strategy/1','source':'a test','workload':'none',"
                                                  "'devices':2,'global_batch':8,'recompute':'full',"
                                                  "'stack':[{'name':'tensor','ways':2},{'name':'data'}]}"}));
    make(&t, false, &once);
    *kept = *executed = 0;
    for (int kind = 0; kind < DL_N_TEMPLATES; kind++) {
        *kept += once.lowered.positions[0].items[kind].n_instructions;
        *executed += once.lowered.positions[0].items[kind].length;
    }
    release(&once, &t);
    dl_session_close(&t);
}

/* However many there are: what a layer costs is added up once. */
START_TEST(layers_that_are_alike_are_kept_once)
{
    size_t kept[2], executed[2];
    count_instructions(12, &kept[0], &executed[0]);
    count_instructions(96, &kept[1], &executed[1]);
    ck_assert_uint_eq(kept[0], kept[1]);
    ck_assert_uint_gt(executed[1], 7 * executed[0]);
}
END_TEST

#define TWO_A_POSITION                                                                                                 \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':16,'hidden':512,'heads':8,"          \
    "'seq':128,'vocab':1024}"

/* Those that are like the first of a position of a pipeline of 8 stages with two blocks each. */
static uint32_t count_positions_alike(const char *data_option, uint32_t first, size_t *n_layers_again)
{
    char strategy[400];
    struct dl_session t;
    struct made once = {0};
    uint32_t n = 0;
    snprintf(strategy, sizeof strategy,
             "{'schema':'dlsim/strategy/1','source':'a test','workload':'none','devices':16,'global_batch':64,"
             "'stack':[{'name':'pipeline','ways':8},{'name':'data'%s}]}",
             data_option);
    const struct training_inputs in = {.system = IDEAL_SYSTEM("1e10", "1e-6"),
                                       .device = IDEAL_DEVICE,
                                       .software = "ideal",
                                       .workload = TWO_A_POSITION,
                                       .strategy = strategy};
    *n_layers_again = compare(strategy, &in);
    ck_assert(!training_open(&t, &in));
    make(&t, false, &once);
    const struct dl_position *const all = once.lowered.positions;
    for (uint32_t i = 0; i < once.lowered.n_positions; i++)
        n += all[i].items[DL_ITEM_B].like == &all[first].items[DL_ITEM_B];
    release(&once, &t);
    dl_session_close(&t);
    return n;
}

/* All between the one with the embedding and the one with the head. */
START_TEST(positions_that_are_alike_share_their_templates)
{
    size_t n_layers_again;
    ck_assert_uint_eq(count_positions_alike("", 1, &n_layers_again), 8 - 2 - 1);
    ck_assert_uint_eq(n_layers_again, n_passes * (16 - 1)); /* the first of a position, too */
}
END_TEST

/* What replicas start has a number of its own. */
START_TEST(positions_with_calls_of_replicas_share_nothing)
{
    size_t n_layers_again;
    ck_assert_uint_eq(count_positions_alike(",'overlap':true", 1, &n_layers_again), 0);
    ck_assert_uint_eq(n_layers_again, n_passes * (16 - 1)); /* but in the last micro-batch */
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("layers_alike");
    tcase_add_loop_test(tests, random_stacks_are_lowered_as_layer_by_layer, 0, n_stacks);
    tcase_add_test(tests, many_stacks_repeat_layers);
    tcase_add_test(tests, each_kind_of_block_is_lowered_once);
    tcase_add_test(tests, layers_with_draws_are_not_repeated);
    tcase_add_test(tests, layers_that_are_alike_are_kept_once);
    tcase_add_test(tests, positions_that_are_alike_share_their_templates);
    tcase_add_test(tests, positions_with_calls_of_replicas_share_nothing);
    Suite *const suite = suite_create("layers_alike");
    suite_add_tcase(suite, tests);
    return run_without_forking(suite);
}
