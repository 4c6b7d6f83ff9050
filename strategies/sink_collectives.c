/* sink_collectives.c - how long collectives of ranks in lockstep take, each kind and size priced once. */
#include "sim/collective/effort.h"
#include "strategies/sink.h"

enum dl_status dl_sink_time(struct dl_sink *s, const struct dl_wish *wish, double crowding, struct dl_choice *choice,
                            double *seconds, struct dl_error *err)
{
    if (dl_choose(s->request->estimator, wish, s->arena, choice, err)) return err->status;
    *seconds = dl_estimate_crowded_s(&choice->estimate, crowding);
    return DL_OK;
}

/* A message from every rank to the next is a step of a ring's all-gather, which has one less than ranks. */
static enum dl_status choose(struct dl_sink *s, const struct dl_event *ev, struct dl_priced_collective *out,
                             struct dl_error *err)
{
    const struct dl_group *const group = dl_sink_groups(s, ev->members.digits)->all;
    const bool shifts = ev->op == DL_SENDRECV;
    const struct dl_wish wish = {.op = shifts ? DL_ALLGATHER : ev->op,
                                 .algorithm = shifts ? "ring" : "auto",
                                 .protocol = "auto",
                                 .group = group,
                                 .bytes = shifts ? ev->bytes * group->n : ev->bytes,
                                 .payload = ev->payload};
    struct dl_choice choice;
    double crowding = 1;
    if (ev->once) return dl_sink_dispatch(s, ev->bytes, &out->seconds, err);
    if (dl_sink_crowding(s, ev->members.digits, &crowding, err) ||
        dl_sink_time(s, &wish, crowding, &choice, &out->seconds, err))
        return err->status;
    if (shifts) out->seconds /= group->n - 1;
    out->what.n_bundles = dl_count_bundles(&choice.collective, s->request->estimator->fluid);
    return DL_OK;
}

/* Shifts and tokens that go to nodes first are timed in any case, as is what goes on beside a whole layer. */
static enum dl_status find_out_whether_played(struct dl_sink *s, const struct dl_event *ev, bool *out,
                                              struct dl_error *err)
{
    const bool may_be = s->request->most_played.collectives > 0 && ev->op != DL_SENDRECV && !ev->once;
    struct dl_sink_groups *const groups = dl_sink_groups(s, ev->members.digits);
    if (groups->all->n == 1) return DL_OK;
    if (!may_be) return dl_sink_check_changes(s, ev, err);
    if (!groups->is_known && dl_in_step_meets(s->request, groups->along, &groups->meets, err)) return err->status;
    groups->is_known = true;
    *out = groups->meets || groups->crosses;
    return DL_OK;
}

static bool is_of(const struct dl_priced_collective *known, const struct dl_event *ev)
{
    const struct dl_comm *const what = &known->what;
    return what->op == ev->op && dl_members_equal(&what->members, &ev->members) && what->bytes == ev->bytes &&
           dl_payload_equal(&what->payload, &ev->payload) && what->cause == ev->cause && known->once == ev->once;
}

const struct dl_priced_collective *dl_sink_price(struct dl_sink *s, const struct dl_event *ev, struct dl_error *err)
{
    for (size_t i = 0; i < s->n_prices; i++)
        if (is_of(s->prices[i], ev)) return s->prices[i];
    struct dl_priced_collective *const p = dl_arena_alloc(s->arena, sizeof *p);
    *p = (struct dl_priced_collective){.what = {.op = ev->op,
                                                .channel = DL_CHANNEL_LOCKSTEP,
                                                .members = ev->members,
                                                .bytes = ev->bytes,
                                                .payload = ev->payload,
                                                .cause = ev->cause},
                                       .once = ev->once};
    if (choose(s, ev, p, err) || find_out_whether_played(s, ev, &p->is_played, err)) return NULL;
    DL_GROW(s->prices, s->n_prices, s->prices_capacity);
    return s->prices[s->n_prices++] = p;
}
