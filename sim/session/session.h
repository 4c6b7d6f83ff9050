/* session.h - from inputs to the result of a step: documents are read, the model is spread over the machine, the step
 * is simulated.
 *
 * The rule to remember: a session keeps everything in itself but a machine that is kept for it (machines.h), so that a
 * forked child can simulate what its parent opened, and its first error ends it: later calls do nothing. SimGrid
 * allows one dl_session_run a process (see pool.h for many); the analytic engine any number. */
#ifndef DL_SESSION_SESSION_H
#define DL_SESSION_SESSION_H

#include "sim/campaign/campaign.h"
#include "sim/campaign/failing_run.h"
#include "sim/engine/scenario.h"
#include "sim/program/program_text.h"
#include "sim/report/asked.h"
#include "sim/report/discrepancy.h"
#include "sim/report/parts.h"
#include "sim/report/run_report.h"
#include "sim/report/timeline.h"
#include "sim/session/fidelities.h"
#include "sim/session/inputs.h"

/* Above so much, what may meet others in fluid fidelity is timed as if it were alone. 0: the usual. */
struct dl_most {
    struct dl_played in_step; /* of tensor, context and expert ranks: see lower.h */
    double in_part;           /* bundles of those, where not all are: see plan.h */
    double effort;            /* over replicas: see training.h */
};

struct dl_session_request {
    struct dl_input topo, strategy;
    struct dl_input workload, software;         /* nothing: as the strategy says */
    struct dl_input device;                     /* nothing: as the system says */
    const char *transport;                      /* NULL: as the system says */
    const char *placement, *engine, *scenario;  /* NULL: even, simgrid, none */
    const char *program;                        /* NULL: as the strategy makes it */
    const char *fidelity;                       /* of dl_fidelities; NULL: fluid, unless messages hold ports */
    uint64_t devices, seed, iterations;         /* 0: as the strategy says, 0, until steps are alike */
    struct dl_texts set;                        /* as --set */
    size_t n_doubts;                            /* the last of set: the same machine, if its figures were wrong */
    unsigned ideal;                             /* bits 1 << enum dl_step_part: these at their best, see ideal.h */
    double memory_bytes;                        /* of this computer, that the run may have; 0: what is free */
    struct dl_most most;                        /* that is simulated */
    struct dl_machines *machines;               /* OPTIONAL: keeps the machine; the ranges of its keys are not known */
    const struct dl_session *like;              /* OPTIONAL, with machines: was read with the same inputs but for the
                                                   strategy file and what that decides, and outlives this one */
    const struct dl_model *model;               /* with `like`: of the workload, for the strategy's micro-batch */
    const struct dl_session *network;           /* OPTIONAL, without scenario and ideal: was opened with the same
                                                   strategy, system and transport, and outlives this one, which takes its
                                                   machine and what it has chosen for collectives */
    bool timeline;                              /* remember what happens when */
    bool explain;                               /* remember what was chosen for calls */
    void (*progress)(double now_s, uint64_t n); /* OPTIONAL: see engine.h */
    void (*is_long)(void);                      /* OPTIONAL: more is simulated than usual, for links that change */
};

struct dl_session {
    struct dl_session_request request;
    struct dl_arena *arena;
    struct dl_error err; /* the first refusal */
    struct dl_machine machine;
    struct dl_json strategy_doc, workload_doc, device_doc, software_doc, scenario_doc;
    struct dl_json convolutions_doc; /* of the device whose convolutions stand for the device's own; else nothing */
    struct dl_json chip_doc;         /* of the device with the same chip that was timed; else nothing */
    struct dl_json instructions_doc; /* of the device of another chip whose instructions were timed; else nothing */
    struct dl_json timed_doc;        /* the device as its file has it, if --set makes it another; else nothing */
    struct dl_lineage software_like;
    struct dl_scenario scenario;
    struct dl_job job;
    struct dl_software written, software; /* as its file has it, and on so many ranks */
    struct dl_model model;
    struct dl_device device;
    uint32_t *device_of_rank;
    struct dl_estimator estimator;
    struct dl_kept_schedules *schedules; /* its own; NULL: it has those of the session that it is like */
    struct dl_lowered lowered;
    struct dl_read_step program;  /* of a file, in place of the strategy's */
    const char *program_text;     /* NULL: there is no such file */
    struct dl_memory_use *memory; /* by stage */
    /* After dl_session_run: */
    struct dl_run_report report; /* without assumptions */
    struct dl_remedies remedies;
    struct dl_choice *choices; /* by call; NULL: not asked for */
    struct dl_explanation explanation;
    struct dl_campaign campaign;
    struct dl_failing_run failing;
    struct dl_timeline *timeline; /* NULL: not asked for */
    struct dl_link_load *loads;   /* with the timeline: of all links that carried something */
    size_t n_loads;
};

