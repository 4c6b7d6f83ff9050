/* collective_runs.h - collectives simulated on a machine, for tests and benches: a list of jobs in one simulation, in a
 * process of its own because SimGrid allows only one simulation a process.
 *
 * A job starts when the one before it has ended, or together with it. Small jobs go first in a list: dates are sums,
 * and a short job late in simulated time would lose digits. */
#ifndef DL_TESTS_COLLECTIVE_RUNS_H
#define DL_TESTS_COLLECTIVE_RUNS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/collective/choose.h"
#include "sim/collective/effort.h"
#include "sim/collective/shapes.h"
#include "sim/engine/exchange.h"
#include "sim/engine/scenario.h"
#include "sim/session/inputs.h"

struct setting {
    const char *system, *transport; /* transport NULL: the system's own */
    const char *engine;
    struct dl_texts set; /* as --set */
    const char *text;    /* of the system, in place of the shipped file; NULL: the file */
    const char *links;   /* of a scenario, the items of its list; NULL: none change */
};

struct job {
    enum dl_op op;
    const char *algorithm;
    uint32_t n;
    double bytes;
    uint32_t chunks; /* 0: as the transport does it */
    struct dl_payload payload;
    const uint32_t *device; /* NULL: 0, 1, 2, ...; one more than n */
    bool fluid, with_previous;
    bool by_message; /* as --fidelity step */
    bool refusable;  /* the algorithm may refuse this group: then there is no result */
};

struct outcome {
    struct dl_exchange_result result;
    double estimate_s, crowded_s; /* alone; where another group brings as much over the same links */
    double busiest_link_s;        /* bytes / bandwidth of all jobs together */
    double n_bundles;             /* as they are counted beforehand */
    bool refused;
    bool names_faster;      /* the choice, which is a tuner's */
    char limiting_link[96]; /* of all jobs together */
};

/* ---- in the child ---- */

struct job_run {
    uint32_t *device;
    struct dl_group group;
    struct dl_choice choice;
    struct dl_exchange *exchange;
};

struct jobs_run {
    const struct job *jobs;
    size_t n_jobs, next, n_running;
    struct job_run *runs;
    struct outcome *outcomes;
    struct dl_engine *engine;
    struct dl_wire *wire;
    struct dl_scenario scenario;
};

static inline void stop_on(const struct dl_error *err)
{
    if (!err->status) return;
    fprintf(stderr, "%s\n", err->text);
    _exit(EXIT_FAILURE);
}

static inline void choose_job(struct dl_machine *m, const struct job *job, struct job_run *run, struct outcome *outcome,
                              struct dl_arena *arena)
{
    struct dl_error err = {0};
    struct dl_estimator estimator;
    dl_estimator_init(&estimator, m->topology, &m->transport, m->bytes_per_s);
    estimator.fluid = job->fluid;
    estimator.by_message = job->by_message;
    const struct dl_wish wish = {.op = job->op,
                                 .back_fraction = job->op == DL_HALO ? 0.5 : 0,
                                 .algorithm = job->algorithm,
                                 .protocol = "auto",
                                 .group = &run->group,
                                 .bytes = job->bytes,
                                 .chunks = job->chunks,
                                 .payload = job->payload,
                                 .servers = 1};
    outcome->refused = dl_choose(&estimator, &wish, arena, &run->choice, &err) == DL_IMPOSSIBLE && job->refusable;
    if (!outcome->refused) stop_on(&err);
    if (!outcome->refused) outcome->n_bundles = dl_count_bundles(&run->choice.collective, job->fluid);
    outcome->estimate_s = run->choice.estimate.time_s;
    outcome->crowded_s = dl_estimate_crowded_s(&run->choice.estimate, 2);
    outcome->names_faster = run->choice.faster.algorithm != NULL;
    dl_estimator_release(&estimator);
}

static inline void place_job(const struct dl_topology *t, const struct job *job, struct job_run *run,
                             struct dl_arena *arena)
{
    run->device = dl_arena_alloc(arena, (job->n + 1) * sizeof *run->device);
    for (uint32_t i = 0; i <= job->n; i++) run->device[i] = job->device ? job->device[i] : i;
    dl_group_init(&run->group, t, run->device, job->n, arena);
    run->group.shapes = dl_shapes_new();
}

static inline void start_jobs(void *user, uint32_t tag)
{
    (void)tag;
    struct jobs_run *const r = user;
    if (r->n_running && --r->n_running) return;
    while (r->next < r->n_jobs && r->outcomes[r->next].refused) r->next++;
    while (r->next < r->n_jobs && (!r->n_running || r->jobs[r->next].with_previous)) {
        struct job_run *const run = &r->runs[r->next];
        r->n_running++;
        run->exchange = dl_exchange_start(&(struct dl_exchange_spec){.engine = r->engine,
                                                                     .wire = r->wire,
                                                                     .collective = &run->choice.collective,
                                                                     .pace = &run->choice.estimate.pace,
                                                                     .fluid = r->jobs[r->next++].fluid,
                                                                     .done = start_jobs,
                                                                     .user = r});
    }
}

