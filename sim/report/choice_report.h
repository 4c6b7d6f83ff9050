/* choice_report.h - where a library's tuner, which is imitated, does not choose the fastest algorithm. */
#ifndef DL_REPORT_CHOICE_REPORT_H
#define DL_REPORT_CHOICE_REPORT_H

#include <jansson.h>

#include "sim/collective/estimate.h"

/* null: nothing is faster. */
json_t *dl_faster_json(const struct dl_faster *faster);
json_t *dl_tuner_note_json(const struct dl_tuner_note *note);
/* A line, where there is something to say. */
void dl_tuner_note_print(const struct dl_tuner_note *note, const char *tuner);

#endif
