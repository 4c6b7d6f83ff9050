#include "strategies/schedules/zero_bubble.h"

#include <math.h>

#include "strategies/schedules/greedy.h"

static uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

void dl_schedule_place_v(struct dl_schedule *s)
{
    for (uint32_t stage = 0; stage < s->stages; stage++) {
        dl_schedule_place(s, 0, stage, stage, 0);
        dl_schedule_place(s, 0, 2 * s->stages - 1 - stage, stage, 1);
    }
}

void dl_zero_bubble_append(struct dl_schedule *s, uint32_t stage, uint32_t warm_up, uint32_t delay)
{
    const uint32_t m = s->micros, first_steady = smaller(warm_up, m);
    for (uint32_t k = 0; k < first_steady; k++) dl_schedule_append(s, stage, DL_ITEM_F, k, 0);
    for (uint32_t k = 0; k < m; k++) {
        dl_schedule_append(s, stage, DL_ITEM_B, k, 0);
        if (k >= delay) dl_schedule_append(s, stage, DL_ITEM_W, k - delay, 0);
        if (k + first_steady < m) dl_schedule_append(s, stage, DL_ITEM_F, k + first_steady, 0);
    }
    for (uint32_t k = m - smaller(delay, m); k < m; k++) dl_schedule_append(s, stage, DL_ITEM_W, k, 0);
}

/* One of the orders to choose from. Policy NULL: the hand-made one. */
static void make_one(const struct dl_zero_bubble *z, const struct dl_schedule_request *request,
                     const struct dl_greedy *policy, struct dl_arena *arena, struct dl_schedule *out)
{
    dl_schedule_init(out, request, true, arena);
    if (z->place) z->place(out);
    if (policy)
        dl_schedule_greedy(out, request, policy);
    else
        for (uint32_t stage = 0; stage < request->stages; stage++) z->hand_made(out, stage);
}

static double try_one(const struct dl_zero_bubble *z, const struct dl_schedule_request *request,
                      const struct dl_greedy *policy)
{
    struct dl_arena *const scratch = dl_arena_new();
    struct dl_schedule s;
    make_one(z, request, policy, scratch, &s);
    const double span_s = dl_schedule_span_s(&s, request);
    dl_arena_free(scratch);
    return span_s;
}

/* The best of the greedy orders if one is shorter than best_s. A greedy order needs times to play with. */
static bool improve(const struct dl_zero_bubble *z, const struct dl_schedule_request *request, double best_s,
                    struct dl_greedy *best)
{
    static const double patience[] = {0, 0.5, 1};
    static const enum dl_greedy_preference preferences[] = {DL_GREEDY_BACKWARD, DL_GREEDY_FORWARD, DL_GREEDY_OTHER};
    const double work_s = request->forward_s + request->backward_s + request->weight_s;
    const double ideal_s = work_s * request->micros * request->chunks;
    const bool has_times = request->forward_s > 0 && request->backward_s > 0 && request->weight_s > 0;
    struct dl_greedy policy = *best;
    bool found = false;
    for (size_t i = 0; has_times && best_s > ideal_s && i < DL_COUNT(preferences) * DL_COUNT(patience); i++) {
        policy.prefer = preferences[i / DL_COUNT(patience)];
        policy.patience = patience[i % DL_COUNT(patience)];
        const double span_s = try_one(z, request, &policy);
        if (span_s >= best_s) continue;
        best_s = span_s;
        *best = policy;
        found = true;
    }
    return found;
}

void dl_zero_bubble_make(const struct dl_zero_bubble *z, const struct dl_schedule_request *request,
                         struct dl_arena *arena, struct dl_schedule *out)
{
    const uint32_t wanted = z->live(request, 0), allowed = request->max_live ? request->max_live : wanted;
    const uint32_t limit = smaller(wanted, allowed);
    struct dl_greedy policy = {.limit = limit < request->chunks ? request->chunks : limit};
    const bool hand_made_fits = limit == wanted;
    const double hand_made_s = hand_made_fits ? try_one(z, request, NULL) : INFINITY;
    const bool greedy_wins = improve(z, request, hand_made_s, &policy) || !hand_made_fits;
    make_one(z, request, greedy_wins ? &policy : NULL, arena, out);
}
