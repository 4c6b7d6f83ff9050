/* platform.h - a machine in the formats of other programs, on standard output. */
#ifndef DL_REPORT_PLATFORM_H
#define DL_REPORT_PLATFORM_H

#include "topologies/topology.h"

/* SimGrid XML: a host for each of the first n devices (device0, device1, ...) and the route of every ordered pair, with
 * the bandwidths that are given by link. Routes that split over paths have no counterpart there and are refused. */
enum dl_status dl_platform_write_simgrid(const struct dl_topology *t, const double *bytes_per_s, uint32_t n_devices,
                                         struct dl_error *err);

/* graphviz: the devices and whatever their routes pass through. */
enum dl_status dl_platform_write_dot(const struct dl_topology *t, uint32_t n_devices, struct dl_error *err);

#endif
