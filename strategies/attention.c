#include "strategies/attention.h"

#include <math.h>

const struct dl_layout dl_by_tokens = {.cut[DL_TOKEN] = DL_ALONG_CONTEXT};

/* A rank has at least one head of keys, and where these are cut by heads each of the ranks has. */
struct dl_attention_bytes dl_attention_bytes(const struct dl_operator_layouts *l, const struct dl_event *ev,
                                             const struct dl_setting *s)
{
    const struct dl_kernel *const k = &ev->kernel;
    const double samples = s->microbatch * s->parts.heads / s->parts.inside;
    const double own_heads = k->batch / s->microbatch / s->parts.heads;
    const double own_key_heads = fmax(own_heads * k->kv_share, dl_layout_parts(&l->keys, DL_BY_INNER, &s->ranks));
    const double a_head = samples * k->m / s->ways[DL_AXIS_CONTEXT] * k->k * dl_precision_bytes(s->precision);
    return (struct dl_attention_bytes){.queries = own_heads * a_head, .keys = 2 * own_key_heads * a_head};
}

enum dl_status dl_attention_send(const struct dl_event *ev, enum dl_op op, double bytes, struct dl_stack *below,
                                 struct dl_error *err)
{
    const struct dl_event collective = {.kind = DL_EV_COLLECTIVE,
                                        .pass = ev->pass,
                                        .cause = DL_CAUSE_CONTEXT,
                                        .layer = ev->layer,
                                        .op = op,
                                        .members.digits = DL_ALONG_CONTEXT,
                                        .bytes = bytes};
    return dl_emit(below, &collective, err);
}

/* ---- from layout to layout ---- */

/* Of so many bytes on each rank; 0: it need not be moved. */
struct tensor {
    const struct dl_layout *has, *needs;
    double bytes;
};

/* What moves alike goes in one collective. */
static enum dl_status bring(const struct dl_event *ev, const struct tensor *tensors, size_t n, struct dl_stack *below,
                            struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    double bytes[DL_N_OPS] = {0};
    for (size_t i = 0; i < n; i++) {
        struct dl_move moves[DL_MOST_MOVES];
        const double all = s->ways[DL_AXIS_CONTEXT] * tensors[i].bytes;
        const size_t n_moves = all > 0 ? dl_resolve(&s->ranks, tensors[i].has, tensors[i].needs, all, moves) : 0;
        for (size_t j = 0; j < n_moves; j++) bytes[moves[j].op] += moves[j].elements;
    }
    for (enum dl_op op = 0; op < DL_N_OPS; op++)
        if (bytes[op] > 0 && dl_attention_send(ev, op, bytes[op], below, err)) return err->status;
    return DL_OK;
}

/* Backward comes the gradient of what was made, and what was kept; then those of queries, keys and values go back.
 * Selective recomputation begins with what was kept, too, and its result is used where it is. */
enum dl_status dl_attend(const struct dl_operator *op, const struct dl_operator_options *o, const struct dl_event *ev,
                         struct dl_stack *below, struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct dl_operator_layouts l = op->layouts(o);
    const struct dl_attention_bytes of = dl_attention_bytes(&l, ev, s);
    const bool backward = ev->pass == DL_BACKWARD;
    const bool in_place = ev->pass == DL_RECOMPUTE && s->recompute == DL_RECOMPUTE_SELECTIVE;
    const bool as_used = (backward || in_place) && op->keeps_used;
    const struct dl_layout queries = dl_layout_gradient(&l.used, op->among),
                           keys = dl_layout_gradient(&l.keys, op->among);
    const struct tensor before[] = {{as_used ? &l.used : &l.outside, &l.used, of.queries},
                                    {as_used ? &l.keys : &l.outside, &l.keys, of.keys},
                                    {&l.outside, &l.made, backward ? of.queries : 0}};
    const struct tensor after[] = {{backward ? &queries : &l.made, &l.outside, in_place ? 0 : of.queries},
                                   {&keys, &l.outside, backward ? of.keys : 0}};
    if (bring(ev, before, DL_COUNT(before), below, err) || op->kernel(o, ev, below, err)) return err->status;
    return bring(ev, after, DL_COUNT(after), below, err);
}

/* ---- what cannot be ---- */

enum dl_status dl_attention_check_tokens(const struct dl_operator_options *o, const struct dl_check *what,
                                         struct dl_error *err)
{
    return dl_check_ways(what, what->setting->ways[DL_AXIS_CONTEXT],
                         dl_check_find_attention(what)->m / (o->zigzag ? 2 : 1),
                         o->zigzag ? "half of the tokens of a sample" : "the tokens of a sample", err);
}
