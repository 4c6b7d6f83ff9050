/* layer_records.h - layers that are alike go through the stack once; what became of one is written again for others.
 *
 * Two are alike if their work and sizes are the same and their places mean the same to every strategy of the stack
 * (strategy.h). The rule to remember: what replicas start or wait for has a number of its own each time, so it is never
 * written again, nor is memory of other layers. */
#ifndef DL_STRATEGIES_LAYER_RECORDS_H
#define DL_STRATEGIES_LAYER_RECORDS_H

#include "strategies/sink.h"

/* What of a layer its instructions depend on. */
struct dl_layer_key {
    const struct dl_layer *layer;
    enum dl_pass pass;
    bool first_micro, last_micro;
    bool splits; /* weight gradients come apart */
    bool is_own; /* its place is like no other */
    uint64_t place;
};

/* For the layers of sink.out, before the first of them is lowered; and when the calls so far are forgotten. */
void dl_layer_records_init(struct dl_sink *s);
void dl_layer_records_forget(struct dl_sink *s);

/* The event is LAYER, with first_micro and last_micro. */
struct dl_layer_key dl_layer_key_of(const struct dl_sink *s, const struct dl_event *layer, bool splits);

/* Whether one that is alike was noted; then its instructions and memory are written again. */
bool dl_layer_write_again(struct dl_sink *s, const struct dl_layer_key *key);
/* Around the events of a layer: note what they are written as, if it may be written again; returns whether it may. */
void dl_layer_note_begin(struct dl_sink *s);
bool dl_layer_note_end(struct dl_sink *s, const struct dl_layer_key *key);
/* The same where memory is all there is: what events of the layer have added to `ops` from that number on, or add
 * again, before that place. */
bool dl_layer_hold_again(struct dl_sink *s, const struct dl_layer_key *key, struct dl_memory_ops *ops, size_t at);
void dl_layer_note_held(struct dl_sink *s, const struct dl_layer_key *key, const struct dl_memory_ops *ops, size_t from,
                        size_t at);
/* Whether layers of the class may be written again, and whether two layers are alike there. */
bool dl_layer_may_come_again(const struct dl_sink *s, const struct dl_layer_key *key);
bool dl_layers_alike(const struct dl_sink *s, const struct dl_layer_key *a, const struct dl_layer_key *b);

#endif
