#include "sim/program/streams.h"

#include <math.h>

void dl_streams_reset(struct dl_streams *s, double host_s, double device_s)
{
    s->host_s = host_s;
    s->device_s = device_s;
    s->network_s = 0;
    s->n_open = 0;
}

void dl_streams_release(struct dl_streams *s) { dl_free(s->open); }

static bool same_channel(const struct dl_streams *s, uint32_t a, uint32_t b)
{
    return s->calls[a].channel == s->calls[b].channel;
}

void dl_streams_start(struct dl_streams *s, uint32_t call)
{
    double behind_s = 0;
    for (size_t i = 0; i < s->n_open; i++)
        if (same_channel(s, s->open[i].call, call)) behind_s = fmax(s->open[i].end_s - s->open[i].passed_s, 0);
    DL_GROW(s->open, s->n_open, s->capacity);
    s->open[s->n_open++] = (struct dl_open_call){.call = call, .end_s = behind_s + s->calls[call].alone_s};
}

/* What kernels lose while it goes on: the same share of all that are beside it, however long they are. So what a wait
 * costs does not depend on when the host comes. */
static double taken_s(const struct dl_streams *s, const struct dl_open_call *o)
{
    return o->beside_s > 0 ? (1 - o->beside_s / o->slowed_s) * s->calls[o->call].alone_s : 0;
}

/* With those before it on its channel. */
static double close(struct dl_streams *s, size_t last)
{
    const uint32_t call = s->open[last].call;
    double sum_s = 0;
    size_t n = 0;
    for (size_t i = 0; i < s->n_open; i++) {
        const bool ends = i <= last && same_channel(s, s->open[i].call, call);
        if (ends) sum_s += taken_s(s, &s->open[i]);
        if (!ends) s->open[n++] = s->open[i];
    }
    s->n_open = n;
    return sum_s;
}

/* The latest, from 1 on; 0: there is none. */
static size_t find(const struct dl_streams *s, uint32_t call)
{
    size_t i = s->n_open;
    while (i > 0 && s->open[i - 1].call != call) i--;
    return i;
}

bool dl_streams_is_beside(const struct dl_streams *s, uint32_t call)
{
    const size_t i = find(s, call);
    return i && s->open[i - 1].beside_s > 0;
}

bool dl_streams_wait(struct dl_streams *s, uint32_t call, struct dl_exposed *out)
{
    const size_t i = find(s, call);
    if (!i) return false;
    const struct dl_open_call waited = s->open[i - 1];
    out->longer_s = fmax(waited.end_s - waited.passed_s, 0);
    out->taken_s = fmax(close(s, i - 1) - out->longer_s, 0);
    dl_streams_work(s, out->longer_s);
    s->network_s += out->longer_s;
    dl_streams_work(s, out->taken_s);
    return true;
}

void dl_streams_begin_round(struct dl_streams *s, struct dl_streams_round *round)
{
    *round = (struct dl_streams_round){.begin_s = s->host_s,
                                       .device_begin_s = s->device_s,
                                       .lag_s = s->device_s - s->host_s,
                                       .network_s = s->network_s,
                                       .is_free = !s->n_open};
    s->device_s = round->lag_s;
    s->host_s = 0;
    s->has_waited = false;
}

void dl_streams_end_round(struct dl_streams *s, double work_s, size_t most, struct dl_streams_round *round)
{
    const double lag_s = s->device_s - s->host_s;
    const bool is_same = lag_s == round->lag_s || (!s->has_waited && lag_s > round->lag_s);
    round->is_free &= !s->n_open;
    round->is_of_work = round->is_free && !s->has_waited;
    round->times = round->is_free && is_same ? most : 1;
    round->host_s = s->host_s;
    const double times = (double)round->times, before_s = round->begin_s + (times - 1) * round->host_s;
    s->host_s += before_s;
    if (round->is_of_work) {
        s->device_s = round->device_begin_s + times * work_s;
        s->network_s = round->network_s + times * (s->network_s - round->network_s);
    } else {
        s->device_s += before_s;
    }
}
