/* campaign.h - a whole training run: how many steps it has, and how long it keeps how many devices.
 *
 * The rule to remember: what a run is asked to process (samples) decides its steps, and every other figure is a figure
 * of one step times their number. */
#ifndef DL_CAMPAIGN_CAMPAIGN_H
#define DL_CAMPAIGN_CAMPAIGN_H

#include "sim/campaign/energy.h"

/* How much is trained on; 0: not given. One of tokens, samples, and epochs with dataset. */
struct dl_amount {
    double tokens, samples;
    double epochs, dataset; /* times that each of so many samples is seen */
};

/* Of one step, as it was simulated. */
struct dl_campaign_step {
    double seconds, n_devices;
    double samples, tokens_per_sample; /* tokens_per_sample is 0 where a sample has none */
    struct dl_energy energy;
    struct dl_facility site;
};

struct dl_campaign {
    double samples, tokens; /* that are asked for; tokens is 0 where a sample has none */
    double n_steps;         /* a last one that is not full counts as one */
    double seconds;         /* of all steps, one after the other */
    double device_s;        /* the same on all devices */
    struct dl_energy energy;
    struct dl_footprint footprint;
    struct dl_facility site;
};

bool dl_amount_is_given(const struct dl_amount *a);

/* Refuses amounts that contradict each other, and tokens of a model whose samples have none. */
enum dl_status dl_amount_check(const struct dl_amount *a, double tokens_per_sample, struct dl_error *err);

/* Of an amount that was checked. */
struct dl_campaign dl_campaign_of(const struct dl_amount *amount, const struct dl_campaign_step *step);

#endif
