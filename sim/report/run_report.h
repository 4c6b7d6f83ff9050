/* run_report.h - the answer of `dlsim run`, for people and for programs. */
#ifndef DL_REPORT_RUN_REPORT_H
#define DL_REPORT_RUN_REPORT_H

#include "sim/campaign/campaign.h"
#include "sim/campaign/failing_run.h"
#include "sim/engine/training.h"
#include "sim/memory/memory_use.h"
#include "sim/memory/remedies.h"
#include "sim/report/asked.h"
#include "sim/report/assumptions.h"
#include "sim/report/explain.h"
#include "sim/report/files_read.h"
#include "sim/report/links_report.h"
#include "sim/report/sensitivity.h"
#include "sim/report/sources.h"

struct dl_run_report {
    const struct dl_topology *topology;
    const struct dl_transport *transport;
    const struct dl_job *job;
    const struct dl_model *model;
    const struct dl_device *device;
    const struct dl_lowered *lowered;
    const uint32_t *device_of_rank;
    struct dl_training_result result;
    double schedule_bubble_s;             /* of the bubble: with equal stages; the rest is what uneven ones add */
    const struct dl_stage_causes *stages; /* by stage */
    const struct dl_memory_use *memory;   /* by stage */
    const struct dl_remedies *remedies;   /* what would make it fit; NULL: nobody asked */
    const char *engine, *fidelity;
    bool is_alone;       /* the engine simulates no sharing of links */
    bool names_software; /* the strategy or the command line does; else it is the default */
    uint64_t n_events;
    struct dl_tuner_note tuner_note;
    struct dl_assumptions assumptions;
    struct dl_files_read files;
    struct dl_links links;
    const struct dl_asked *asked;             /* for the head of the text */
    const struct dl_sensitivity *sensitivity; /* NULL: nobody asked */
    const struct dl_explanation *explanation; /* NULL: nobody asked */
    const struct dl_campaign *campaign;       /* NULL: nobody asked */
    const struct dl_failing_run *failing;     /* with the campaign */
    struct dl_sources failing_sources;
    struct dl_sources power_sources; /* with the campaign */
};

uint32_t dl_run_fullest_stage(const struct dl_run_report *r);
/* What its devices have left of their memory; negative: it does not fit. */
double dl_run_headroom_bytes(const struct dl_run_report *r);
/* Whether the fullest stage fits into a device, and what is offloaded into a host. */
bool dl_run_fits(const struct dl_run_report *r);

/* Shares of the dense peak of all devices in the precision of the strategy: by the flop of the model, and by all that
 * devices spend on it. Both count attention in the same way, so the second is never below the first. */
double dl_run_mfu(const struct dl_run_report *r, enum dl_flop_count count);
double dl_run_hfu(const struct dl_run_report *r, enum dl_flop_count count);

/* The first lines: what tells the run from another. */
void dl_run_head_print(const struct dl_run_report *r);
/* `links`: with the links that have the highest load. */
void dl_run_report_text(const struct dl_run_report *r, bool links);
json_t *dl_run_report_json(const struct dl_run_report *r);

#endif
