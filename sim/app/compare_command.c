/* compare_command.c - two reports of runs: which is faster, and whether that is sure. */
#include "sim/app/commands.h"
#include "sim/app/options.h"
#include "sim/draw/page.h"
#include "sim/report/asked.h"
#include "sim/report/comparison.h"

struct request {
    const char *json, *html;
};

static const struct dl_option options[] = {
    {"json", DL_OPT_OUTPUT, offsetof(struct request, json), false, 0, 0, NULL,
     "the answer for programs too; - is standard output, in place of the text"},
    {"html", DL_OPT_OUTPUT, offsetof(struct request, html), false, 0, 0, NULL,
     "both runs side by side as a page, one file for any browser; - is standard output"},
};

/* Where a report was made, and how long that took, is no part of what it says. */
static struct dl_asked what_was_asked(const struct dl_json reports[2])
{
    static const char *const of_place[] = {"host", "files", NULL};
    struct dl_asked asked = {.command = "compare"};
    struct dl_fingerprint f;
    dl_fingerprint_begin(&f);
    for (size_t i = 0; i < 2; i++) dl_fingerprint_document(&f, "report", reports[i].value, of_place);
    dl_fingerprint_end(&f, asked.sha256);
    return asked;
}

static enum dl_status write_page(const struct request *q, const struct dl_asked *asked, const struct dl_comparison *c,
                                 const struct dl_json reports[2], struct dl_error *err)
{
    json_t *const data = dl_json_pack("{s:s, s:o, s:[O, O], s:[s, s]}", "view", "compare", "answer",
                                      dl_answer(asked, dl_comparison_json(c)), "reports", reports[0].value,
                                      reports[1].value, "names", c->first->name, c->second->name);
    return dl_page_write(q->html, data, err);
}

static enum dl_status tell(const struct request *q, const struct dl_comparison *c, const struct dl_json reports[2],
                           struct dl_error *err)
{
    const struct dl_asked asked = what_was_asked(reports);
    if (q->json && dl_write_json(q->json, dl_answer(&asked, dl_comparison_json(c)), err)) return err->status;
    if (q->html && write_page(q, &asked, c, reports, err)) return err->status;
    if (dl_tells_text(q->json) && dl_tells_text(q->html)) dl_comparison_print(c);
    return DL_OK;
}

static void compare(const struct request *q, const struct dl_texts *files, struct dl_arena *arena, struct dl_error *err)
{
    struct dl_json reports[2] = {{0}, {0}};
    struct dl_told_run runs[2];
    for (size_t i = 0; i < DL_COUNT(runs) && !err->status; i++)
        if (!dl_json_load(files->items[i], arena, &reports[i], err)) dl_told_run_read(reports[i], arena, &runs[i], err);
    if (!err->status) {
        const struct dl_comparison c = dl_compare_runs(&runs[0], &runs[1], arena);
        tell(q, &c, reports, err);
    }
    for (size_t i = 0; i < DL_COUNT(reports); i++) json_decref(reports[i].value);
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {0};
    struct dl_texts files = {0};
    struct dl_arena *const arena = dl_arena_new();
    if (!dl_read_options(argc, argv, options, DL_COUNT(options), &q, &files, err) && files.n != 2)
        dl_fail(err, DL_SYNTAX, "compare", "needs two reports of `dlsim run --sensitivity --json FILE`, got %zu",
                files.n);
    if (!err->status && !(q.html && dl_page_check(err))) compare(&q, &files, arena, err);
    dl_arena_free(arena);
    return 0;
}

const struct dl_command dl_command_compare = {
    .name = "compare",
    .doc = "two reports of runs: which is faster, and how sure that is",
    .usage = "compare FIRST.json SECOND.json [--json FILE|-] [--html FILE|-]",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
