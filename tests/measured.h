/* measured.h - published runs of all-reduce (validation/published/nccl_allreduce.json) and what dlsim says of them:
 * estimated in this process, simulated in a child, as SimGrid allows one simulation a process. */
#ifndef DL_TESTS_MEASURED_H
#define DL_TESTS_MEASURED_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/collective/choose.h"
#include "sim/core/files.h"
#include "sim/engine/exchange.h"
#include "sim/session/inputs.h"
#include "topologies/placement.h"

#define MEASURED_FOLDER "validation/published"

struct measured_row {
    const char *group, *family, *source;
    const char *system, *algorithm;
    int64_t devices;
    double bytes, time_s;
};

struct measured {
    struct dl_json doc; /* holds the texts of the rows */
    struct measured_row *rows;
    size_t n_rows, capacity;
};

static inline void stop_on_error(const struct dl_error *err)
{
    if (!err->status) return;
    fprintf(stderr, "%s\n", err->text);
    exit(EXIT_FAILURE);
}

static inline void measured_add(struct measured *m, const struct measured_row *row)
{
    DL_GROW(m->rows, m->n_rows, m->capacity);
    m->rows[m->n_rows++] = *row;
}

static inline void measured_read_group(struct measured *m, struct dl_json group, struct dl_arena *arena,
                                       struct dl_error *err)
{
    static const struct dl_field fields[] = {
        {"system", DL_TEXT, offsetof(struct measured_row, system), 0, 0, false, NULL, NULL},
        {"devices", DL_INT, offsetof(struct measured_row, devices), 2, 1e6, false, NULL, NULL},
        {"bytes", DL_NUMBER, offsetof(struct measured_row, bytes), 1, 1e15, false, NULL, NULL},
        {"time_s", DL_NUMBER, offsetof(struct measured_row, time_s), 1e-9, 1e6, false, NULL, NULL},
    };
    struct header {
        const char *name, *family, *source;
        struct dl_json rows;
    } header;
    static const struct dl_field header_fields[] = {
        {"name", DL_TEXT, offsetof(struct header, name), 0, 0, false, NULL, NULL},
        {"family", DL_TEXT, offsetof(struct header, family), 0, 0, false, NULL, NULL},
        {"source", DL_TEXT, offsetof(struct header, source), 0, 0, false, NULL, NULL},
        {"rows", DL_LIST, offsetof(struct header, rows), 0, 0, false, NULL, NULL},
    };
    dl_read(group, header_fields, DL_COUNT(header_fields), &header, arena, err);
    stop_on_error(err);
    for (size_t i = 0; i < json_array_size(header.rows.value); i++) {
        struct measured_row row = {
            .group = header.name, .family = header.family, .source = header.source, .algorithm = "auto"};
        dl_read(dl_json_element(header.rows, i, arena), fields, DL_COUNT(fields), &row, arena, err);
        stop_on_error(err);
        measured_add(m, &row);
    }
}

/* Rows that state a bus bandwidth become rows with a time, of the group and family "bus". */
static inline void measured_read_bus(struct measured *m, struct dl_json list, struct dl_arena *arena,
                                     struct dl_error *err)
{
    struct bus {
        struct measured_row row;
        double bus_bytes_per_s;
    };
    static const struct dl_field fields[] = {
        {"system", DL_TEXT, offsetof(struct bus, row.system), 0, 0, false, NULL, NULL},
        {"devices", DL_INT, offsetof(struct bus, row.devices), 2, 1e6, false, NULL, NULL},
        {"bytes", DL_NUMBER, offsetof(struct bus, row.bytes), 1, 1e15, false, NULL, NULL},
        {"algorithm", DL_TEXT, offsetof(struct bus, row.algorithm), 0, 0, false, NULL, NULL},
        {"bus_bytes_per_s", DL_NUMBER, offsetof(struct bus, bus_bytes_per_s), 1, 1e15, false, NULL, NULL},
        {"source", DL_TEXT, offsetof(struct bus, row.source), 0, 0, false, NULL, NULL},
    };
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        struct bus bus = {.row = {.group = "bus", .family = "bus"}};
        dl_read(dl_json_element(list, i, arena), fields, DL_COUNT(fields), &bus, arena, err);
        stop_on_error(err);
        bus.row.time_s =
            dl_bus_bytes_per_s(DL_ALLREDUCE, (uint32_t)bus.row.devices, bus.row.bytes, 1) / bus.bus_bytes_per_s;
        measured_add(m, &bus.row);
    }
}

