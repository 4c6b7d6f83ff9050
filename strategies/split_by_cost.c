/* split_by_cost.c - consecutive costs in parts: first the least maximum, then the most even parts that keep to it. */
#include "strategies/stages.h"

#include <math.h>

struct costs {
    double *before; /* sum of those before i */
    size_t n;
    uint32_t n_parts;
};

static double sum(const struct costs *c, size_t from, size_t to) { return c->before[to] - c->before[from]; }

/* least[i]: the least maximum of the first i costs in k parts, for k from 1 on. The best last part begins the later the
 * more costs there are, as the parts before it cost the more the later it begins. */
static double least_maximum(const struct costs *c)
{
    double *least = dl_alloc((c->n + 1) * sizeof *least), *next = dl_alloc((c->n + 1) * sizeof *next);
    for (size_t i = 0; i <= c->n; i++) least[i] = sum(c, 0, i);
    for (uint32_t k = 2; k <= c->n_parts; k++) {
        size_t from = k - 1;
        for (size_t i = k; i <= c->n; i++) {
            while (from + 1 < i && fmax(least[from + 1], sum(c, from + 1, i)) <= fmax(least[from], sum(c, from, i)))
                from++;
            next[i] = fmax(least[from], sum(c, from, i));
        }
        double *const used = least;
        least = next;
        next = used;
    }
    const double maximum = least[c->n];
    dl_free(least);
    dl_free(next);
    return maximum;
}

/* The least sum of squares of the first i costs in parts up to the limit, one part more than `fewer` is for; begin[i]
 * gets where the last of them begins. Earlier parts are the larger ones where that is the same. */
static void add_part(const struct costs *c, double limit, const double *fewer, double *squares, size_t *begin)
{
    for (size_t i = 0; i <= c->n; i++) {
        squares[i] = INFINITY;
        for (size_t from = i; from-- > 0 && sum(c, from, i) <= limit;) {
            const double last = sum(c, from, i), all = fewer[from] + last * last;
            if (all >= squares[i]) continue;
            squares[i] = all;
            begin[i] = from;
        }
    }
}

void dl_split_by_cost(const double *cost, size_t n, uint32_t n_parts, size_t *ends)
{
    struct costs c = {.before = dl_alloc((n + 1) * sizeof *c.before), .n = n, .n_parts = n_parts};
    for (size_t i = 0; i < n; i++) c.before[i + 1] = c.before[i] + cost[i];
    const double limit = least_maximum(&c);
    const size_t row = n + 1;
    double *const squares = dl_alloc((n_parts + 1) * row * sizeof *squares);
    size_t *const begin = dl_alloc((n_parts + 1) * row * sizeof *begin);
    for (size_t i = 1; i <= n; i++) squares[i] = INFINITY;
    for (uint32_t k = 1; k <= n_parts; k++)
        add_part(&c, limit, &squares[(k - 1) * row], &squares[k * row], &begin[k * row]);
    for (size_t k = n_parts, end = n; k > 0; end = begin[k-- * row + end]) ends[k - 1] = end;
    dl_free(squares);
    dl_free(begin);
    dl_free(c.before);
}
