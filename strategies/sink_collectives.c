/* sink_collectives.c - how long collectives of ranks that go in step take, each kind and size priced once. */
#include <math.h>

#include "strategies/sink.h"

enum dl_status dl_sink_time(struct dl_sink *s, const struct dl_wish *wish, double crowding, double *seconds,
                            struct dl_error *err)
{
    struct dl_choice choice;
    if (dl_choose(s->request->estimator, wish, s->arena, &choice, err)) return err->status;
    const double alone_s = fmax(choice.estimate.wire_s, choice.estimate.pace.pump_s);
    const double crowded_s = fmax(crowding * choice.estimate.wire_s, choice.estimate.pace.pump_s);
    *seconds = choice.estimate.time_s - alone_s + crowded_s;
    return DL_OK;
}

/* A message from every rank to the next is a step of a ring's all-gather, which has one less than ranks. */
static enum dl_status choose(struct dl_sink *s, const struct dl_event *ev, double *seconds, struct dl_error *err)
{
    const struct dl_group *const group = &s->groups[ev->axis];
    const bool shifts = ev->op == DL_SENDRECV;
    const struct dl_wish wish = {.op = shifts ? DL_ALLGATHER : ev->op,
                                 .algorithm = shifts ? "ring" : "auto",
                                 .protocol = "auto",
                                 .group = group,
                                 .bytes = shifts ? ev->bytes * group->n : ev->bytes,
                                 .payload = ev->payload};
    double crowding = 1;
    if (ev->once) return dl_sink_dispatch(s, ev->bytes, seconds, err);
    if (dl_sink_crowding(s, ev->axis, &crowding, err) || dl_sink_time(s, &wish, crowding, seconds, err))
        return err->status;
    if (shifts) *seconds /= group->n - 1;
    return DL_OK;
}

enum dl_status dl_sink_price(struct dl_sink *s, const struct dl_event *ev, double *seconds, struct dl_error *err)
{
    for (size_t i = 0; i < s->n_prices; i++)
        if (s->prices[i].op == ev->op && s->prices[i].axis == ev->axis && s->prices[i].bytes == ev->bytes &&
            s->prices[i].once == ev->once) {
            *seconds = s->prices[i].seconds;
            return DL_OK;
        }
    if (choose(s, ev, seconds, err)) return err->status;
    DL_GROW(s->prices, s->n_prices, s->prices_capacity);
    s->prices[s->n_prices++] = (struct dl_priced_collective){
        .op = ev->op, .axis = ev->axis, .once = ev->once, .bytes = ev->bytes, .seconds = *seconds};
    return DL_OK;
}
