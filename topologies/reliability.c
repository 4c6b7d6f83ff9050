#include "topologies/reliability.h"

/* So long that nothing would ever be felt of it. */
#define MAX_HOURS 1e12
#define MAX_SECONDS 1e9

static const struct dl_field reliability_fields[] = {
    {"device_mtbf_hours", DL_NUMBER, offsetof(struct dl_reliability, device_mtbf_hours), 1e-3, MAX_HOURS, true, NULL,
     "mean time between failures of one device"},
    {"node_mtbf_hours", DL_NUMBER, offsetof(struct dl_reliability, node_mtbf_hours), 1e-3, MAX_HOURS, true, NULL,
     "of one node, without its devices"},
    {"link_mtbf_hours", DL_NUMBER, offsetof(struct dl_reliability, link_mtbf_hours), 1e-3, MAX_HOURS, true, NULL,
     "of one port of a node to the network, with its cable and its share of the switches"},
    {"detect_s", DL_NUMBER, offsetof(struct dl_reliability, detect_s), 0, MAX_SECONDS, false, NULL,
     "from a failure to the decision to restart"},
    {"restart_s", DL_NUMBER, offsetof(struct dl_reliability, restart_s), 0, MAX_SECONDS, false, NULL,
     "from there to the loading of the checkpoint"},
};

enum dl_status dl_reliability_read(struct dl_json object, struct dl_reliability *out, struct dl_arena *arena,
                                   struct dl_error *err)
{
    *out = (struct dl_reliability){0};
    if (!object.value) return DL_OK;
    if (dl_read(object, reliability_fields, DL_COUNT(reliability_fields), out, arena, err)) return err->status;
    if (!dl_reliability_is_given(out))
        return dl_fail(err, DL_KEY, object.where,
                       "must say what fails: device_mtbf_hours, node_mtbf_hours or link_mtbf_hours");
    return DL_OK;
}
