#include "sim/report/explain_collective.h"

#include <math.h>

#include "sim/report/units.h"

struct differing {
    struct dl_explanation *e;
    const struct dl_explained_collective *of;
    double time_s;
};

/* Below that it is rounding. */
static bool is_there(const struct differing *d, double seconds)
{
    const double rounding = 1e-12;
    return fabs(seconds) > rounding * d->time_s;
}

static const struct dl_collective *collective_of(const struct differing *d)
{
    return &d->of->report->choice->collective;
}

/* Of the time, that the most loaded link was busy; 0: nothing is known of links. */
static double limiting_share(const struct differing *d)
{
    const struct dl_collective_report *const r = d->of->report;
    return r->links.n && d->time_s > 0 ? r->links.items[0].busy_s / d->time_s : 0;
}

static const char *overlap_words(const struct differing *d)
{
    char name[DL_LINK_NAME];
    return dl_arena_format(d->e->arena, "latencies pass while other messages move: %s was busy %.1f %% of the time",
                           dl_links_limiting(&d->of->report->links, name), 100 * limiting_share(d));
}

static const char *latency_words(const struct differing *d, double seconds)
{
    const struct dl_collective *const c = collective_of(d);
    const double mostly_busy = 0.5;
    if (d->of->report->choice->estimate.pace.holds_ports)
        return "messages hold ports until they have arrived, so that their latencies follow each other";
    if (c->chunks > 1) return "of chunks that follow each other some latencies overlap with what moves before them";
    if (seconds < 0 && limiting_share(d) > mostly_busy) return overlap_words(d);
    if (seconds < 0)
        return "each rank goes on by itself: the one that ended last did not meet the slowest message of every round";
    return "the rank that ended last waited for a chain of messages that is longer than the formula's";
}

/* Moving on links that are not the most loaded, and waiting for those that others use. */
static const char *moving_words(const struct differing *d, double seconds)
{
    const struct dl_collective_report *const r = d->of->report;
    const struct dl_causes *const causes = &r->result.causes;
    char name[DL_LINK_NAME], waited[DL_QUANTITY];
    const char *const limiting = dl_links_limiting(&r->links, name);
    const char *const changed = d->of->has_scenario ? "; links changed as the scenario says" : "";
    if (causes->sharing_s > 0 && limiting)
        return dl_arena_format(d->e->arena,
                               "messages share links: the rank that ended last waited %s for links that others used; "
                               "%s was busy %.1f %% of the time%s",
                               dl_format_seconds(causes->sharing_s, waited), limiting, 100 * limiting_share(d),
                               changed);
    if (seconds < 0)
        return dl_arena_format(
            d->e->arena,
            "messages of other rounds and lanes move meanwhile: the rank that ended last did not wait for "
            "the most loaded link of every round%s",
            changed);
    return dl_arena_format(
        d->e->arena, "messages of a rank leave its port one after the other, or at the pace of its kernels%s", changed);
}

static const char *reduction_words(double seconds)
{
    return seconds < 0 ? "lanes and chunks are added while others move"
                       : "what comes from several at once is added one after the other";
}

static void add(const struct differing *d, const char *part, double seconds, const char *what)
{
    if (is_there(d, seconds)) dl_explain_term(d->e, part, seconds, what, NULL);
}

static void add_differences(const struct differing *d, const struct dl_formula_sums *sums)
{
    const struct dl_causes *const causes = &d->of->report->result.causes;
    const double latency_s = causes->latency_s - sums->latency_s;
    const double moving_s = causes->bandwidth_s + causes->sharing_s - sums->moving_s;
    const double reduction_s = causes->reduction_s - sums->reduction_s;
    add(d, "latency", latency_s, latency_words(d, latency_s));
    add(d, "bandwidth", moving_s, moving_words(d, moving_s));
    add(d, "reduction", reduction_s, reduction_words(reduction_s));
}

enum dl_status dl_explain_collective(struct dl_explanation *e, const struct dl_explained_collective *of,
                                     struct dl_error *err)
{
    const double time_s = of->report->result.time_s;
    const struct differing d = {e, of, time_s};
    struct dl_formula_sums sums;
    dl_explain_read(e, of->system_doc);
    dl_explain_read(e, of->transport_doc);
    if (dl_explain_formula(e,
                           &(struct dl_formula_of){.estimator = of->estimator,
                                                   .choice = of->report->choice,
                                                   .system_doc = of->system_doc,
                                                   .transport_doc = of->transport_doc,
                                                   .times = 1},
                           &sums, err))
        return err->status;
    dl_explain_sum(e, DL_SUM_ALL, sums.start_s + sums.latency_s + sums.moving_s + sums.reduction_s, "by the formula");
    add_differences(&d, &sums);
    dl_explain_sum(e, DL_SUM_ALL, time_s, "the time");
    return DL_OK;
}
