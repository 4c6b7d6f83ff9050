#include "strategies/software.h"

#include <stddef.h>

static const char *const attentions[] = {"unfused", "flash", NULL};

struct options {
    double host_s_per_launch, launches_per_kernel, gradient_bytes, collective_host_s;
    int64_t attention;
    bool scatters_sends, step_barrier;
};
static const struct options defaults = {
    .launches_per_kernel = 1, .gradient_bytes = 4, .scatters_sends = true, .step_barrier = true};
static const struct dl_field fields[] = {
    {"host_s_per_launch", DL_NUMBER, offsetof(struct options, host_s_per_launch), 0, 1, true, NULL,
     "host time of one kernel launch"},
    {"launches_per_kernel", DL_NUMBER, offsetof(struct options, launches_per_kernel), 0, 100, true, NULL,
     "launches for what the workload lists as one kernel"},
    {"gradient_bytes", DL_NUMBER, offsetof(struct options, gradient_bytes), 1, 8, true, NULL,
     "per parameter, as accumulated and exchanged"},
    {"collective_host_s", DL_NUMBER, offsetof(struct options, collective_host_s), 0, 1, true, NULL,
     "host time of one collective"},
    {"attention", DL_CHOICE, offsetof(struct options, attention), 0, 0, true, attentions, "how scores are computed"},
    {"scatters_sends", DL_BOOL, offsetof(struct options, scatters_sends), 0, 0, true, NULL,
     "pipeline sends are split over the tensor ranks"},
    {"step_barrier", DL_BOOL, offsetof(struct options, step_barrier), 0, 0, true, NULL,
     "no rank begins a step before all have ended the one before"},
};

const struct dl_field *dl_software_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(fields);
    return fields;
}

enum dl_status dl_software_read(struct dl_json doc, struct dl_arena *arena, struct dl_software *out,
                                struct dl_error *err)
{
    struct options o = defaults;
    if (dl_read_document(doc, "software", fields, DL_COUNT(fields), &o, arena, err)) return err->status;
    *out = (struct dl_software){.name = dl_document_name(doc, arena),
                                .host_s_per_launch = o.host_s_per_launch,
                                .launches_per_kernel = o.launches_per_kernel,
                                .gradient_bytes = o.gradient_bytes,
                                .collective_host_s = o.collective_host_s,
                                .attention = attentions[o.attention],
                                .step_barrier = o.step_barrier,
                                .scatters_sends = o.scatters_sends};
    return DL_OK;
}
