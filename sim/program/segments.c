#include "sim/program/segments.h"

#include <math.h>

#include "sim/program/streams.h"

/* ---- what is priced ---- */

bool dl_may_be_priced(const struct dl_instruction *i, const struct dl_comm *calls)
{
    const bool has_call = i->kind == DL_WAIT || i->kind == DL_START;
    return has_call && i->call != DL_EVERY_CALL && dl_comm_may_be_priced(&calls[i->call]);
}

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

static bool is_kernel(const struct dl_instruction *i) { return i->kind == DL_DO && i->cause != DL_CAUSE_HOST; }

/* On a device whose host is far ahead. */
static void price(struct dl_streams *s, const struct dl_instruction *i, struct dl_priced_work *out)
{
    struct dl_exposed exposed;
    out->n = 0;
    out->is_beside = out->is_network = false;
    if (i->kind == DL_DO) {
        out->items[out->n++] = *i;
        dl_streams_work(s, i->device_s, is_kernel(i));
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
    for (size_t i = first_in_line(t, at, calls, &start); i <= at; i++) price(&s, &t->instructions[i], out);
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

static inline void add_to_segment(struct dl_segment *s, const struct dl_instruction *i)
{
    s->by_cause[i->cause] += i->device_s;
    s->seconds += i->device_s;
    s->flop += i->flop;
    for (int count = 0; count < DL_N_FLOP_COUNTS; count++) s->counted_flop[count] += i->counted_flop[count];
    s->by_ground[i->ground] += i->device_s;
}

static void add_priced(struct dl_segment *s, const struct dl_priced_work *work)
{
    for (size_t k = 0; k < work->n; k++) add_to_segment(s, &work->items[k]);
    if (work->is_network) s->network_s += work->items[0].device_s;
}

static void wait_for_host(struct dl_segment *total, double seconds)
{
    total->by_cause[DL_CAUSE_HOST] += seconds;
    total->seconds += seconds;
}

/* Host and device begin together. What the device waits for its host is time of what it has started, too. */
void dl_template_sum(struct dl_template *t, const struct dl_comm *calls)
{
    struct dl_streams s = {.calls = calls};
    struct dl_priced_work work;
    struct dl_segment total = {0};
    for (size_t i = 0; i < t->n_instructions; i++) {
        const struct dl_instruction *const at = &t->instructions[i];
        if (at->kind != DL_DO && !dl_may_be_priced(at, calls)) { /* when it begins others decide */
            s.host_s += at->host_s;
            continue;
        }
        wait_for_host(&total, dl_streams_issue(&s, at->host_s));
        if (at->kind == DL_DO) { /* most are: no copy of it */
            dl_streams_work(&s, at->device_s, is_kernel(at));
            add_to_segment(&total, at);
            continue;
        }
        price(&s, at, &work);
        add_priced(&total, &work);
    }
    t->total = total;
    dl_streams_release(&s);
}

/* ---- parts ---- */

static void add_part(struct dl_parts *p, struct dl_part part)
{
    DL_GROW(p->items, p->n, p->capacity);
    p->items[p->n++] = part;
}

static struct dl_part *part_at(struct dl_parts *p, size_t at)
{
    if (!p->n || p->items[p->n - 1].kind != DL_DO) add_part(p, (struct dl_part){.kind = DL_DO, .first = at});
    p->items[p->n - 1].end = at + 1;
    return &p->items[p->n - 1];
}

/* Clocks `behind` are those of a device that was free long before its host began. */
static void add_kernel(struct dl_parts *p, size_t at, const struct dl_instruction *i, struct dl_streams *behind)
{
    struct dl_part *const part = part_at(p, at);
    dl_streams_issue(behind, i->host_s);
    dl_streams_work(behind, i->device_s, is_kernel(i));
    part->host_s += i->host_s;
    part->behind_host_s = behind->device_s;
    part->behind_network_s = behind->network_s;
    add_to_segment(&part->segment, i);
}

/* What a call that is not open costs is known from the device alone. */
static void wait_behind(struct dl_streams *behind, uint32_t call, const struct dl_priced_work *work)
{
    struct dl_exposed exposed;
    if (dl_streams_wait(behind, call, &exposed)) return;
    for (size_t k = 0; k < work->n; k++) dl_streams_work(behind, work->items[k].device_s, false);
    if (work->is_network) behind->network_s += work->items[0].device_s;
}

static void add_call(struct dl_parts *p, size_t at, const struct dl_instruction *i, const struct dl_priced_work *work,
                     struct dl_streams *behind)
{
    if (i->kind == DL_START) {
        dl_streams_issue(behind, i->host_s);
        dl_streams_start(behind, i->call);
    } else {
        wait_behind(behind, i->call, work);
    }
    if (!work->n && i->host_s == 0) return;
    struct dl_part *const part = part_at(p, at);
    part->host_s += i->host_s;
    part->behind_host_s = fmax(behind->device_s, 0);
    part->behind_network_s = behind->network_s;
    add_priced(&part->segment, work);
}

static bool is_planned(const struct dl_plan *plan, const struct dl_comm *calls, uint32_t call, bool on_group)
{
    return plan->calls && plan->calls[call] && (on_group || calls[call].op == DL_COPY);
}

/* Of lockstep groups that the plan has, or of others; returns whether collectives are simulated. */
static bool fuse(const struct dl_template *t, const struct dl_plan *plan, bool on_group, struct dl_parts *out)
{
    struct dl_streams device = {.calls = t->calls}, behind = {.calls = t->calls};
    bool any = false;
    struct dl_priced_work work;
    out->n = 0;
    dl_streams_reset(&behind, 0, -INFINITY);
    for (size_t i = 0; i < t->n_instructions; i++) {
        const struct dl_instruction *const at = &t->instructions[i];
        const bool may_be_priced = dl_may_be_priced(at, t->calls),
                   is_simulated = may_be_priced && is_planned(plan, t->calls, at->call, on_group);
        any |= is_simulated && t->calls[at->call].op != DL_COPY;
        if (at->kind != DL_DO && (!may_be_priced || is_simulated)) {
            add_part(out, (struct dl_part){.kind = at->kind, .call = at->call, .host_s = at->host_s});
            dl_streams_reset(&behind, 0, -INFINITY);
            continue;
        }
        if (at->kind == DL_DO) { /* most are: no copy of it */
            dl_streams_work(&device, at->device_s, is_kernel(at));
            add_kernel(out, i, at, &behind);
            continue;
        }
        price(&device, at, &work);
        add_call(out, i, at, &work, &behind);
    }
    dl_streams_release(&device);
    dl_streams_release(&behind);
    return any;
}

void dl_template_fuse(struct dl_template *t, const struct dl_comm *calls, const struct dl_plan *plan)
{
    t->calls = calls;
    t->priced.n = 0;
    if (fuse(t, plan, true, &t->planned) && plan->lockstep_groups) fuse(t, plan, false, &t->priced);
}
