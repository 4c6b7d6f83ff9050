/* attention_ulysses.c - from a part of the tokens to a part of the heads, and back (DeepSpeed-Ulysses, arXiv
 * 2309.14509). Every rank then sees all tokens, in any order. */
#include "strategies/attention.h"

static const struct dl_layout by_heads = {.cut[DL_INNER] = DL_ALONG_CONTEXT};

static struct dl_operator_layouts layouts(const struct dl_operator_options *o)
{
    (void)o;
    return (struct dl_operator_layouts){
        .inside = by_heads, .outside = dl_by_tokens, .used = by_heads, .made = by_heads, .keys = by_heads};
}

static enum dl_status check(const struct dl_operator_options *o, const struct dl_check *what, struct dl_error *err)
{
    const double heads = dl_check_find_attention(what)->batch / what->model->samples / what->setting->parts.heads;
    struct dl_operator_options in_order = *o;
    in_order.zigzag = false;
    if (dl_attention_check_tokens(&in_order, what, err)) return err->status;
    return dl_check_ways(what, what->setting->ways[DL_AXIS_CONTEXT], heads, "the heads of a tensor rank", err);
}

static enum dl_status kernel(const struct dl_operator_options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    struct dl_event part = *ev;
    (void)o;
    dl_kernel_cut(&part.kernel, NULL, &by_heads, &dl_stack_setting(below)->ranks);
    return dl_emit(below, &part, err);
}

const struct dl_operator dl_operator_ulysses = {
    .name = "ulysses",
    .among = DL_ALONG_CONTEXT,
    .layouts = layouts,
    .check = check,
    .kernel = kernel,
    .keeps_used = true,
};
