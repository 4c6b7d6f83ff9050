/* parts.c - instructions of a template become parts by the plan: see segments.h. */
#include <math.h>

#include "sim/program/segment_sums.h"

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

struct fusing {
    const struct dl_template *t;
    const struct dl_plan *plan;
    bool on_group; /* that the plan has */
    struct dl_streams device;
    struct dl_streams behind; /* clocks of a device that was free long before its host began */
    struct dl_parts *out;
    size_t place;       /* of the next instruction */
    bool has_simulated; /* collectives */
};

static void add_kernel(struct fusing *f, const struct dl_instruction *i)
{
    struct dl_part *const part = part_at(f->out, f->place);
    dl_streams_issue(&f->behind, i->host_s);
    dl_streams_do(&f->behind, i);
    part->host_s += i->host_s;
    part->behind_host_s = f->behind.device_s;
    part->behind_network_s = f->behind.network_s;
    dl_segment_add(&part->segment, i);
}

/* What a call that is not open costs is known from the device alone. */
static void wait_behind(struct dl_streams *behind, uint32_t call, const struct dl_priced_work *work)
{
    struct dl_exposed exposed;
    if (dl_streams_wait(behind, call, &exposed)) return;
    for (size_t k = 0; k < work->n; k++) dl_streams_work(behind, work->items[k].device_s);
    if (work->is_network) behind->network_s += work->items[0].device_s;
}

static void add_call(struct fusing *f, const struct dl_instruction *i, const struct dl_priced_work *work)
{
    struct dl_streams *const behind = &f->behind;
    if (i->kind == DL_START) {
        dl_streams_issue(behind, i->host_s);
        dl_streams_start(behind, i->call);
    } else {
        wait_behind(behind, i->call, work);
    }
    if (!work->n && i->host_s == 0) return;
    struct dl_part *const part = part_at(f->out, f->place);
    part->host_s += i->host_s;
    part->behind_host_s = behind->device_s;
    part->behind_network_s = behind->network_s;
    dl_segment_add_priced(&part->segment, work);
}

static bool is_simulated(const struct fusing *f, uint32_t call)
{
    const struct dl_plan *const plan = f->plan;
    return plan->calls && plan->calls[call] && (f->on_group || f->t->calls[call].op == DL_COPY);
}

/* Others can see it. */
static bool is_visible(const struct fusing *f, const struct dl_instruction *i)
{
    return i->kind != DL_DO && (!dl_may_be_priced(i, f->t->calls) || is_simulated(f, i->call));
}

static void add_visible(struct fusing *f, const struct dl_instruction *i)
{
    const bool has_call = i->kind != DL_DRAIN && i->call != DL_EVERY_CALL;
    f->has_simulated |= has_call && f->t->calls[i->call].op != DL_COPY && dl_comm_may_be_priced(&f->t->calls[i->call]);
    add_part(f->out, (struct dl_part){.kind = i->kind, .call = i->call, .host_s = i->host_s});
    dl_streams_reset(&f->behind, 0, -INFINITY);
}

static void fuse_instructions(struct fusing *f, size_t first, size_t end)
{
    struct dl_priced_work work;
    for (size_t i = first; i < end; i++, f->place++) {
        const struct dl_instruction *const at = &f->t->instructions[i];
        if (at->kind == DL_DO) { /* most are: no copy of it */
            dl_streams_do(&f->device, at);
            add_kernel(f, at);
        } else if (is_visible(f, at)) {
            add_visible(f, at);
        } else {
            dl_price_on_device(&f->device, at, &work);
            add_call(f, at, &work);
        }
    }
}

static struct dl_part *last_work(const struct dl_parts *p)
{
    return p->n && p->items[p->n - 1].kind == DL_DO ? &p->items[p->n - 1] : NULL;
}

/* What a round has added to the part, as often as it counts; its clocks count from the begin of the round. */
static void add_rounds(struct dl_part *part, const struct dl_part *before, const struct fusing *f,
                       const struct dl_streams_round *round)
{
    const double times = (double)round->times;
    const struct dl_segment one = part->segment;
    part->segment = before->segment;
    dl_segment_add_times(&part->segment, &one, times);
    part->host_s = before->host_s + times * part->host_s;
    if (round->is_of_work) {
        part->behind_host_s = f->behind.device_s;
        part->behind_network_s = f->behind.network_s;
    } else {
        part->behind_host_s += round->begin_s + (times - 1) * round->host_s;
    }
}

/* One time after the other, until the next is the same; returns how often that was. */
static size_t fuse_round(struct fusing *f, const struct dl_repeated *r, size_t most)
{
    struct dl_streams_round round;
    struct dl_part before = {0}, *part = last_work(f->out);
    if (part) {
        before = *part;
        part->segment = (struct dl_segment){0};
        part->host_s = 0;
    }
    dl_streams_begin_round(&f->behind, &round);
    round.is_free &= !f->device.n_open;
    fuse_instructions(f, r->first, r->first + r->n);
    part = last_work(f->out);
    round.is_free &= !f->device.n_open;
    dl_streams_end_round(&f->behind, part->segment.seconds, most, &round);
    add_rounds(part, &before, f, &round);
    part->end += (round.times - 1) * r->n;
    f->place += (round.times - 1) * r->n;
    return round.times;
}

/* Nothing that others can see, and kernels, so that they are of one part. */
static bool is_work(const struct fusing *f, const struct dl_repeated *r)
{
    bool has_kernel = false;
    for (size_t i = r->first; i < r->first + r->n; i++) {
        if (is_visible(f, &f->t->instructions[i])) return false;
        has_kernel |= f->t->instructions[i].kind == DL_DO;
    }
    return has_kernel;
}

static void fuse_repeated(struct fusing *f, const struct dl_repeated *r)
{
    const bool may_be_one = is_work(f, r);
    for (size_t done = 0; done < r->times;)
        if (may_be_one) {
            done += fuse_round(f, r, r->times - done);
        } else {
            fuse_instructions(f, r->first, r->first + r->n);
            done++;
        }
}

/* Returns whether collectives are simulated. */
static bool fuse(const struct dl_template *t, const struct dl_plan *plan, bool on_group, struct dl_parts *out)
{
    struct fusing f = {.t = t,
                       .plan = plan,
                       .on_group = on_group,
                       .device = {.calls = t->calls},
                       .behind = {.calls = t->calls},
                       .out = out};
    size_t done = 0;
    out->n = 0;
    dl_streams_reset(&f.behind, 0, -INFINITY);
    for (size_t i = 0; i < t->n_repeated; i++) {
        if (t->repeated[i].times == 1) continue;
        fuse_instructions(&f, done, t->repeated[i].first);
        fuse_repeated(&f, &t->repeated[i]);
        done = t->repeated[i].first + t->repeated[i].n;
    }
    fuse_instructions(&f, done, t->n_instructions);
    for (size_t i = 0; i < out->n; i++) out->items[i].behind_host_s = fmax(out->items[i].behind_host_s, 0);
    dl_streams_release(&f.device);
    dl_streams_release(&f.behind);
    return f.has_simulated;
}

void dl_template_fuse(struct dl_template *t, const struct dl_comm *calls, const struct dl_plan *plan)
{
    t->calls = calls;
    if (t->like) {
        t->planned = t->like->planned;
        t->priced = t->like->priced;
        return;
    }
    t->priced.n = 0;
    if (fuse(t, plan, true, &t->planned) && plan->lockstep_groups) fuse(t, plan, false, &t->priced);
}
