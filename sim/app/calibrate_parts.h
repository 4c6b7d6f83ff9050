/* calibrate_parts.h - what the files of `dlsim calibrate` share. */
#ifndef DL_APP_CALIBRATE_PARTS_H
#define DL_APP_CALIBRATE_PARTS_H

#include "sim/calibrate/timings.h"
#include "sim/report/asked.h"
#include "sim/report/calibration_report.h"
#include "sim/session/inputs.h"

struct dl_calibrate_request {
    const char *topo, *transport, *op, *pair, *write_system, *write_transport, *json;
    uint64_t devices;
    struct dl_texts set, files;
};

enum { DL_MOST_TABLES = sizeof((struct dl_texts *)0)->items / sizeof(char *) };

struct dl_calibrating {
    struct dl_calibrate_request request;
    struct dl_arena *arena;
    struct dl_machine machine; /* its documents become the calibrated ones */
    struct dl_timings tables[DL_MOST_TABLES];
    size_t n_tables;
    const char *source; /* names and dates of the tables */
    struct dl_timed_run *runs;
    size_t n_runs, capacity;
    bool tells_nothing; /* of any constant: the files would be what they were */
    struct dl_asked asked;
    struct dl_calibration collectives; /* with messages: only their runs */
    struct dl_message_calibration messages;
};

void dl_calibrate_add(struct dl_calibrating *c, struct dl_timed_run run);

/* Tables of collectives, or of messages, into the documents of the machine. */
enum dl_status dl_calibrate_groups(struct dl_calibrating *c, struct dl_error *err);
enum dl_status dl_calibrate_pair(struct dl_calibrating *c, struct dl_error *err);

#endif