static inline void read_links(const struct setting *s, const struct dl_machine *m, struct jobs_run *r,
                              struct dl_arena *arena)
{
    char text[2048];
    struct dl_json doc;
    struct dl_error err = {0};
    const struct dl_scenario_scope scope = {
        .topology = m->topology, .devices = r->runs[0].device, .n_devices = r->jobs[0].n};
    if (!s->links) return;
    const int length =
        snprintf(text, sizeof text, "{\"schema\":\"dlsim/scenario/1\",\"source\":\"a test\",\"links\":[%s]}", s->links);
    if (!dl_json_parse(text, (size_t)length, "scenario", arena, &doc, &err))
        dl_scenario_read(doc, &scope, arena, &r->scenario, &err);
    stop_on(&err);
}

/* Exchanges book their last bytes when they are freed. */
static inline void note_limiting_link(const struct dl_topology *t, struct jobs_run *r)
{
    struct dl_link_load busiest;
    for (size_t i = 0; i < r->n_jobs; i++) dl_exchange_free(r->runs[i].exchange);
    const size_t n = dl_wire_busiest(r->wire, &busiest, 1);
    for (size_t i = 0; n && i < r->n_jobs; i++) {
        dl_topology_link_name(t, busiest.link, r->outcomes[i].limiting_link, sizeof r->outcomes[i].limiting_link);
        r->outcomes[i].busiest_link_s = busiest.busy_s;
    }
}

static inline void simulate_jobs(struct dl_machine *m, const char *engine, struct jobs_run *r)
{
    struct dl_error err = {0};
    struct dl_engine_link *const links = dl_machine_links(m);
    r->engine = dl_engine_find(engine)->create(links, m->topology->n_links);
    r->wire = dl_wire_new(r->engine, m->topology, m->bytes_per_s, &err);
    dl_scenario_start(&r->scenario, r->wire);
    start_jobs(r, 0);
    r->engine->kind->run(r->engine);
    stop_on(&err);
    for (size_t i = 0; i < r->n_jobs; i++)
        if (r->runs[i].exchange) r->outcomes[i].result = dl_exchange_result(r->runs[i].exchange);
    note_limiting_link(m->topology, r);
}

/* What is left unfreed goes with the process. */
static inline void run_here(const struct setting *s, const struct job *jobs, size_t n_jobs, struct outcome *outcomes)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_machine m = {0};
    struct jobs_run r = {
        .jobs = jobs, .n_jobs = n_jobs, .outcomes = outcomes, .runs = dl_alloc(n_jobs * sizeof *r.runs)};
    if (!dl_machine_open((struct dl_input){.name = s->system, .text = s->text}, &s->set, arena, &m, &err)) {
        for (size_t i = 0; i < n_jobs; i++) place_job(m.topology, &jobs[i], &r.runs[i], arena);
        dl_machine_use_transport(&m, s->transport, r.runs[0].group.n_nodes, &s->set, arena, &err);
    }
    stop_on(&err);
    read_links(s, &m, &r, arena);
    for (size_t i = 0; i < n_jobs; i++) choose_job(&m, &jobs[i], &r.runs[i], &outcomes[i], arena);
    simulate_jobs(&m, s->engine, &r);
}

/* ---- for the tests ---- */

static inline void send_outcomes(int to, const struct outcome *outcomes, size_t n)
{
    const size_t bytes = n * sizeof *outcomes;
    for (size_t done = 0; done < bytes;) {
        const ssize_t part = write(to, (const char *)outcomes + done, bytes - done);
        if (part <= 0) _exit(EXIT_FAILURE);
        done += (size_t)part;
    }
}

static inline bool receive_outcomes(int from, struct outcome *outcomes, size_t n)
{
    const size_t bytes = n * sizeof *outcomes;
    size_t got = 0;
    for (ssize_t part; (part = read(from, (char *)outcomes + got, bytes - got)) > 0;) got += (size_t)part;
    return got == bytes;
}

static inline void stop_unless(bool fine, const char *what)
{
    if (fine) return;
    fprintf(stderr, "%s\n", what);
    exit(EXIT_FAILURE);
}

/* Stops the program if a job fails. All groups of the list span as many nodes as the first, as far as the transport
 * cares (one, two, more). */
static inline void run_jobs(const struct setting *s, const struct job *jobs, size_t n_jobs, struct outcome *outcomes)
{
    int ends[2], status;
    memset(outcomes, 0, n_jobs * sizeof *outcomes);
    fflush(NULL); /* or the child would print it again */
    stop_unless(pipe(ends) == 0, "no pipe");
    const pid_t child = fork();
    if (child == 0) {
        run_here(s, jobs, n_jobs, outcomes);
        send_outcomes(ends[1], outcomes, n_jobs);
        _exit(EXIT_SUCCESS);
    }
    close(ends[1]);
    const bool complete = receive_outcomes(ends[0], outcomes, n_jobs);
    close(ends[0]);
    stop_unless(waitpid(child, &status, 0) == child && status == 0 && complete, "a simulation failed");
    for (size_t i = 0; i < n_jobs; i++) {
        const struct outcome *const o = &outcomes[i];
        stop_unless(o->refused || o->result.complete, "a simulation did not end");
        stop_unless(o->refused || (double)o->result.bundles == o->n_bundles, "bundles are miscounted");
    }
}

#endif
