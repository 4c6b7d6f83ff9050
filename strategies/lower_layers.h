/* lower_layers.h - the top of the stack: the work of a position, layer by layer, into the templates of the sink. */
#ifndef DL_STRATEGIES_LOWER_LAYERS_H
#define DL_STRATEGIES_LOWER_LAYERS_H

#include "strategies/sink.h"

struct dl_layer_key;

/* The keys of its layers in all passes, as they are lowered; returns how many these are. Room for four of each. */
size_t dl_position_keys(const struct dl_sink *s, const struct dl_position *p, bool splits, struct dl_layer_key *out);
enum dl_status dl_lower_forward(struct dl_sink *s, const struct dl_position *p, bool first_micro, struct dl_error *err);
enum dl_status dl_lower_backward(struct dl_sink *s, const struct dl_position *p, bool last_micro, struct dl_error *err);

#endif
