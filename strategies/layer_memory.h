/* layer_memory.h - what a layer allocates and frees, as the model and the software have it: events at the top of the
 * stack, which strategies rewrite. Bytes are those of all ranks that share the layer. */
#ifndef DL_STRATEGIES_LAYER_MEMORY_H
#define DL_STRATEGIES_LAYER_MEMORY_H

#include "strategies/strategy.h"

/* Before the first step; `at` has the layer, its place in its position and the pass DL_HOLD. */
enum dl_status dl_emit_held(struct dl_stack *top, const struct dl_event *at, struct dl_error *err);
/* Gradients of the layer, where a step makes them. */
enum dl_status dl_emit_gradients(struct dl_stack *top, const struct dl_event *at, struct dl_error *err);
/* After a LAYER event, before its LAYER_DONE, and after that where weight gradients come apart. */
enum dl_status dl_emit_entered(struct dl_stack *top, const struct dl_event *at, struct dl_error *err);
enum dl_status dl_emit_left(struct dl_stack *top, const struct dl_event *at, struct dl_error *err);
enum dl_status dl_emit_operands(struct dl_stack *top, const struct dl_event *at, struct dl_error *err);
/* Of a parameter: its gradient as a backward makes it, where wider ones accumulate; else 0. */
double dl_gradient_copy_bytes(const struct dl_setting *s);
/* Before and after a piece of its work, in the pass of `at`. */
enum dl_status dl_emit_working(struct dl_stack *top, const struct dl_event *at, const struct dl_work *work,
                               bool is_done, struct dl_error *err);
/* Before and after the optimizer updates the parameters of `at`, all of a stage. */
enum dl_status dl_emit_updating(struct dl_stack *top, const struct dl_event *at, bool is_done, struct dl_error *err);

/* What an ALLOC asks for. */
double dl_allocated_bytes(const struct dl_event *ev);
/* Shared by strategies: a tensor of the layer of an event, in its pass. */
enum dl_status dl_emit_alloc(struct dl_stack *below, enum dl_tensor_kind tensor, const struct dl_event *at,
                             double bytes, struct dl_error *err);
enum dl_status dl_emit_free(struct dl_stack *below, enum dl_tensor_kind tensor, const struct dl_event *at,
                            struct dl_error *err);

#endif