/* Read everything and make the programs. Names in the request must outlive the session, texts of documents need not.
 * Close it in any case. */
enum dl_status dl_session_open(struct dl_session *s, const struct dl_session_request *request);
/* The first half of it: read everything, make no programs. */
enum dl_status dl_session_read(struct dl_session *s, const struct dl_session_request *request);
/* Add all that decides the answer of a session that was read: its documents, and how it is simulated. */
void dl_session_fingerprint(const struct dl_session *s, struct dl_fingerprint *f);
/* The same without its strategy file. */
void dl_session_fingerprint_setup(const struct dl_session *s, struct dl_fingerprint *f);
/* The hash of the first and nothing else. */
void dl_session_sha256(const struct dl_session *s, char sha256[DL_SHA256_HEX]);
/* What was asked, but for the command and the fingerprint. It points into the session. */
struct dl_asked dl_session_asked(const struct dl_session *s);
/* Whether the model of a session that was opened has any. */
bool dl_session_has_experts(const struct dl_session *s);
/* What it is trained on. */
enum dl_domain dl_session_domain(const struct dl_session *s);
/* Ranks wait for the host that takes longest in a step. */
void dl_session_spread_hosts(struct dl_session *s);
/* By the variability of the machine: as drawn, or for an engine without a network what is to be expected of the
 * slowest. NULL: all are alike. */
const double *dl_session_slowdown_of_rank(const struct dl_session *s);
/* Play the step and fill in the report. */
enum dl_status dl_session_run(struct dl_session *s);
/* What is played; and read it from the file that was asked for, if there is one. */
struct dl_step dl_session_step(const struct dl_session *s);
enum dl_status dl_session_read_program(struct dl_session *s);
/* The answer as JSON: what was asked, and the report as it is now. */
json_t *dl_session_answer(struct dl_session *s);
/* Add to the report what the inputs assume. */
void dl_session_list_assumptions(struct dl_session *s);
/* Add to the report which inputs are not shipped. */
void dl_session_list_files(struct dl_session *s);
/* Add to the report of a step that does not fit what would make it fit. */
void dl_session_find_remedies(struct dl_session *s);
/* Add to the report where the step comes from; the request must have asked for it. */
enum dl_status dl_session_explain(struct dl_session *s);
/* What the step draws, after dl_session_run, at a site as the system file has it. */
struct dl_energy dl_session_energy(const struct dl_session *s);
/* Add to the report the whole run on so much, which was checked; nothing if nothing is given. What the site says goes
 * before what the system file does, where it is not 0. */
void dl_session_campaign(struct dl_session *s, const struct dl_amount *amount, const struct dl_facility *site);
/* Whether the machine of a session that was opened says all that these need; nothing is asked: it need not. */
enum dl_status dl_session_check_checkpoints(struct dl_session *s, const struct dl_checkpoints *asked);
/* Add to the report the failures of the whole run; nothing if there is none. */
enum dl_status dl_session_failures(struct dl_session *s, const struct dl_checkpoints *asked);
void dl_session_close(struct dl_session *s);

const struct dl_engine_kind *dl_session_engine(const struct dl_session *s);

#endif
