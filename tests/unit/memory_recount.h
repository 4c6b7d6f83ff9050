/* memory_recount.h - memory of a stage in a second way: op by op, with a list of what is there, of which micro-batch.
 */
#ifndef DL_TESTS_MEMORY_RECOUNT_H
#define DL_TESTS_MEMORY_RECOUNT_H

#include <check.h>
#include <math.h>

#include "sim/session/session.h"

struct there {
    enum dl_tensor_kind tensor;
    uint32_t layer, micro, chunk;
    double bytes;
};

struct recount {
    struct there list[20000];
    size_t n;
    double peak, most_on_host;
};

static inline double sum_of_list(const struct recount *r, bool on_host)
{
    double sum = 0;
    for (size_t i = 0; i < r->n; i++)
        if ((dl_tensor_category(r->list[i].tensor) == DL_MEMORY_HOST) == on_host) sum += r->list[i].bytes;
    return sum;
}

static inline void recount_ops(struct recount *r, const struct dl_memory_ops *ops, struct dl_item item)
{
    for (size_t i = 0; i < ops->n; i++) {
        const struct dl_memory_op *const op = &ops->items[i];
        const bool is_own = dl_tensor_is_of_micro(op->tensor);
        const struct there tag = {op->tensor, dl_memory_layer(ops, i), is_own ? item.micro : 0, is_own ? item.chunk : 0,
                                  op->bytes};
        size_t at = 0;
        while (at < r->n && !(r->list[at].tensor == tag.tensor && r->list[at].layer == tag.layer &&
                              r->list[at].micro == tag.micro && r->list[at].chunk == tag.chunk))
            at++;
        if (op->frees && at < r->n) r->list[at] = r->list[--r->n];
        if (op->frees) continue;
        ck_assert_uint_lt(r->n, DL_COUNT(r->list));
        if (at == r->n) r->list[r->n++] = tag;
        r->list[at].bytes = fmax(r->list[at].bytes, tag.bytes);
        r->peak = fmax(r->peak, sum_of_list(r, false));
        r->most_on_host = fmax(r->most_on_host, sum_of_list(r, true));
    }
}

/* The peak; and a step leaves what it began with. */
static inline void check_memory_of_stage(const char *what, const struct dl_program *p, const struct dl_memory_use *use)
{
    static struct recount r;
    r = (struct recount){0};
    recount_ops(&r, &p->begin, (struct dl_item){0});
    const double held = sum_of_list(&r, false);
    for (uint32_t i = 0; i < p->n_sequence; i++)
        recount_ops(&r, &dl_item_block(p, &p->sequence[i])->memory, p->sequence[i].item);
    recount_ops(&r, &p->end.memory, (struct dl_item){0});
    const double left = sum_of_list(&r, false);
    ck_assert_msg(fabs(left - held) <= 1e-9 * held, "%s: a step leaves %.12g bytes of %.12g", what, left, held);
    ck_assert_msg(fabs(r.peak - use->peak) <= 1e-9 * r.peak, "%s: the peak is %.12g, not %.12g", what, use->peak,
                  r.peak);
    ck_assert_msg(fabs(r.most_on_host - use->on_host) <= 1e-9 * r.most_on_host, "%s: %.12g on the host, not %.12g",
                  what, use->on_host, r.most_on_host);
}

#endif
