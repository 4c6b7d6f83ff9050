#include <math.h>

#include "sim/collective/fold.h"

void dl_tally_init(struct dl_tally *tally, size_t n_links)
{
    *tally = (struct dl_tally){.n_links = n_links};
    tally->sum = dl_alloc(n_links * sizeof *tally->sum);
    tally->touched = dl_alloc(n_links * sizeof *tally->touched);
}

void dl_tally_release(struct dl_tally *tally)
{
    dl_free(tally->sum);
    dl_free(tally->touched);
    *tally = (struct dl_tally){0};
}

void dl_tally_clear(struct dl_tally *tally)
{
    for (size_t i = 0; i < tally->n_touched; i++) tally->sum[tally->touched[i]] = 0;
    tally->n_touched = 0;
}

void dl_tally_add(struct dl_tally *tally, uint32_t link, double bytes)
{
    if (bytes <= 0) return;
    if (tally->sum[link] == 0) tally->touched[tally->n_touched++] = link;
    tally->sum[link] += bytes;
}

double dl_tally_seconds(const struct dl_tally *tally, const double *bytes_per_s)
{
    double most = 0;
    for (size_t i = 0; i < tally->n_touched; i++)
        most = fmax(most, tally->sum[tally->touched[i]] / bytes_per_s[tally->touched[i]]);
    return most;
}

double dl_booked_bytes_per_s(void *booked, uint32_t link)
{
    const struct dl_booked *const b = booked;
    const struct dl_network *const network = &b->topology->network;
    const double endpoint_bytes_per_s = b->topology->links[network->first_link].bandwidth_bytes_per_s;
    const double bytes = b->tally->sum[link] + (b->others ? b->others->sum[link] : 0);
    return b->message_bytes > 0 ? bytes / b->message_bytes * endpoint_bytes_per_s : 0;
}
