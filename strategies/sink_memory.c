/* sink_memory.c - what events allocate and free becomes ops of the program being built. Whole gradients go bucket by
 * bucket: they are freed when theirs is full, or where it is exchanged beside the next one's work, when that is. */
#include <math.h>

#include "strategies/layer_memory.h"
#include "strategies/sink.h"

static struct dl_memory_ops *ops_of(const struct dl_sink *s, const struct dl_event *ev)
{
    return ev->pass == DL_HOLD ? s->begin : &dl_sink_place(s, ev)->memory;
}

/* Of what backward kernels are given of a block's activations: most read it where it is; a copy is two moves. */
static double share_copied(const struct dl_sink *s, const struct dl_event *ev)
{
    const double read_and_written = 2;
    if (ev->tensor != DL_TENSOR_SLICED) return 1;
    return fmin(s->request->job->setting.software->keep.backward_moves / read_and_written, 1);
}

static struct dl_memory_op op_of(const struct dl_sink *s, const struct dl_event *ev)
{
    return (struct dl_memory_op){.frees = ev->kind == DL_EV_FREE,
                                 .tensor = ev->tensor,
                                 .layer = ev->layer ? ev->layer->index : 0,
                                 .bytes = share_copied(s, ev) * dl_allocated_bytes(ev),
                                 .at = ev->pass == DL_HOLD ? 0 : dl_sink_place(s, ev)->length};
}

static void free_all(struct dl_memory_ops *list, struct dl_template *into)
{
    for (size_t i = 0; i < list->n; i++) {
        list->items[i].at = into->length;
        dl_memory_ops_add(&into->memory, list->items[i]);
    }
    list->n = 0;
}

static void end_bucket(struct dl_sink *s, const struct dl_event *ev)
{
    struct dl_sink_buckets *const b = &s->buckets;
    struct dl_template *const into = dl_sink_place(s, ev);
    if (b->bytes < ev->bucket_bytes) return;
    free_all(&b->sent, into);
    if (s->request->job->setting.sums_beside_work) {
        const struct dl_memory_ops empty = b->sent;
        b->sent = b->filling;
        b->filling = empty;
    }
    free_all(&b->filling, into);
    b->bytes = 0;
}

void dl_sink_end_buckets(struct dl_sink *s)
{
    struct dl_template *const into = s->weights ? s->weights : s->into;
    free_all(&s->buckets.sent, into);
    free_all(&s->buckets.filling, into);
    s->buckets.bytes = 0;
}

void dl_sink_memory(struct dl_sink *s, const struct dl_event *ev)
{
    struct dl_memory_op op = op_of(s, ev);
    const bool is_in_bucket = ev->tensor == DL_TENSOR_UNREDUCED && ev->pass != DL_HOLD;
    s->note.is_its_own |= is_in_bucket;
    if (is_in_bucket && op.frees) {
        end_bucket(s, ev);
        return;
    }
    if (!op.frees && op.bytes <= 0) return;
    dl_memory_ops_add(ops_of(s, ev), op);
    if (!is_in_bucket) return;
    s->buckets.bytes += op.bytes;
    op.frees = true;
    dl_memory_ops_add(&s->buckets.filling, op);
}
