/* calibration_report.h - what a calibration found: constants with intervals, errors before and after. */
#ifndef DL_REPORT_CALIBRATION_REPORT_H
#define DL_REPORT_CALIBRATION_REPORT_H

#include "sim/calibrate/calibrate.h"
#include "sim/calibrate/calibrate_messages.h"

void dl_calibration_text(const struct dl_calibration *c);
json_t *dl_calibration_json(const struct dl_calibration *c);

/* `c` holds the runs of the messages, and no constants. */
void dl_message_calibration_text(const struct dl_message_calibration *m, const struct dl_calibration *c);
json_t *dl_message_calibration_json(const struct dl_message_calibration *m, const struct dl_calibration *c);

#endif
