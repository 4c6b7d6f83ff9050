#include "sim/report/campaign_report.h"

#include <stdio.h>

#include "sim/core/json.h"
#include "sim/report/units.h"

static const double hour_s = 3600, day_s = 86400;

void dl_campaign_print(const struct dl_campaign *c)
{
    char a[DL_QUANTITY], b[DL_QUANTITY], d[DL_QUANTITY], e[DL_QUANTITY];
    printf("  whole run      %s steps", dl_format_count(c->n_steps, a));
    if (c->tokens > 0)
        printf(" for %s tokens", dl_format_parameters(c->tokens, b));
    else
        printf(" for %s samples", dl_format_count(c->samples, b));
    printf(": %s, %s device hours\n", dl_format_duration(c->seconds, d), dl_format_number(c->device_s / hour_s, e));
}

json_t *dl_campaign_json(const struct dl_campaign *c)
{
    return dl_json_pack("{s:f, s:o, s:f, s:f, s:f, s:f}", "samples", c->samples, "tokens",
                        c->tokens > 0 ? dl_json_real(c->tokens) : json_null(), "steps", c->n_steps, "seconds",
                        c->seconds, "days", c->seconds / day_s, "device_hours", c->device_s / hour_s);
}
