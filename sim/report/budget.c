#include "sim/report/budget.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

/* Relative to the measured step: y is what the prediction lacks, x what a part adds. Least squares need only their
 * products, summed over rows. */
struct sums {
    double yy, xy[DL_N_PARTS], xx[DL_N_PARTS][DL_N_PARTS];
};

struct changes {
    double of[DL_N_PARTS]; /* factor less one */
};

static double lack(const struct dl_compared *row) { return -dl_compared_error(row); }
/* What a part adds is the difference of two steps: less than they round by is nothing, and no factor makes it more. */
static double added(const struct dl_compared *row, int part)
{
    const double rounding = 1e-9, share = row->added_s[part] / row->measured_s;
    return fabs(share) > rounding ? share : 0;
}

static void add_row(struct sums *s, const struct dl_compared *row)
{
    s->yy += lack(row) * lack(row);
    for (int i = 0; i < DL_N_PARTS; i++) {
        s->xy[i] += added(row, i) * lack(row);
        for (int j = 0; j < DL_N_PARTS; j++) s->xx[i][j] += added(row, i) * added(row, j);
    }
}

/* The best change of one part, beside those of the others; it cannot take away more than the part adds. */
static double best_change(const struct sums *s, const struct changes *c, int part)
{
    double rest = s->xy[part];
    for (int j = 0; j < DL_N_PARTS; j++)
        if (j != part) rest -= s->xx[part][j] * c->of[j];
    return s->xx[part][part] > 0 ? fmax(-1, rest / s->xx[part][part]) : 0;
}

/* By descent along one part after the other: the squares are convex and the bounds are those of single parts, so this
 * ends at the least. */
static struct changes solve(const struct sums *s, unsigned parts)
{
    const int most_sweeps = 10000;
    const double enough = 1e-13;
    struct changes c = {{0}};
    for (int sweep = 0; sweep < most_sweeps; sweep++) {
        double moved = 0;
        for (int i = 0; i < DL_N_PARTS; i++) {
            if (!(parts >> i & 1)) continue;
            const double before = c.of[i];
            c.of[i] = best_change(s, &c, i);
            moved = fmax(moved, fabs(c.of[i] - before));
        }
        if (moved < enough) break;
    }
    return c;
}

static double squares_left(const struct sums *s, unsigned parts)
{
    const struct changes c = solve(s, parts);
    double left = s->yy;
    for (int i = 0; i < DL_N_PARTS; i++) {
        left -= 2 * c.of[i] * s->xy[i];
        for (int j = 0; j < DL_N_PARTS; j++) left += c.of[i] * c.of[j] * s->xx[i][j];
    }
    return fmax(0, left);
}

/* Of the parts not taken, the one that leaves least. */
static int find_next(const struct sums *s, unsigned taken, double *left)
{
    int best = -1;
    *left = INFINITY;
    for (int i = 0; i < DL_N_PARTS; i++) {
        const double with = taken >> i & 1 ? INFINITY : squares_left(s, taken | 1U << i);
        if (!(with < *left)) continue;
        best = i;
        *left = with;
    }
    return best;
}

/* The F test of one more factor, the n_factors-th (Draper and Smith, Applied Regression Analysis, section 6). */
static bool is_by_chance(double before, double after, size_t n_rows, int n_factors)
{
    const double likely_enough = 0.05;
    if (n_rows <= (size_t)n_factors || !(after < before)) return true;
    const double freedom = (double)n_rows - n_factors;
    return after > 0 && gsl_cdf_fdist_Q((before - after) / (after / freedom), 1, freedom) > likely_enough;
}

/* The parts that have a share. */
static unsigned share_out(const struct sums *s, struct dl_budget *b)
{
    double before = s->yy, after;
    unsigned taken = 0;
    for (int n = 1; n <= DL_N_PARTS; n++, before = after) {
        const int next = find_next(s, taken, &after);
        if (is_by_chance(before, after, b->n, n)) break;
        b->parts[next].share = (before - after) / s->yy;
        taken |= 1U << next;
    }
    b->unexplained = s->yy > 0 ? before / s->yy : 0;
    return taken;
}

static void add_means(const struct dl_compared *row, const struct changes *all, struct dl_budget *b)
{
    const double n = (double)b->n;
    double left = lack(row);
    for (int i = 0; i < DL_N_PARTS; i++) left -= all->of[i] * added(row, i);
    b->mape += fabs(lack(row)) / n;
    b->left_mape += fabs(left) / n;
    for (int i = 0; i < DL_N_PARTS; i++) {
        struct dl_part_budget *const part = &b->parts[i];
        part->added += row->added_s[i] / row->predicted_s / n;
        part->ideal_mape += fabs(lack(row) + added(row, i)) / n;
        part->mape += fabs(lack(row) - (part->factor - 1) * added(row, i)) / n;
    }
}

struct dl_budget dl_budget_of(const struct dl_compared *const *rows, size_t n)
{
    struct dl_budget b = {0};
    struct sums s = {0};
    for (size_t i = 0; i < n; i++) {
        if (!rows[i]->knows_parts) continue;
        add_row(&s, rows[i]);
        b.n++;
    }
    if (!b.n) return b;
    for (int i = 0; i < DL_N_PARTS; i++) b.parts[i].factor = 1 + solve(&s, 1U << i).of[i];
    const struct changes all = solve(&s, share_out(&s, &b));
    for (int i = 0; i < DL_N_PARTS; i++) b.parts[i].factor_together = 1 + all.of[i];
    for (size_t i = 0; i < n; i++)
        if (rows[i]->knows_parts) add_means(rows[i], &all, &b);
    return b;
}
