/* campaign_report.h - a whole training run, for people and for programs. */
#ifndef DL_REPORT_CAMPAIGN_REPORT_H
#define DL_REPORT_CAMPAIGN_REPORT_H

#include "sim/campaign/campaign.h"
#include "sim/report/sources.h"

/* How long it is; then what it draws and costs. */
void dl_campaign_print(const struct dl_campaign *c);
void dl_campaign_print_power(const struct dl_campaign *c);
/* Energy, carbon and money on one line; none if nothing is known. */
void dl_footprint_print(const char *label, const struct dl_footprint *f);
void dl_footprint_add_json(const struct dl_footprint *f, json_t *object);
json_t *dl_campaign_json(const struct dl_campaign *c, const struct dl_sources *sources);

#endif
