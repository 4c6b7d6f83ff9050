/* campaign_report.h - a whole training run, for people and for programs. */
#ifndef DL_REPORT_CAMPAIGN_REPORT_H
#define DL_REPORT_CAMPAIGN_REPORT_H

#include <jansson.h>

#include "sim/campaign/campaign.h"

void dl_campaign_print(const struct dl_campaign *c);
json_t *dl_campaign_json(const struct dl_campaign *c);

#endif
