/* played_program.h - programs that are written by hand as text, on a crossbar of 1e9 bytes/s or on another machine. */
#ifndef TESTS_UNIT_PLAYED_PROGRAM_H
#define TESTS_UNIT_PLAYED_PROGRAM_H

#include "sim/program/program_text.h"
#include "tests/unit/hand_made_step.h"

enum { MOST_PLAYED_REPLICAS = 16 };

static const char *machine;            /* NULL: the crossbar, without hosts */
static const double *slowdown_of_rank; /* NULL: all are alike */
static uint64_t program_seed;

struct played_text {
    double step_s; /* of the last; below 0: refused, with err */
    struct dl_error err;
    double exchanged_s[MOST_PLAYED_REPLICAS]; /* by replica of the first stage: when its last collective ended */
};

static inline void note_slice(void *user, const struct dl_slice *slice)
{
    struct played_text *const out = user;
    if (slice->kind == DL_SLICE_EXCHANGE && slice->stage == 0 && slice->replica < MOST_PLAYED_REPLICAS)
        out->exchanged_s[slice->replica] = slice->to_s;
}

static inline void play_read(struct hand_made *h, const struct dl_step *step, uint32_t n_steps, struct played_text *out)
{
    struct dl_engine_link *const links = dl_machine_links(&h->machine);
    struct dl_engine *const engine = dl_engine_get(0)->create(links, h->machine.topology->n_links);
    struct dl_wire *const wire = dl_wire_new(engine, h->machine.topology, h->machine.bytes_per_s, &out->err);
    const struct dl_recorder recorder = {.add = note_slice, .user = out};
    struct dl_training *const training =
        dl_training_start(&(struct dl_training_request){.engine = engine,
                                                        .wire = wire,
                                                        .estimator = &h->estimator,
                                                        .step = *step,
                                                        .device_of_rank = h->device_of_rank,
                                                        .slowdown_of_rank = slowdown_of_rank,
                                                        .recorder = &recorder,
                                                        .arena = h->arena,
                                                        .seed = program_seed,
                                                        .iterations = n_steps},
                          &out->err);
    if (!out->err.status) engine->kind->run(engine);
    const struct dl_training_result result = dl_training_result(training, &out->err);
    if (result.complete) out->step_s = result.step_s;
    dl_training_free(training);
    dl_wire_free(wire);
    engine->kind->destroy(engine);
    dl_free(links);
}

static inline void play_text(const char *program, uint32_t n_ranks, uint32_t n_steps, struct played_text *out)
{
    const struct step size = {.system = machine, .stages = n_ranks, .replicas = 1};
    struct hand_made h = {.step = &size, .arena = dl_arena_new()};
    char *const text = strdup(program);
    struct dl_read_step read;
    out->step_s = -1;
    open_crossbar(&h);
    if (!dl_step_read(text, "test.txt", h.arena, &read, &out->err)) play_read(&h, &read.step, n_steps, out);
    dl_read_step_release(&read);
    free(text);
    dl_estimator_release(&h.estimator);
    dl_machine_close(&h.machine);
    dl_free(h.device_of_rank);
    dl_arena_free(h.arena);
}

/* Of so many ranks, in a child: a process simulates once. */
static inline struct played_text play_program(const char *program, uint32_t n_ranks, uint32_t n_steps)
{
    struct played_text *const shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;
    ck_assert(shared != MAP_FAILED);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        play_text(program, n_ranks, n_steps, shared);
        _exit(0);
    }
    ck_assert(waitpid(child, &status, 0) == child && status == 0);
    const struct played_text out = *shared;
    munmap(shared, sizeof *shared);
    return out;
}

#endif
