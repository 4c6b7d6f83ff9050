/* sink_collectives.c - how long collectives of ranks in lockstep take, each kind and size priced once. */
#include "sim/collective/effort.h"
#include "sim/collective/kept.h"
#include "strategies/sink.h"

enum dl_status dl_sink_time(struct dl_sink *s, const struct dl_wish *wish, double crowding, struct dl_choice *choice,
                            double *seconds, struct dl_error *err)
{
    const struct dl_together *const kept =
        dl_choose_together(s->request->estimator, wish, wish->group->device, wish->group->n, 1, err);
    if (!kept) return err->status;
    *choice = kept->choices[0];
    *seconds = dl_estimate_crowded_s(&choice->estimate, crowding);
    return DL_OK;
}

/* A message from every rank to the next is a step of a ring's all-gather, which has one less than ranks. */
static enum dl_status choose(struct dl_sink *s, const struct dl_event *ev, struct dl_comm *out, struct dl_error *err)
{
    const struct dl_group *const group = dl_sink_groups(s, ev->members.digits)->all;
    const bool shifts = ev->op == DL_SENDRECV;
    const struct dl_wish wish = {.op = shifts ? DL_ALLGATHER : ev->op,
                                 .algorithm = shifts ? "ring" : "auto",
                                 .protocol = "auto",
                                 .group = group,
                                 .bytes = shifts ? ev->bytes * group->n : ev->bytes,
                                 .back_fraction = ev->back_fraction,
                                 .payload = ev->payload};
    struct dl_choice choice;
    double crowding = 1;
    if (ev->once) return dl_sink_dispatch(s, ev, &out->alone_s, err);
    if (dl_sink_crowding(s, ev->members.digits, &crowding, err) ||
        dl_sink_time(s, &wish, crowding, &choice, &out->alone_s, err))
        return err->status;
    if (shifts) out->alone_s /= group->n - 1;
    out->n_bundles = dl_count_bundles(&choice.collective, s->request->estimator->fluid);
    return DL_OK;
}

static enum dl_channel channel_of(const struct dl_event *ev)
{
    return ev->kind == DL_EV_COLLECTIVE && ev->async ? DL_CHANNEL_BESIDE : DL_CHANNEL_LOCKSTEP;
}

static bool is_of(const struct dl_priced_collective *p, const struct dl_event *ev)
{
    const struct dl_comm *const known = &p->what;
    return p->part == ev->part && p->weights == ev->weights && known->op == ev->op &&
           known->channel == channel_of(ev) && dl_members_equal(&known->members, &ev->members) &&
           known->bytes == ev->bytes && known->back_fraction == ev->back_fraction &&
           dl_payload_equal(&known->payload, &ev->payload) && known->cause == ev->cause && known->once == ev->once;
}

struct dl_priced_collective *dl_sink_price(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    for (size_t i = 0; i < s->n_prices; i++)
        if (is_of(s->prices[i], ev)) return s->prices[i];
    struct dl_priced_collective *const p = dl_arena_alloc(s->arena, sizeof *p);
    *p = (struct dl_priced_collective){.what = {.op = ev->op,
                                                .channel = channel_of(ev),
                                                .members = ev->members,
                                                .bytes = ev->bytes,
                                                .back_fraction = ev->back_fraction,
                                                .payload = ev->payload,
                                                .cause = ev->cause,
                                                .once = ev->once},
                                       .part = ev->part,
                                       .weights = ev->weights,
                                       .call = DL_EVERY_CALL};
    if (choose(s, ev, &p->what, err)) return NULL;
    p->what.taken = s->request->device->taken_by_exchanges;
    DL_GROW(s->prices, s->n_prices, s->prices_capacity);
    return s->prices[s->n_prices++] = p;
}
