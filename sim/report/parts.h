/* parts.h - the parts of a step that a prediction can be wrong about. What a part adds is the step less the step with
 * this part at its best: kernels at the peak of the device, a network without latency and of any bandwidth, a host
 * that takes no time, no waiting for another stage or rank. */
#ifndef DL_REPORT_PARTS_H
#define DL_REPORT_PARTS_H

enum dl_step_part { DL_PART_COMPUTE, DL_PART_NETWORK, DL_PART_HOST, DL_PART_SCHEDULE, DL_N_PARTS };
const char *dl_step_part_name(enum dl_step_part part);

#endif
