/* attention.h - attention to a sequence that ranks share: what its operators have in common. */
#ifndef DL_STRATEGIES_ATTENTION_H
#define DL_STRATEGIES_ATTENTION_H

#include "strategies/operators.h"

/* Between kernels every rank has a part of the tokens, and what attention makes is wanted so. */
extern const struct dl_layout dl_by_tokens;

/* Of the tokens of a rank, in the heads that its tensor ranks leave it; those of keys and values together. */
struct dl_attention_bytes {
    double queries, keys;
};
struct dl_attention_bytes dl_attention_bytes(const struct dl_operator_layouts *layouts, const struct dl_event *ev,
                                             const struct dl_setting *s);

/* A collective of the context ranks, in the pass of a kernel. */
enum dl_status dl_attention_send(const struct dl_event *ev, enum dl_op op, double bytes, struct dl_stack *below,
                                 struct dl_error *err);

/* Tokens are brought to where they are needed, attended to, and what comes of it is brought back. */
enum dl_status dl_attend(const struct dl_operator *op, const struct dl_operator_options *o, const struct dl_event *ev,
                         struct dl_stack *below, struct dl_error *err);

/* Refuse ranks that do not divide the tokens, each of them in two if it is zigzag. */
enum dl_status dl_attention_check_tokens(const struct dl_operator_options *o, const struct dl_check *what,
                                         struct dl_error *err);

#endif
