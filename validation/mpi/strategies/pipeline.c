/* pipeline.c - what flows from position to position: sent without waiting, received when its item comes. The order of
 * items is dlsim's (step.c). A message begins with when it was sent and by which item, so that who waits for it can
 * tell a bubble from a slow network, as dlsim does. */
#include <math.h>
#include <string.h>

#include "validation/mpi/collectives/swap.h"
#include "validation/mpi/layers/units.h"

struct head {
    double posted_s;
    uint32_t item, stage;
};

struct dl_sent {
    MPI_Request request;
    char *bytes;
};

static int rank_at(const struct dl_train *t, uint32_t stage)
{
    const struct dl_ranks *const ranks = &t->s->ranks;
    const uint32_t mine = dl_ranks_offset(ranks, DL_ALONG_PIPELINE, t->at[DL_AXIS_PIPELINE]);
    return (int)((uint32_t)t->rank - mine + dl_ranks_offset(ranks, DL_ALONG_PIPELINE, stage));
}

/* On the path of the micro-batch at work. */
static int rank_of(const struct dl_train *t, uint32_t position)
{
    const uint32_t path = t->micro % t->schedule.n_paths;
    return rank_at(t, t->schedule.stage_of[path * t->schedule.n_positions + position]);
}

/* Of the micro-batch at work, to one of the positions; a position hears forward from one and backward from another. */
static int tag_of(const struct dl_train *t, uint32_t to_position, bool backward)
{
    return (int)((t->micro * t->schedule.n_positions + to_position) * 2 + backward);
}

void dl_pipeline_send(struct dl_train *t, uint32_t item, uint32_t to_position, struct dl_rows rows)
{
    const bool backward = t->schedule.items[t->at[DL_AXIS_PIPELINE]][item].kind != DL_ITEM_F;
    const struct head head = {dl_now_s(&t->timeline), item, t->at[DL_AXIS_PIPELINE]};
    const size_t bytes = rows.n * rows.width * sizeof *rows.at;
    DL_GROW(t->sent, t->n_sent, t->sent_capacity);
    struct dl_sent *const p = &t->sent[t->n_sent++];
    p->bytes = dl_alloc(sizeof head + bytes);
    memcpy(p->bytes, &head, sizeof head);
    memcpy(p->bytes + sizeof head, rows.at, bytes);
    dl_rows_free(&rows);
    MPI_Isend(p->bytes, (int)(sizeof head + bytes), MPI_BYTE, rank_of(t, to_position), tag_of(t, to_position, backward),
              t->workers, &p->request);
}

/* While nobody had sent it, it was a bubble; then it was on its way. */
static void book(struct dl_train *t, uint32_t item, const struct head *head, double from_s, double bytes)
{
    struct dl_rank_timeline *const l = &t->timeline;
    const double to_s = dl_now_s(l), posted_s = fmin(fmax(head->posted_s, from_s), to_s);
    l->by_cause[DL_CAUSE_BUBBLE] += posted_s - from_s;
    l->by_cause[DL_CAUSE_PIPELINE] -= posted_s - from_s;
    if (!l->records) return;
    struct dl_moment wait = {.kind = DL_SLICE_WAIT,
                             .stage = t->at[DL_AXIS_PIPELINE],
                             .replica = t->at[DL_AXIS_DATA],
                             .item = item,
                             .cause = DL_CAUSE_BUBBLE,
                             .from_s = from_s,
                             .to_s = posted_s};
    if (wait.to_s > wait.from_s) dl_add_moment(&l->moments, wait);
    wait.from_s = posted_s;
    wait.to_s = to_s;
    wait.cause = DL_CAUSE_PIPELINE;
    dl_add_moment(&l->moments, wait);
    dl_add_moment(&l->moments, (struct dl_moment){.kind = DL_SLICE_SEND,
                                                  .stage = head->stage,
                                                  .replica = wait.replica,
                                                  .item = head->item,
                                                  .to_stage = wait.stage,
                                                  .from_s = head->posted_s,
                                                  .to_s = to_s,
                                                  .bytes = bytes});
}

/* That flow between two positions, both ways: what the first of them makes. Some of it, where tensor ranks cut it. */
static size_t most_values(const struct dl_train *t, uint32_t one, uint32_t other)
{
    const struct dl_position *const first = &t->positions[one < other ? one : other];
    return (size_t)t->model.layers[first->end_layer - 1].output_elements;
}

struct dl_rows dl_pipeline_receive(struct dl_train *t, uint32_t item, uint32_t from_position)
{
    const struct dl_item *const at = &t->schedule.items[t->at[DL_AXIS_PIPELINE]][item];
    const uint32_t me = t->schedule.position_of[t->at[DL_AXIS_PIPELINE] * t->s->chunks + at->chunk];
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_PIPELINE);
    const double from_s = t->timeline.since_s;
    const int from = rank_of(t, from_position), tag = tag_of(t, me, at->kind != DL_ITEM_F);
    const size_t most = sizeof(struct head) + most_values(t, from_position, me) * sizeof(dl_real);
    MPI_Status status;
    int n = 0;
    char *const bytes = dl_alloc(most);
    MPI_Recv(bytes, (int)most, MPI_BYTE, from, tag, t->workers, &status);
    MPI_Get_count(&status, MPI_BYTE, &n);
    struct head head;
    memcpy(&head, bytes, sizeof head);
    const size_t n_rows = dl_rows_outside(t).n, n_values = ((size_t)n - sizeof head) / sizeof(dl_real);
    const struct dl_rows rows = dl_rows_new(n_rows, n_values / n_rows);
    memcpy(rows.at, bytes + sizeof head, n_values * sizeof *rows.at);
    dl_free(bytes);
    book(t, item, &head, from_s, (double)n);
    dl_switch_cause(&t->timeline, before);
    return rows;
}

void dl_pipeline_finish(struct dl_train *t)
{
    for (size_t i = 0; i < t->n_sent; i++) {
        MPI_Wait(&t->sent[i].request, MPI_STATUS_IGNORE);
        dl_free(t->sent[i].bytes);
    }
    t->n_sent = 0;
}

/* Where the model is held twice, two stages hold the same layers, so the same buckets, and each has the gradients of
 * half of the micro-batches. */
static void sum(struct dl_train *t)
{
    const uint32_t stages = t->s->ways[DL_AXIS_PIPELINE];
    const int partner = rank_at(t, stages - 1 - t->at[DL_AXIS_PIPELINE]);
    if (t->schedule.n_paths == 1) return;
    const enum dl_cause before = dl_switch_cause(&t->timeline, DL_CAUSE_PIPELINE);
    dl_pacer_reach(t->timeline.pacer, DL_START, DL_CAUSE_PIPELINE);
    for (size_t i = 0; i < t->n_buckets; i++) {
        const struct dl_bucket *const b = &t->buckets[i];
        dl_real *const own = dl_own_gradients(b), *const heard = dl_alloc((b->own.n + 1) * sizeof *heard);
        dl_swap(t->workers, DL_MPI_REAL, (struct dl_outgoing){own, b->own.n, partner},
                (struct dl_incoming){heard, b->own.n, partner});
        for (size_t j = 0; j < b->own.n; j++) own[j] += heard[j];
        dl_free(heard);
    }
    dl_switch_cause(&t->timeline, before);
}

const struct dl_real_strategy dl_real_pipeline = {.name = "pipeline", .sum = sum};
