/* search_point.h - a point of a search as a run, in a worker: refused, too large, or a step.
 *
 * The rule to remember: from cheap to costly. What a strategy file cannot say is refused by its reader, what cannot fit
 * by the floor of its memory, then by its memory, and only what fits is run. */
#ifndef DL_STUDY_SEARCH_POINT_H
#define DL_STUDY_SEARCH_POINT_H

#include "sim/session/session.h"
#include "sim/study/search_strategy.h"

/* Of one micro-batch; so many tensor ranks share the heads of attention if that matters for keys, else 1. */
struct dl_search_model {
    uint32_t head_ways;
    struct dl_model model;
};

/* What all points share. Workers are forked from who has it. */
struct dl_search {
    struct dl_space space;
    struct dl_session base;       /* read: machine, device, software, model */
    struct dl_machines *machines; /* has that machine */
    struct dl_search_model *models;
    size_t n_models;
    json_t *document;        /* keys that the strategies of all points have */
    struct dl_texts fixes;   /* beside axes */
    struct dl_arena *arena;  /* of the models */
    const char *engine;      /* NULL: simgrid */
    bool counts_energy;      /* else it stays 0, as does its cost */
    struct dl_facility site; /* what energy costs, and what a device does */
    double device_bytes;     /* that a point may have of a device's memory */
    double memory_bytes;     /* of this computer, that a point may have */
};

struct dl_search_wanted {
    struct dl_session_request session; /* topology, workload, software and devices */
    uint64_t global_batch;
    struct dl_facility site; /* 0: as the system says */
    double headroom;         /* the part of a device's memory that stays free */
    struct dl_texts fixes, also;
};

/* Read what points share. Close it in any case. */
enum dl_status dl_search_open(struct dl_search *s, const struct dl_search_wanted *wanted, struct dl_error *err);
void dl_search_close(struct dl_search *s);

/* Built for the strategy of a point. */
const struct dl_model *dl_search_model(const struct dl_search *s, const struct dl_job *job);

/* Its strategy file: a new object. */
json_t *dl_search_document(const struct dl_search *s, uint64_t point, struct dl_arena *arena, struct dl_error *err);

/* A run of the point, whose strategy file is given as text, by the engine of the search; the text must outlive the
 * request. */
struct dl_session_request dl_search_request(const struct dl_search *s, uint64_t point, const char *strategy);

/* As workers.h wants them. The result: {"step_s", "mfu", "tokens_per_s", "peak_bytes", "left_fraction", "energy_j",
 * "cost_usd", "exposed_s": [by cause]}, {"refused": why}, {"reason": why it failed}, or {} for what does not fit. */
void *dl_search_open_point(const struct dl_search *s, uint64_t point);
bool dl_search_stands_alone(const void *opened);
json_t *dl_search_run_point(void *opened);
void dl_search_close_point(void *opened);

#endif