/* Rows of a system are next to each other. */
static inline struct measured measured_load(struct dl_arena *arena)
{
    struct measured m = {0};
    struct dl_error err = {0};
    struct lists {
        struct dl_json groups, bus;
    } lists;
    static const struct dl_field fields[] = {
        {"groups", DL_LIST, offsetof(struct lists, groups), 0, 0, false, NULL, NULL},
        {"bus_bytes_per_s", DL_LIST, offsetof(struct lists, bus), 0, 0, false, NULL, NULL},
    };
    const char *path;
    if (!dl_find_file(MEASURED_FOLDER, "measurement", "nccl_allreduce", arena, &path, &err) &&
        !dl_json_load(path, arena, &m.doc, &err))
        dl_read_document(m.doc, "measured", fields, DL_COUNT(fields), &lists, arena, &err);
    stop_on_error(&err);
    for (size_t i = 0; i < json_array_size(lists.groups.value); i++)
        measured_read_group(&m, dl_json_element(lists.groups, i, arena), arena, &err);
    measured_read_bus(&m, lists.bus, arena, &err);
    return m;
}

static inline void measured_release(struct measured *m)
{
    dl_free(m->rows);
    json_decref(m->doc.value);
}

/* The first devices of a system, with its own transport. */
struct subject {
    struct dl_arena *arena;
    struct dl_machine machine;
    uint32_t *device;
    struct dl_group group;
    struct dl_estimator estimator;
};

static inline void subject_open(struct subject *s, const char *system, uint32_t n_devices)
{
    const struct dl_texts nothing_set = {0};
    struct dl_error err = {0};
    *s = (struct subject){.arena = dl_arena_new()};
    dl_machine_open((struct dl_input){.name = system}, &nothing_set, s->arena, &s->machine, &err);
    stop_on_error(&err);
    s->device = dl_alloc(n_devices * sizeof *s->device);
    dl_place(s->machine.topology, "packed", 0, n_devices, s->device, &err);
    stop_on_error(&err);
    dl_group_init(&s->group, s->machine.topology, s->device, n_devices, s->arena);
    dl_machine_use_transport(&s->machine, NULL, s->group.n_nodes, &nothing_set, s->arena, &err);
    stop_on_error(&err);
    dl_estimator_init(&s->estimator, s->machine.topology, &s->machine.transport, s->machine.bytes_per_s);
}

static inline void subject_close(struct subject *s)
{
    dl_estimator_release(&s->estimator);
    dl_machine_close(&s->machine);
    dl_free(s->device);
    dl_arena_free(s->arena);
}

static inline struct dl_choice subject_choose(struct subject *s, const char *algorithm, double bytes)
{
    struct dl_error err = {0};
    struct dl_choice choice;
    const struct dl_wish wish = {
        .op = DL_ALLREDUCE, .algorithm = algorithm, .protocol = "auto", .group = &s->group, .bytes = bytes};
    dl_choose(&s->estimator, &wish, s->arena, &choice, &err);
    stop_on_error(&err);
    return choice;
}

static inline double subject_run(const struct subject *s, const struct dl_choice *choice)
{
    const struct dl_engine_kind *const kind = dl_engine_get(0);
    const size_t n_links = s->machine.topology->n_links;
    struct dl_error err = {0};
    struct dl_engine_link *const links = dl_machine_links(&s->machine);
    struct dl_engine *const engine = kind->create(links, n_links);
    struct dl_wire *const wire = dl_wire_new(engine, s->machine.topology, s->machine.bytes_per_s, &err);
    struct dl_exchange *const exchange = dl_exchange_start(&(struct dl_exchange_spec){
        .engine = engine, .wire = wire, .collective = &choice->collective, .pace = &choice->estimate.pace});
    kind->run(engine);
    const struct dl_exchange_result result = dl_exchange_result(exchange);
    return result.complete ? result.time_s : NAN;
}

/* Runs in a child, which leaves without cleaning up. */
static inline double subject_simulate(const struct subject *s, const struct dl_choice *choice)
{
    int ends[2];
    double time_s = NAN;
    if (pipe(ends)) return NAN;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        time_s = subject_run(s, choice);
        _exit(write(ends[1], &time_s, sizeof time_s) != sizeof time_s);
    }
    close(ends[1]);
    if (read(ends[0], &time_s, sizeof time_s) != sizeof time_s) time_s = NAN;
    close(ends[0]);
    waitpid(child, NULL, 0);
    return time_s;
}

#endif
