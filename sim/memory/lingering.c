#include "sim/memory/lingering.h"

#include <math.h>

struct launched {
    double so_far; /* launches, with this one */
    double done_s;
};

struct given {
    double bytes, done_s;
    double so_far; /* launches before it */
};

/* Host, device and the stream of collectives, from the begin of a step. */
struct pace {
    const struct dl_comm *calls;
    const struct dl_setting *setting;
    const struct dl_software *software; /* of the setting */
    double host_s, device_s, stream_s;
    double n_launches;
    struct launched *queue; /* from `oldest` on: that wait or run */
    size_t n_queue, queue_capacity, oldest;
    struct given *given; /* the same of what reduce-scatters were given */
    size_t n_given, given_capacity, oldest_given;
    bool has_waited;     /* for the device */
    bool is_far_behind;  /* the device: it has begun none of the launches that the queue has room for .. */
    size_t first_behind; /* .. from this on, of what was given */
    uint32_t n_sends;
};

static void drain(struct pace *p)
{
    p->host_s = fmax(p->host_s, p->device_s);
    p->has_waited = true;
    p->is_far_behind = false;
}

static void fall_behind(struct pace *p, size_t from)
{
    if (p->is_far_behind) return;
    p->is_far_behind = true;
    p->first_behind = from;
}

static void wait_for_room(struct pace *p)
{
    while (p->oldest < p->n_queue && p->n_launches - p->queue[p->oldest].so_far >= p->software->launch_queue)
        p->host_s = fmax(p->host_s, p->queue[p->oldest++].done_s);
}

static void start(struct pace *p, const struct dl_comm *call)
{
    if (!dl_comm_may_be_priced(call)) return;
    p->stream_s = fmax(p->stream_s, fmax(p->host_s, p->device_s)) + call->alone_s;
    if (call->op != DL_REDUCESCATTER) return;
    DL_GROW(p->given, p->n_given, p->given_capacity);
    p->given[p->n_given++] = (struct given){call->bytes, p->stream_s, p->n_launches};
}

/* A host that is at work on a call, agrees on a collective or gets samples launches nothing meanwhile. */
static double launches_of(const struct pace *p, const struct dl_instruction *what)
{
    if (what->kind == DL_START) return p->calls[what->call].op == DL_ALLGATHER ? p->software->gather_launches : 1;
    return what->device_s > 0 ? what->host_s / p->software->host_s_per_launch : 0;
}

static void launch(struct pace *p, const struct dl_instruction *what)
{
    wait_for_room(p);
    p->host_s += what->host_s;
    p->n_launches += launches_of(p, what);
    switch (what->kind) {
    case DL_DO: p->device_s = fmax(p->device_s, p->host_s) + what->device_s; break;
    case DL_START: start(p, &p->calls[what->call]); break;
    case DL_WAIT: p->device_s = fmax(p->device_s, p->stream_s); break;
    case DL_DRAIN: drain(p); break;
    }
    DL_GROW(p->queue, p->n_queue, p->queue_capacity);
    p->queue[p->n_queue++] = (struct launched){p->n_launches, fmax(p->device_s, p->stream_s)};
}

static double queued_bytes(const struct pace *p)
{
    double bytes = 0;
    for (size_t i = p->first_behind; i < p->n_given; i++)
        if (p->n_launches - p->given[i].so_far < p->software->launch_queue) bytes += p->given[i].bytes;
    return bytes;
}

static double held_bytes(struct pace *p)
{
    double bytes = 0;
    if (p->is_far_behind) return queued_bytes(p);
    while (p->oldest_given < p->n_given && p->given[p->oldest_given].done_s <= p->host_s) p->oldest_given++;
    for (size_t i = p->oldest_given; i < p->n_given; i++) bytes += p->given[i].bytes;
    return bytes;
}

/* The device waits until what it sends is received. The next stage waits for the first; the second comes while it is
 * at work on that, in the first step while it still loads and compiles its kernels. */
static void send(struct pace *p)
{
    if (dl_drains_at_sends(p->setting))
        drain(p);
    else if (++p->n_sends == 2 && dl_sends_of(p->setting) != DL_SENDS_ASYNCHRONOUS)
        fall_behind(p, p->n_given);
}

/* Hosts of ranks in step that never wait for their devices and do not agree on collectives drift apart: all devices
 * wait for the slowest host, and all queues but its own fill. */
static bool drifts(const struct pace *p) { return !p->has_waited && p->software->collective_rank_host_s == 0; }

static bool is_filling(const struct pace *p) { return p->is_far_behind && p->n_launches < p->software->launch_queue; }

/* Returns what is held at its end, before the host waits for what it hands on. */
static double go_through(struct pace *p, const struct dl_program *program, const struct dl_sequenced *item)
{
    const struct dl_template *const t = dl_item_block(program, item);
    const bool receives = item->wants != DL_NO_TAG && item->from != program->stage;
    if (receives && (dl_drains_at_sends(p->setting) || p->software->drains_at_receives)) drain(p);
    for (size_t place = 0; place < t->length; place++) launch(p, &t->instructions[dl_template_at(t, place)]);
    const double bytes = held_bytes(p);
    if (item->gives != DL_NO_TAG && item->to != program->stage) send(p);
    return bytes;
}

double dl_lingering_bytes(const struct dl_program *program, const struct dl_comm *calls,
                          const struct dl_setting *setting)
{
    const struct dl_software *const software = setting->software;
    const uint32_t n_stages = dl_n_stages(setting);
    if (software->launch_queue == 0 || software->host_s_per_launch == 0) return 0;
    uint32_t end = 2 * n_stages + 4; /* items, after which nothing new comes, except to a queue that still fills */
    const uint32_t in_turn = 2;      /* a forward and a backward */
    struct pace p = {.calls = calls, .setting = setting, .software = software};
    double most = 0;
    for (uint32_t i = 0; i < program->n_sequence && i < end; i++) {
        const double bytes = go_through(&p, program, &program->sequence[i]);
        if (program->sequence[i].item.kind == DL_ITEM_F) most = fmax(most, bytes);
        if (n_stages == 1 && drifts(&p)) fall_behind(&p, 0);
        if (n_stages == 1 && is_filling(&p) && end < i + 1 + in_turn) end = i + 1 + in_turn;
    }
    dl_free(p.queue);
    dl_free(p.given);
    return most;
}
