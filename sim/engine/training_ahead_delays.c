/* training_ahead_delays.c - delays from iterations before, while they are one sum and after that. */
#include "sim/engine/training_ahead_waits.h"

void dl_ahead_sum_delays(struct delays *d)
{
    const double by_messages_s = d->by[BY_MESSAGES];
    double others_s = 0;
    for (int i = 0; i < N_DELAYS; i++) {
        if (i != BY_MESSAGES) others_s += d->by[i];
        d->by[i] = 0;
    }
    d->by[BY_MESSAGES] = by_messages_s;
    d->by[BY_OTHERS] = others_s;
}

void dl_ahead_divide_delays(struct lockstep_group *c, const struct delays *before)
{
    struct delays sum = *before;
    dl_ahead_sum_delays(&sum);
    const double delay_s = c->delays.by[BY_OTHERS], wait_s = c->causes_s[CAUSE_OTHERS];
    c->delays.by[BY_OTHERS] = c->causes_s[CAUSE_OTHERS] = 0;
    if (!(sum.by[BY_OTHERS] > 0)) return;
    for (int i = 0; i < BY_OTHERS; i++) {
        if (i == BY_MESSAGES) continue;
        const double share = before->by[i] / sum.by[BY_OTHERS];
        c->delays.by[i] = delay_s * share;
        c->causes_s[DL_CAUSE_TENSOR + i] += wait_s * share;
    }
}
