#include "sim/campaign/campaign.h"

#include <math.h>

bool dl_amount_is_given(const struct dl_amount *a)
{
    return a->tokens > 0 || a->samples > 0 || a->epochs > 0 || a->dataset > 0;
}

enum dl_status dl_amount_check(const struct dl_amount *a, double tokens_per_sample, struct dl_error *err)
{
    const bool by_epochs = a->epochs > 0 || a->dataset > 0;
    if (by_epochs && !(a->epochs > 0 && a->dataset > 0))
        return dl_fail(err, DL_IMPOSSIBLE, a->epochs > 0 ? "--epochs" : "--dataset", "needs --%s N beside it",
                       a->epochs > 0 ? "dataset" : "epochs");
    if ((a->tokens > 0) + (a->samples > 0) + by_epochs > 1)
        return dl_fail(err, DL_IMPOSSIBLE, a->tokens > 0 ? "--tokens" : "--samples",
                       "a run has one length; give one of --tokens, --samples, and --epochs with --dataset");
    if (a->tokens > 0 && tokens_per_sample == 0)
        return dl_fail(err, DL_IMPOSSIBLE, "--tokens",
                       "samples of this model have no tokens; use --samples, or --epochs with --dataset");
    return DL_OK;
}

static double samples_of(const struct dl_amount *a, double tokens_per_sample)
{
    if (a->tokens > 0) return a->tokens / tokens_per_sample;
    return a->samples > 0 ? a->samples : a->epochs * a->dataset;
}

struct dl_campaign dl_campaign_of(const struct dl_amount *amount, const struct dl_campaign_step *step)
{
    const double samples = samples_of(amount, step->tokens_per_sample), n_steps = ceil(samples / step->samples);
    return (struct dl_campaign){
        .samples = samples,
        .tokens = samples * step->tokens_per_sample,
        .n_steps = n_steps,
        .seconds = n_steps * step->seconds,
        .device_s = n_steps * step->seconds * step->n_devices,
        .energy = step->energy,
        .footprint = dl_footprint_of(&step->energy, &step->site, n_steps * step->seconds, step->n_devices),
        .site = step->site};
}
