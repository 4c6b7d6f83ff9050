#include <math.h>

#include "sim/collective/fold.h"

void dl_tally_init(struct dl_tally *tally, size_t n_links)
{
    *tally = (struct dl_tally){.place_of = dl_alloc(n_links * sizeof *tally->place_of), .n_links = n_links};
}

void dl_tally_release(struct dl_tally *tally)
{
    dl_free(tally->place_of);
    dl_free(tally->touched);
    *tally = (struct dl_tally){0};
}

void dl_tally_clear(struct dl_tally *tally)
{
    for (size_t i = 0; i < tally->n_touched; i++) tally->place_of[tally->touched[i].link] = 0;
    tally->n_touched = 0;
}

double dl_tally_seconds(const struct dl_tally *tally, const double *bytes_per_s)
{
    double most = 0;
    for (size_t i = 0; i < tally->n_touched; i++)
        most = fmax(most, tally->touched[i].weight / bytes_per_s[tally->touched[i].link]);
    return most;
}

double dl_booked_bytes_per_s(void *booked, uint32_t link)
{
    const struct dl_booked *const b = booked;
    const struct dl_network *const network = &b->topology->network;
    const double endpoint_bytes_per_s = b->topology->links[network->first_link].bandwidth_bytes_per_s;
    const double bytes = dl_tally_at(b->tally, link) + (b->others ? dl_tally_at(b->others, link) : 0);
    return b->message_bytes > 0 ? bytes / b->message_bytes * endpoint_bytes_per_s : 0;
}
