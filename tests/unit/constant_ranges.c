/* constant_ranges.c - the intervals of constants hold nothing that their files could not say. */
#include <string.h>

#include "sim/core/files.h"
#include "sim/study/figures.h"
#include "tests/unit/suite.h"

static struct dl_arena *arena;

static void begin(void) { arena = dl_arena_new(); }
static void end(void) { dl_arena_free(arena); }

/* In the first precision that the device has. */
static enum dl_status open_single(struct dl_session *s, struct dl_session_request request)
{
    static const char *const precisions[] = {"precision=\"bf16\"", "precision=\"fp16\"", "precision=\"fp32\""};
    request.strategy.name = "single";
    request.engine = "analytic";
    for (size_t i = 0; i < DL_COUNT(precisions); i++) {
        if (i) dl_session_close(s);
        request.set.items[0] = precisions[i];
        request.set.n = request.set.n ? request.set.n : 1;
        if (!dl_session_open(s, &request)) return DL_OK;
    }
    return s->err.status;
}

/* What --set may write is what the file may say. */
static void check_end(struct dl_session_request request, const struct dl_effect *e, double value)
{
    struct dl_session s;
    request.set = (struct dl_texts){{NULL, dl_arena_format(arena, "%s=%.17g", e->path, value)}, 2};
    ck_assert_msg(!open_single(&s, request), "%s", s.err.text);
    dl_session_close(&s);
}

/* Of a fraction the end is known; of those whose interval was cut, both ends are tried. How many these are. */
static size_t check(struct dl_session_request request)
{
    struct dl_session s;
    struct dl_figures figures = {0};
    size_t n_kept = 0;
    ck_assert_msg(!open_single(&s, request), "%s", s.err.text);
    dl_figures_find(&s, &figures);
    for (size_t i = 0; i < figures.n; i++) {
        const struct dl_effect *const e = &figures.items[i].effect;
        struct dl_effect usual = *e;
        dl_effect_set_usual_interval(&usual);
        ck_assert_msg(e->low <= e->value && e->value <= e->high, "%s: %g is not in %g to %g", e->path, e->value, e->low,
                      e->high);
        if (strstr(e->path, "_fraction")) ck_assert_msg(e->high <= 1, "%s: up to %g", e->path, e->high);
        if (figures.items[i].tables || !e->by_grade || (e->low == usual.low && e->high == usual.high)) continue;
        n_kept++;
        check_end(request, e, e->low);
        check_end(request, e, e->high);
    }
    dl_free(figures.items);
    dl_session_close(&s);
    return n_kept;
}

START_TEST(no_interval_leaves_the_range_of_its_constant)
{
    static const char *const folders[] = {DL_SYSTEMS, DL_DEVICES, DL_SOFTWARE, DL_TRANSPORTS};
    const char **names;
    const size_t n = dl_list_folder(folders[_i], arena, &names);
    size_t n_kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct dl_session_request request = {.topo = {.name = _i == 0 ? names[i] : "dgx-h100"},
                                             .device = {.name = _i == 1 ? names[i] : NULL},
                                             .software = {.name = _i == 2 ? names[i] : NULL},
                                             .transport = _i == 3 ? names[i] : NULL};
        n_kept += check(request);
    }
    if (_i < 2) ck_assert_uint_gt(n_kept, 0); /* systems and their devices have such */
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("constant_ranges");
    TCase *const tests = tcase_create("intervals");
    tcase_add_checked_fixture(tests, begin, end);
    tcase_add_loop_test(tests, no_interval_leaves_the_range_of_its_constant, 0, 4);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
