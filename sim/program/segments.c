#include "sim/program/segments.h"

#include <math.h>

#include "sim/program/segment_sums.h"

/* ---- what is priced ---- */

/* What is longer than the work beside it, which has had less of the device meanwhile. */
static void add_exposed(const struct dl_comm *comm, const struct dl_exposed *exposed, struct dl_priced_work *out)
{
    const char *const name = comm->op == DL_COPY ? dl_path_copy_name(comm->path) : dl_op_name(comm->op);
    out->is_network = true;
    out->items[out->n++] = (struct dl_instruction){.name = name, .cause = comm->cause, .device_s = exposed->longer_s};
    if (exposed->taken_s > 0)
        out->items[out->n++] =
            (struct dl_instruction){.name = name, .cause = DL_CAUSE_INTERFERENCE, .device_s = exposed->taken_s};
}

void dl_price_on_device(struct dl_streams *s, const struct dl_instruction *i, struct dl_priced_work *out)
{
    struct dl_exposed exposed;
    out->n = 0;
    out->is_beside = out->is_network = false;
    if (i->kind == DL_DO) {
        out->items[out->n++] = *i;
        dl_streams_do(s, i);
    } else if (dl_may_be_priced(i, s->calls) && i->kind == DL_START) {
        dl_streams_start(s, i->call);
    } else if (dl_may_be_priced(i, s->calls) && i->kind == DL_WAIT) {
        out->is_beside = dl_streams_is_beside(s, i->call);
        if (dl_streams_wait(s, i->call, &exposed)) add_exposed(&s->calls[i->call], &exposed, out);
    }
}

/* The first of those on its channel that are under way at the start of the one that is waited for, and that start. */
static size_t first_in_line(const struct dl_template *t, size_t wait, const struct dl_comm *calls, size_t *start)
{
    const uint32_t call = t->instructions[wait].call;
    size_t first = wait;
    *start = wait;
    for (size_t i = wait; i-- > 0;) {
        const struct dl_instruction *const at = &t->instructions[i];
        const bool found = *start != wait;
        if (!dl_may_be_priced(at, calls) || calls[at->call].channel != calls[call].channel) continue;
        if (found && at->kind == DL_WAIT) break;
        if (at->kind != DL_START || (!found && at->call != call)) continue;
        if (!found) *start = i;
        first = i;
    }
    return first;
}

static void price_wait(const struct dl_template *t, size_t at, const struct dl_comm *calls, struct dl_priced_work *out)
{
    struct dl_streams s = {.calls = calls};
    size_t start;
    for (size_t i = first_in_line(t, at, calls, &start); i <= at; i++) dl_price_on_device(&s, &t->instructions[i], out);
    if (out->n && start < at) out->items[0].host_s = t->instructions[start].host_s;
    dl_streams_release(&s);
}

void dl_priced_work(const struct dl_template *t, size_t at, const struct dl_comm *calls, struct dl_priced_work *out)
{
    const struct dl_instruction *const i = &t->instructions[at];
    out->n = 0;
    out->is_beside = out->is_network = false;
    if (i->kind == DL_DO)
        out->items[out->n++] = *i;
    else if (i->kind == DL_WAIT && dl_may_be_priced(i, calls))
        price_wait(t, at, calls, out);
}

bool dl_template_is_single(const struct dl_template *t)
{
    return t->n_instructions < 2 || (t->n_instructions == 2 && dl_may_be_priced(&t->instructions[1], t->calls));
}

/* ---- on a slow device ---- */

double dl_slowed_s(double seconds, double network_s, double pace) { return seconds * pace - network_s * (pace - 1); }

static bool is_of_network(enum dl_cause cause) { return cause >= DL_CAUSE_TENSOR && cause <= DL_CAUSE_OFFLOAD; }

/* Work that has a cause of the network, such as packing, shares with it. */
double dl_segment_slowed_s(const struct dl_segment *s, enum dl_cause cause, double pace)
{
    double all_s = 0;
    if (pace == 1 || s->network_s <= 0 || !is_of_network(cause)) return s->by_cause[cause] * pace;
    for (int i = DL_CAUSE_TENSOR; i <= DL_CAUSE_OFFLOAD; i++) all_s += s->by_cause[i];
    return dl_slowed_s(s->by_cause[cause], s->by_cause[cause] / all_s * s->network_s, pace);
}

/* ---- sums ---- */

void dl_segment_add_priced(struct dl_segment *s, const struct dl_priced_work *work)
{
    for (size_t k = 0; k < work->n; k++) dl_segment_add(s, &work->items[k]);
    if (work->is_network) s->network_s += work->items[0].device_s;
}

void dl_segment_add_times(struct dl_segment *to, const struct dl_segment *s, double times)
{
    to->seconds += times * s->seconds;
    to->network_s += times * s->network_s;
    for (int i = 0; i < DL_N_CAUSES; i++) to->by_cause[i] += times * s->by_cause[i];
    for (int i = 0; i < DL_N_GROUNDS; i++) to->by_ground[i] += times * s->by_ground[i];
    for (int i = 0; i < DL_N_CLASSES; i++) to->by_class[i] += times * s->by_class[i];
    to->flop += times * s->flop;
    for (int i = 0; i < DL_N_FLOP_COUNTS; i++) to->counted_flop[i] += times * s->counted_flop[i];
}

static void wait_for_host(struct dl_segment *total, double seconds)
{
    total->by_cause[DL_CAUSE_HOST] += seconds;
    total->seconds += seconds;
}

static void sum_instructions(const struct dl_template *t, size_t first, size_t end, struct dl_streams *s,
                             struct dl_segment *total)
{
    struct dl_priced_work work;
    for (size_t i = first; i < end; i++) {
        const struct dl_instruction *const at = &t->instructions[i];
        if (at->kind != DL_DO && !dl_may_be_priced(at, s->calls)) { /* when it begins others decide */
            s->host_s += at->host_s;
            if (at->kind == DL_DRAIN) s->host_s = fmax(s->host_s, s->device_s);
            continue;
        }
        wait_for_host(total, dl_streams_issue(s, at->host_s));
        if (at->kind == DL_DO) { /* most are: no copy of it */
            dl_streams_do(s, at);
            dl_segment_add(total, at);
            continue;
        }
        dl_price_on_device(s, at, &work);
        dl_segment_add_priced(total, &work);
    }
}

/* Time after time, until the next takes the same. */
static void sum_repeated(const struct dl_template *t, const struct dl_repeated *r, struct dl_streams *s,
                         struct dl_segment *total)
{
    size_t done = 0;
    while (done < r->times) {
        struct dl_streams_round round;
        struct dl_segment one = {0};
        dl_streams_begin_round(s, &round);
        sum_instructions(t, r->first, r->first + r->n, s, &one);
        dl_streams_end_round(s, one.seconds, r->times - done, &round);
        dl_segment_add_times(total, &one, (double)round.times);
        done += round.times;
    }
}

/* Host and device begin together. What the device waits for its host is time of what it has started, too. */
void dl_template_sum(struct dl_template *t, const struct dl_comm *calls)
{
    struct dl_streams s = {.calls = calls};
    struct dl_segment total = {0};
    size_t done = 0;
    for (size_t i = 0; i < t->n_repeated; i++) {
        if (t->repeated[i].times == 1) continue;
        sum_instructions(t, done, t->repeated[i].first, &s, &total);
        sum_repeated(t, &t->repeated[i], &s, &total);
        done = t->repeated[i].first + t->repeated[i].n;
    }
    sum_instructions(t, done, t->n_instructions, &s, &total);
    t->total = total;
    dl_streams_release(&s);
}
