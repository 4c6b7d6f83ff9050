/* session_campaign.c - the whole training run that the step of a session is one of. */
#include "sim/app/session.h"

void dl_session_campaign(struct dl_session *s, const struct dl_amount *amount)
{
    if (!dl_amount_is_given(amount)) return;
    const struct dl_campaign_step step = {.seconds = s->report.result.step_s,
                                          .n_devices = s->job.n_devices + s->job.setting.servers,
                                          .samples = s->job.setting.global_batch,
                                          .tokens_per_sample = s->model.tokens_per_sample};
    s->campaign = dl_campaign_of(amount, &step);
    s->report.campaign = &s->campaign;
}
