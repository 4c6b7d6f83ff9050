#include "sim/report/causes_report.h"

#include <stdio.h>

#include "sim/report/bar.h"
#include "sim/report/units.h"

static const char *name_of(int cause) { return dl_cause_name((enum dl_cause)cause); }

static double uneven_stages_s(const struct dl_run_report *r)
{
    return r->result.exposed_s[DL_CAUSE_BUBBLE] - r->schedule_bubble_s;
}

static void print_bubble(const struct dl_run_report *r)
{
    const double schedule_s = r->schedule_bubble_s, uneven_s = uneven_stages_s(r), percent = 100;
    char a[DL_QUANTITY], b[DL_QUANTITY];
    printf("      the schedule's own %s (%.1f %%), by uneven stages %s (%.1f %%)\n", dl_format_seconds(schedule_s, a),
           percent * schedule_s / r->result.step_s, dl_format_seconds(uneven_s, b),
           percent * uneven_s / r->result.step_s);
}

void dl_causes_print(const struct dl_run_report *r)
{
    const struct dl_training_result *const result = &r->result;
    const double rounding_s = 1e-12 * result->step_s;
    char a[DL_QUANTITY];
    puts("  where the time goes");
    for (int cause = 0; cause < DL_N_CAUSES; cause++)
        if (result->exposed_s[cause] > rounding_s)
            dl_print_bar(name_of(cause), dl_format_seconds(result->exposed_s[cause], a),
                         result->exposed_s[cause] / result->step_s);
    if (result->exposed_s[DL_CAUSE_BUBBLE] > rounding_s) print_bubble(r);
}

/* Keys without their unit are of before 1.0 and go with the next release. */
json_t *dl_causes_json(const struct dl_run_report *r)
{
    const struct dl_training_result *const result = &r->result;
    json_t *const causes = json_object();
    for (int cause = 0; cause < DL_N_CAUSES; cause++)
        json_object_set_new(causes, name_of(cause),
                            dl_json_pack("{s:f, s:f, s:f, s:f}", "busy_s", result->busy_s[cause], "exposed_s",
                                         result->exposed_s[cause], "busy", result->busy_s[cause], "exposed",
                                         result->exposed_s[cause]));
    json_t *const bubble = json_object_get(causes, name_of(DL_CAUSE_BUBBLE));
    static const char *const parts[][2] = {{"schedule_s", "uneven_stages_s"}, {"schedule", "uneven_stages"}};
    for (size_t i = 0; i < DL_COUNT(parts); i++) {
        json_object_set_new(bubble, parts[i][0], dl_json_real(r->schedule_bubble_s));
        json_object_set_new(bubble, parts[i][1], dl_json_real(uneven_stages_s(r)));
    }
    return causes;
}

json_t *dl_causes_by_stage_json(const struct dl_stage_causes *stages, uint32_t n)
{
    json_t *const list = json_array();
    for (uint32_t i = 0; i < n; i++) {
        json_t *const exposed = json_object();
        for (int cause = 0; cause < DL_N_CAUSES; cause++)
            json_object_set_new(exposed, name_of(cause), dl_json_real(stages[i].exposed_s[cause]));
        json_array_append_new(
            list, dl_json_pack("{s:I, s:O, s:o}", "stage", (json_int_t)i, "exposed_s", exposed, "exposed", exposed));
    }
    return list;
}
