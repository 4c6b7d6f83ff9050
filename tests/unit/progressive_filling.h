/* progressive_filling.h - the second way to compute when bundles end: plain loops that solve everything again at every
 * event. It shares nothing with sim/engine but the meaning of a bundle. */
#ifndef DL_TESTS_PROGRESSIVE_FILLING_H
#define DL_TESTS_PROGRESSIVE_FILLING_H

#include "tests/unit/bundle_sets.h"

struct filling {
    const struct bundle_set *set;
    double bandwidth[most_links];
    double left[most_bundles], rate[most_bundles]; /* bytes still to move */
    bool moving[most_bundles], ended[most_bundles], changed[most_changes];
    double now_s;
};

/* The level at which this link is full if all bundles without a rate yet rise together. */
static inline double level_of_link(const struct filling *f, uint32_t link, const bool *fixed)
{
    double remaining = f->bandwidth[link], weight = 0, heaviest = 0;
    for (size_t b = 0; b < f->set->n_bundles; b++) {
        if (!f->moving[b]) continue;
        for (size_t h = 0; h < f->set->bundles[b].bundle.n_hops; h++) {
            const struct dl_hop *const hop = &f->set->bundles[b].hops[h];
            if (hop->link != link) continue;
            if (fixed[b])
                remaining -= hop->weight * f->rate[b];
            else
                weight += hop->weight, heaviest = fmax(heaviest, hop->weight);
        }
    }
    if (weight <= 0) return INFINITY;
    return f->set->links[link].fatpipe ? f->bandwidth[link] / heaviest : fmax(remaining, 0) / weight;
}

static inline bool crosses(const struct timed_bundle *b, uint32_t link)
{
    for (size_t h = 0; h < b->bundle.n_hops; h++)
        if (b->hops[h].link == link) return true;
    return false;
}

/* Of a fatpipe only the heaviest bundles are held at its level. */
static inline bool is_held_by(const struct filling *f, const struct timed_bundle *b, uint32_t link, double level)
{
    if (!crosses(b, link)) return false;
    if (!f->set->links[link].fatpipe) return true;
    for (size_t h = 0; h < b->bundle.n_hops; h++)
        if (b->hops[h].link == link) return f->bandwidth[link] / b->hops[h].weight <= level;
    return false;
}

static inline void fill_rates(struct filling *f)
{
    bool fixed[most_bundles] = {false};
    for (;;) {
        double level = INFINITY;
        uint32_t full = UINT32_MAX;
        size_t capped = SIZE_MAX;
        for (uint32_t link = 0; link < f->set->n_links; link++) {
            const double here = level_of_link(f, link, fixed);
            if (here < level) level = here, full = link;
        }
        for (size_t b = 0; b < f->set->n_bundles; b++) {
            if (!f->moving[b] || fixed[b] || f->set->bundles[b].bundle.rate_cap_bytes_per_s > level) continue;
            level = f->set->bundles[b].bundle.rate_cap_bytes_per_s;
            capped = b;
        }
        if (isinf(level)) return;
        for (size_t b = 0; b < f->set->n_bundles; b++) {
            const bool here = capped != SIZE_MAX ? b == capped : is_held_by(f, &f->set->bundles[b], full, level);
            if (!f->moving[b] || fixed[b] || !here) continue;
            f->rate[b] = level;
            fixed[b] = true;
        }
    }
}

static inline double begins_to_move_s(const struct timed_bundle *b) { return b->start_s + b->bundle.latency_s; }

static inline double next_date(const struct filling *f)
{
    double next_s = INFINITY;
    for (size_t b = 0; b < f->set->n_bundles; b++) {
        if (f->ended[b]) continue;
        if (!f->moving[b])
            next_s = fmin(next_s, begins_to_move_s(&f->set->bundles[b]));
        else if (f->rate[b] > 0)
            next_s = fmin(next_s, f->now_s + f->left[b] / f->rate[b]);
    }
    for (size_t c = 0; c < f->set->n_changes; c++)
        if (!f->changed[c]) next_s = fmin(next_s, f->set->changes[c].date_s);
    return next_s;
}

static inline void apply_changes(struct filling *f)
{
    for (size_t c = 0; c < f->set->n_changes; c++) {
        if (f->changed[c] || f->set->changes[c].date_s > f->now_s) continue;
        f->bandwidth[f->set->changes[c].link] = f->set->changes[c].bytes_per_s;
        f->changed[c] = true;
    }
}

/* The date comes; what ends then ends, what begins to move begins. */
static inline void go_to(struct filling *f, double date_s, double *end_s)
{
    for (size_t b = 0; b < f->set->n_bundles; b++) {
        if (f->ended[b]) continue;
        const bool ends = f->moving[b] && f->rate[b] > 0 && f->now_s + f->left[b] / f->rate[b] <= date_s;
        if (f->moving[b])
            f->left[b] = fmax(f->left[b] - f->rate[b] * (date_s - f->now_s), 0);
        else if (begins_to_move_s(&f->set->bundles[b]) <= date_s)
            f->moving[b] = true;
        if (!ends && !(f->moving[b] && f->set->bundles[b].bundle.bytes <= 0)) continue;
        f->ended[b] = true;
        f->moving[b] = false;
        end_s[b] = date_s;
    }
    f->now_s = date_s;
    apply_changes(f);
}

static inline void fill_progressively(const struct bundle_set *set, double *end_s)
{
    struct filling f = {.set = set};
    for (size_t i = 0; i < set->n_links; i++) f.bandwidth[i] = set->links[i].bandwidth_bytes_per_s;
    for (size_t b = 0; b < set->n_bundles; b++) f.left[b] = set->bundles[b].bundle.bytes;
    for (double date_s; isfinite(date_s = next_date(&f));) {
        go_to(&f, date_s, end_s);
        fill_rates(&f);
    }
}

#endif
