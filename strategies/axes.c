/* axes.c - the axes of a job: which there are, in which order, and the digits of a rank that each has. */
#include "strategies/strategy.h"

static const struct {
    const char *name;
    dl_digits digits;
} usual[DL_N_AXES] = {[DL_AXIS_TENSOR] = {"tensor", DL_ALONG_TENSOR},
                      [DL_AXIS_CONTEXT] = {"context", DL_ALONG_CONTEXT},
                      [DL_AXIS_DATA] = {"data", DL_ALONG_DATA},
                      [DL_AXIS_PIPELINE] = {"pipeline", DL_ALONG_PIPELINE}};

const char *dl_usual_axis_name(enum dl_axis axis) { return usual[axis].name; }

const char *dl_axis_name(const struct dl_setting *s, uint32_t axis)
{
    return axis < DL_N_AXES ? dl_usual_axis_name((enum dl_axis)axis) : s->brought[axis - DL_N_AXES]->name;
}

enum dl_axis dl_axis_by_default(const struct dl_setting *s, uint32_t i)
{
    if (i < DL_AXIS_DATA) return (enum dl_axis)i;
    const uint32_t after = i - DL_AXIS_DATA;
    return (enum dl_axis)(after < s->n_brought ? DL_N_AXES + after : i - s->n_brought);
}

/* So many digits from one on. */
static dl_digits digits_from(uint32_t first, uint32_t n) { return ((1u << n) - 1) << first; }

static dl_digits along_peers(const struct dl_setting *s) { return digits_from(DL_N_DIGITS + s->n_brought, s->n_peers); }

dl_digits dl_along_axis(const struct dl_setting *s, enum dl_axis axis)
{
    if (axis >= DL_N_AXES) return digits_from(DL_N_DIGITS + axis - DL_N_AXES, 1);
    return usual[axis].digits | (axis == DL_AXIS_DATA ? along_peers(s) : 0);
}

dl_digits dl_along_brought(const struct dl_setting *s) { return digits_from(DL_N_DIGITS, s->n_brought); }

dl_digits dl_along_own(const struct dl_setting *s, const struct dl_brought *axis)
{
    uint32_t i = 0;
    while (i < s->n_brought && s->brought[i] != axis) i++;
    return i < s->n_brought ? digits_from(DL_N_DIGITS + i, 1) : 0;
}

dl_digits dl_in_lockstep(const struct dl_setting *s) { return DL_IN_LOCKSTEP | dl_along_brought(s); }

dl_digits dl_along_replicas(const struct dl_setting *s) { return DL_ALONG_DATA | along_peers(s); }

dl_digits dl_along_peer(const struct dl_setting *s, uint32_t i)
{
    return digits_from(DL_N_DIGITS + s->n_brought + i, 1);
}

dl_digits dl_along_experts(const struct dl_setting *s) { return DL_ALONG_EXPERTS | s->experts_over; }

uint32_t dl_n_expert_ranks(const struct dl_setting *s) { return dl_ranks_count(&s->ranks, dl_along_experts(s)); }

dl_digits dl_along_expert_tensor(const struct dl_setting *s)
{
    return s->experts_over & DL_ALONG_TENSOR ? DL_ALONG_TENSOR & ~s->experts_over : 0;
}

uint64_t dl_expert_ways_in_lockstep(const struct dl_setting *s)
{
    const bool over_tensor = s->experts_over & DL_ALONG_TENSOR;
    const uint64_t apart = s->ways[DL_AXIS_TENSOR] / (s->expert_tensor_ways ? s->expert_tensor_ways : 1);
    const uint64_t tensor = over_tensor && apart ? apart : 1;
    return tensor * (s->experts_over & DL_ALONG_CONTEXT ? s->ways[DL_AXIS_CONTEXT] : 1);
}

uint32_t dl_expert_parts(const struct dl_setting *s)
{
    return dl_ranks_count(&s->ranks, dl_along_experts(s) & ~(dl_digits)DL_ALONG_TENSOR);
}
