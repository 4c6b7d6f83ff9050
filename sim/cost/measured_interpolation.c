/* measured_interpolation.c - the constants of interpolation between measured kernels, and what they are for devices
 * whose files do not say them. */
#include <math.h>
#include <stddef.h>

#include "sim/cost/measured_points.h"

#define CONSTANT(name, min, max, doc)                                                                                  \
    {                                                                                                                  \
#name, DL_NUMBER, offsetof(struct dl_interpolation, name), min, max, true, NULL, doc                           \
    }

/* Leaving points out of the half of the H200's and the Xeon's tables that may be fitted to, errors hardly change if one
 * of reach, least_noise and spread_left is halved or doubled. The others are assumptions. */
static const struct dl_interpolation defaults = {.reach = 8,
                                                 .least_noise = 0.01,
                                                 .spread_left = 0.2,
                                                 .other_pass_distance = 1,
                                                 .other_kind_distance = 0.5,
                                                 .other_alignment_distance = 2,
                                                 .grain_distance = 0.3,
                                                 .grain_bytes = 256,
                                                 .other_pass_weight = 0.1,
                                                 .other_alignment_weight = 1e-6,
                                                 .known_within_factor = 4,
                                                 .neighbours = 24};
static const struct dl_field fields[] = {
    CONSTANT(reach, 0.01, 1e3, "distance at which the covariance of two kernels has fallen by e; 8 if absent"),
    CONSTANT(least_noise, 1e-6, 1,
             "variance between kernels of almost the same shape, as a share of all variance; 0.01 if absent"),
    CONSTANT(spread_left, 0, 1, "share of the spread between runs that is left in their mean; 0.2 if absent"),
    CONSTANT(other_pass_distance, 0, 1e3, "distance between a forward kernel and a backward one; 1 if absent"),
    CONSTANT(other_kind_distance, 0, 1e3, "distance by causal mask, by dropout, by groups in one call; 0.5 if absent"),
    CONSTANT(other_alignment_distance, 0, 1e3,
             "distance between kernels for rows that are aligned differently; 2 if absent"),
    CONSTANT(grain_distance, 0, 1e3,
             "distance between rows aligned to so many bytes and to twice as many; 0.3 if absent"),
    CONSTANT(grain_bytes, 1, 1e6, "the largest alignment that counts; 256 if absent"),
    CONSTANT(other_pass_weight, 0, 1, "weight of a kernel of another pass in the mean of a kind; 0.1 if absent"),
    CONSTANT(other_alignment_weight, 1e-12, 1, "weight of one of another alignment in that mean; 1e-6 if absent"),
    CONSTANT(known_within_factor, 1, 1e3,
             "in size: nearer kernels count as interpolated, others as modelled; 4 if absent"),
    {"neighbours", DL_INT, offsetof(struct dl_interpolation, neighbours), 1, dl_most_neighbours, true, NULL,
     "nearest kernels that are used; 24 if absent"},
};

double dl_known_distance(const struct dl_interpolation *by) { return log(by->known_within_factor); }

const struct dl_field *dl_interpolation_fields(size_t *n_fields)
{
    *n_fields = DL_COUNT(fields);
    return fields;
}

enum dl_status dl_interpolation_read(struct dl_json from, struct dl_arena *arena, const struct dl_interpolation **out,
                                     struct dl_error *err)
{
    struct dl_interpolation *const by = dl_arena_alloc(arena, sizeof *by);
    *by = defaults;
    *out = by;
    return from.value ? dl_read(from, fields, DL_COUNT(fields), by, arena, err) : DL_OK;
}
