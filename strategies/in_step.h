/* in_step.h - collectives among ranks in lockstep: those of a stage and replica (a crew) and, with experts, of a
 * window of replicas.
 *
 * Where nothing else can be on their links, their time is known, and they are priced without contention. Where
 * something else can be, they are simulated on the network like any other collective. Placement alone decides which
 * of the two, before anything runs. */
#ifndef DL_STRATEGIES_IN_STEP_H
#define DL_STRATEGIES_IN_STEP_H

#include "strategies/lower.h"

struct dl_in_step {
    enum dl_op op;
    enum dl_axis axis;
    double bytes;
    struct dl_payload payload;
    enum dl_cause cause;
    double n_bundles; /* that one group's is on the network, where it is simulated */
};

/* The ranks of a group: n of them, `stride` apart on an axis of the setting. */
struct dl_line_of_ranks {
    enum dl_axis axis;
    uint32_t n, stride;
};
struct dl_line_of_ranks dl_in_step_ranks(const struct dl_setting *s, enum dl_axis axis);
/* The place of a rank in its group; make it that of the rank so many places further on, round about. */
uint32_t dl_place_in_line(const struct dl_line_of_ranks *line, const uint32_t coordinate[DL_N_AXES]);
void dl_move_in_line(const struct dl_line_of_ranks *line, uint32_t places, uint32_t coordinate[DL_N_AXES]);
/* Replicas whose crews come to an exchange over this axis together. */
uint32_t dl_in_step_replicas(const struct dl_setting *s, enum dl_axis axis);

/* Where ranks sit. */
struct dl_seats {
    const struct dl_setting *setting;
    const uint32_t *device_of_rank;
    const struct dl_topology *topology;
};
/* All groups of an axis in a crew and in those that are in step with it, of which it must be the first; and how many
 * these are. */
uint32_t dl_in_step_n_groups(const struct dl_setting *s, enum dl_axis axis);
struct dl_group *dl_in_step_groups(const struct dl_seats *seats, enum dl_axis axis, uint32_t stage, uint32_t replica,
                                   struct dl_arena *arena);

/* Whether something else may be on the links of such exchanges while they go on: sends between stages, exchanges of
 * gradients or parameters, exchanges of crews that do not go in step with these. Ranks are taken to send to those 1, 2,
 * 4, ... places further on, as rings, trees and recursive doubling do. */
enum dl_status dl_in_step_meets(const struct dl_lower_request *request, enum dl_axis axis, bool *out,
                                struct dl_error *err);
/* Whether such exchanges may cross links that change; where they may, crews (stage by stage) are marked, with all that
 * go in step with them. They may take any way through a network whose routes depend on load. */
enum dl_status dl_in_step_crosses(const struct dl_lower_request *request, enum dl_axis axis, bool *crews, bool *out,
                                  struct dl_error *err);

#endif
