/* run_head.c - what tells a run from another, at the head of its text: nothing that is 1, absent or usual. */
#include <stdio.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/report/run_report.h"
#include "sim/report/units.h"

/* Words of a line, with commas between. */
struct line {
    const char *label;
    size_t n;
};

static const char *before(struct line *line)
{
    static char start[32];
    snprintf(start, sizeof start, "  %-14s ", line->label);
    return line->n++ ? ", " : start;
}

static void end(const struct line *line)
{
    if (line->n) putchar('\n');
}

/* Tensor ranks in a line, which divide activations by tokens where these are not by heads or columns. */
static bool cuts_tokens(const struct dl_setting *s)
{
    const uint32_t ways = s->ways[DL_AXIS_TENSOR];
    return s->is_line && s->parts.outside == ways;
}

static void print_ways(const struct dl_setting *s)
{
    const char *between = ": ";
    for (uint32_t i = 0; i < dl_n_axes(s); i++) {
        const enum dl_axis axis = dl_axis_by_default(s, i);
        if (s->ways[axis] == 1) continue;
        printf("%s%s %u", between, dl_axis_name(s, axis), s->ways[axis]);
        if (axis == DL_AXIS_TENSOR && cuts_tokens(s)) printf(" (sequence parallel)");
        between = " x ";
    }
    if (dl_n_expert_ranks(s) > 1) printf(" (experts over %u)", dl_n_expert_ranks(s));
}

static void print_first(const struct dl_run_report *r)
{
    char n[DL_QUANTITY];
    printf("%s on %s device%s of %s", r->model->name, dl_format_count(r->job->n_devices, n),
           r->job->n_devices == 1 ? "" : "s", r->topology->name);
    print_ways(&r->job->setting);
    printf(", %s%s\n", r->job->setting.software->name,
           r->names_software ? "" : " (the default software, a lower bound: the strategy names none)");
}

static void say(void *user, const char *words) { printf("%s%s", before(user), words); }

static void print_setting(const struct dl_job *job)
{
    const struct dl_setting *const s = &job->setting;
    struct line line = {.label = "setting"};
    printf("%s%s", before(&line), dl_precision_name(s->precision));
    if (s->wide_first_blocks) printf(", bf16 in the first %u blocks", s->wide_first_blocks);
    if (s->wide_last_blocks) printf(", bf16 in the last %u blocks", s->wide_last_blocks);
    if (dl_n_stages(s) > 1) printf("%sschedule %s", before(&line), s->schedule);
    if (s->chunks > 1) printf(" with %u chunks", s->chunks);
    if (s->group) printf(" in groups of %u", s->group);
    if (s->zero_asked) printf("%sZeRO stage %u", before(&line), s->zero_asked);
    if (s->zero_asked && s->shard_ways) printf(" over %u", s->shard_ways);
    if (s->secondary_ways) printf(", a second copy of parameters over %u", s->secondary_ways);
    for (const struct dl_stack *level = job->stack; level->strategy; level++)
        if (level->strategy->tell) level->strategy->tell(level->options, say, &line);
    if (s->servers) printf("%s%u parameter server%s", before(&line), s->servers, s->servers == 1 ? "" : "s");
    end(&line);
}

static void print_batch(const struct dl_run_report *r)
{
    const struct dl_setting *const s = &r->job->setting;
    char a[DL_QUANTITY], b[DL_QUANTITY], c[DL_QUANTITY];
    printf("  batch          %s sample%s", dl_format_count(s->global_batch, a), s->global_batch == 1 ? "" : "s");
    if (r->model->tokens_per_sample > 0) printf(" of %s tokens", dl_format_count(r->model->tokens_per_sample, b));
    if (s->micros > 1) printf(", %s micro-batches of %.0f", dl_format_count(s->micros, c), s->microbatch);
    if (s->micros > 1 && dl_n_replicas(s) > 1) printf(" on each replica");
    putchar('\n');
}

/* Whether a file calls another by this name, be it with a folder and .json. */
static bool is_called(const char *path, const char *name)
{
    const char *const base = dl_base_name(path);
    const size_t length = strlen(name);
    return strncmp(base, name, length) == 0 && (!base[length] || strcmp(base + length, ".json") == 0);
}

/* What the command line changes. */
static void print_asked(const struct dl_run_report *r)
{
    const struct dl_asked *const a = r->asked;
    struct line line = {.label = "asked for"};
    const char *const usual = r->job->setting.servers ? "packed" : "even";
    if (!a) return;
    if (strcmp(a->placement, usual)) printf("%splacement %s", before(&line), a->placement);
    if (!is_called(r->topology->transport, a->transport)) printf("%stransport %s", before(&line), a->transport);
    if (a->seed) printf("%sseed %ju", before(&line), (uintmax_t)a->seed);
    if (a->scenario) printf("%sscenario %s", before(&line), a->scenario);
    for (size_t i = 0; i < a->n_overrides; i++) printf("%s%s", before(&line), a->overrides[i]);
    end(&line);
}

void dl_run_head_print(const struct dl_run_report *r)
{
    print_first(r);
    print_setting(r->job);
    print_batch(r);
    print_asked(r);
}
