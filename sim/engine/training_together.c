/* training_together.c - exchanges of ranks in lockstep, played where they may meet others on their links.
 *
 * They are of one crew (tensor and context ranks), or of a window of crews (experts). A crew is in one at a time: it
 * works beside it at most until the next. */
#include <math.h>

#include "sim/engine/training_parts.h"

/* Of those that are simulated. */
static uint32_t n_crews_of(const struct dl_training *t, const struct dl_in_step *what)
{
    return t->request.one_replica ? 1 : dl_in_step_replicas(t->request.setting, what->along);
}

static uint32_t n_groups(const struct dl_training *t, const struct dl_in_step *what)
{
    return dl_in_step_n_groups(t->request.setting, what->along);
}

static uint32_t most_groups(const struct dl_training *t) { return t->n_members; }

static struct circle *circle_of(struct dl_training *t, const struct crew *c, const struct dl_in_step *what)
{
    const uint32_t n = n_crews_of(t, what), index = (uint32_t)(c - t->crews);
    return n == 1 ? &t->circles[index] : &t->circles[t->n_crews + index - c->replica % n];
}

static struct crew *first_crew(struct dl_training *t, const struct circle *at)
{
    return &t->crews[(uint32_t)(at - t->circles) % t->n_crews];
}

void dl_training_open_circles(struct dl_training *t)
{
    t->circles = dl_alloc(2 * (size_t)t->n_crews * sizeof *t->circles);
}

static void close_circle(const struct dl_training *t, struct circle *at)
{
    for (uint32_t i = 0; at->running && i < most_groups(t); i++) {
        dl_exchange_free(at->running[i]);
        dl_exchange_free(at->ended[i]);
    }
    for (size_t i = 0; i < at->n_chosen; i++) dl_free(at->chosen[i].choices);
    dl_free(at->chosen);
    dl_free(at->running);
    dl_free(at->ended);
}

void dl_training_close_circles(struct dl_training *t)
{
    for (size_t i = 0; i < 2 * (size_t)t->n_crews; i++) close_circle(t, &t->circles[i]);
    dl_free(t->circles);
}

/* ---- which algorithm ---- */

static void choose_all(struct dl_training *t, const struct crew *first, const struct dl_in_step *what,
                       struct dl_choice *out)
{
    const struct dl_training_request *const q = &t->request;
    const struct dl_seats seats = {q->setting, q->device_of_rank, q->estimator->topology};
    const struct dl_group *const groups =
        dl_in_step_groups(&seats, what->along, first->stage, first->replica, q->arena);
    for (uint32_t i = 0; i < n_groups(t, what) && !t->err->status; i++) {
        const struct dl_wish wish = {.op = what->op,
                                     .algorithm = "auto",
                                     .protocol = "auto",
                                     .group = &groups[i],
                                     .bytes = what->bytes,
                                     .payload = what->payload};
        dl_choose(q->estimator, &wish, q->arena, &out[i], t->err);
    }
}

static const struct dl_choice *choices_for(struct dl_training *t, struct circle *at)
{
    for (size_t i = 0; i < at->n_chosen; i++)
        if (at->chosen[i].what == at->what) return at->chosen[i].choices;
    DL_GROW(at->chosen, at->n_chosen, at->chosen_capacity);
    struct chosen_in_step *const c = &at->chosen[at->n_chosen++];
    *c = (struct chosen_in_step){.what = at->what, .choices = dl_alloc(n_groups(t, at->what) * sizeof *c->choices)};
    choose_all(t, first_crew(t, at), at->what, c->choices);
    return c->choices;
}

/* ---- together ---- */

double dl_training_circle_alone_s(const struct dl_training *t, const struct circle *at)
{
    return fmin(now_s(t) - at->start.begun_s, at->alone_s);
}

static void ended(void *user, uint32_t index)
{
    struct dl_training *const t = user;
    struct circle *const at = &t->circles[index];
    if (--at->n_running || t->over) return;
    struct crew *const first = first_crew(t, at);
    const struct dl_in_step *const what = at->what;
    const struct start began = at->start;
    const double alone_s = dl_training_circle_alone_s(t, at);
    at->start.n_joined = 0; /* who goes on may come to the next one at once */
    for (uint32_t i = 0; i < n_crews_of(t, what); i++) {
        first[i].is_in = NULL;
        dl_training_retime(t, &first[i]);
    }
    for (uint32_t i = 0; i < n_crews_of(t, what); i++) {
        if (!first[i].waits_for_circle) continue;
        dl_training_end_wait(t, &first[i], &began, what->cause, alone_s);
        dl_training_go_on(t, &first[i]);
    }
}

static void start(struct dl_training *t, struct circle *at)
{
    const struct dl_choice *const choices = choices_for(t, at);
    const uint32_t n = n_groups(t, at->what);
    if (t->err->status) return;
    if (!at->running) {
        at->running = dl_alloc(most_groups(t) * sizeof *at->running);
        at->ended = dl_alloc(most_groups(t) * sizeof *at->ended);
    }
    at->n_running = n;
    at->alone_s = 0;
    for (uint32_t i = 0; i < n; i++) {
        at->alone_s = fmax(at->alone_s, choices[i].estimate.time_s);
        dl_exchange_free(at->ended[i]);
        at->ended[i] = at->running[i];
        at->running[i] = dl_exchange_start(&(struct dl_exchange_spec){.engine = t->request.engine,
                                                                      .wire = t->request.wire,
                                                                      .collective = &choices[i].collective,
                                                                      .pace = &choices[i].estimate.pace,
                                                                      .fluid = !t->request.by_message,
                                                                      .is_in_step = true,
                                                                      .done = ended,
                                                                      .user = t,
                                                                      .tag = (uint32_t)(at - t->circles)});
    }
    for (uint32_t i = 0; i < n_crews_of(t, at->what); i++) dl_training_retime(t, first_crew(t, at) + i);
}

void dl_training_join_circle(struct dl_training *t, struct crew *c, const struct dl_in_step *what)
{
    struct circle *const at = circle_of(t, c, what);
    at->what = what;
    c->is_in = at;
    dl_start_join(&at->start, &c->delays, now_s(t));
    if (at->start.n_joined == n_crews_of(t, what)) start(t, at);
}

bool dl_training_may_leave_circle(struct dl_training *t, struct crew *c)
{
    if (!c->is_in) return true;
    c->waits_for_circle = true;
    c->waits_since_s = now_s(t);
    return false;
}
