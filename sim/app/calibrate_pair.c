/* calibrate_pair.c - tables of messages between two devices of a node, or of two nodes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/app/calibrate_parts.h"
#include "sim/report/units.h"

static int by_bytes(const void *a, const void *b)
{
    const struct dl_timing *const x = a, *const y = b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? 1 : -1;
    return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

/* All rows of one sort, from all files. */
static enum dl_status gather(struct dl_calibrating *r, enum dl_timed_what timed, struct dl_points *out,
                             struct dl_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_tables; i++)
        if (r->tables[i].timed == timed) n += r->tables[i].n_rows;
    if (!n) return DL_OK;
    struct dl_timing *const rows = dl_arena_alloc(r->arena, n * sizeof *rows);
    double *const x = dl_arena_alloc(r->arena, n * sizeof *x), *const y = dl_arena_alloc(r->arena, n * sizeof *y);
    size_t sizes = 0;
    n = 0;
    for (size_t i = 0; i < r->n_tables; i++) {
        if (r->tables[i].timed != timed) continue;
        memcpy(rows + n, r->tables[i].rows, r->tables[i].n_rows * sizeof *rows);
        n += r->tables[i].n_rows;
    }
    qsort(rows, n, sizeof *rows, by_bytes);
    for (size_t i = 0; i < n; i++) {
        x[i] = rows[i].bytes;
        y[i] = rows[i].time_s;
        sizes += !i || x[i] > x[i - 1];
    }
    if (sizes < DL_LEAST_MESSAGES)
        return dl_fail(err, DL_RANGE, r->tables[0].name, "has %zu sizes of messages, %d are needed", sizes,
                       DL_LEAST_MESSAGES);
    *out = (struct dl_points){x, y, n};
    return DL_OK;
}

static enum dl_status find_pair(const struct dl_calibrating *r, uint32_t device[2], struct dl_error *err)
{
    const struct dl_topology *const t = r->machine.topology;
    const bool in_node = r->request.pair ? strcmp(r->request.pair, "node") == 0 : t->n_nodes == 1;
    device[0] = 0;
    device[1] = in_node ? 1 : t->node.n_devices;
    if (in_node && t->node.n_devices < 2)
        return dl_fail(err, DL_IMPOSSIBLE, "--pair", "a node of %s has one device; use network", t->name);
    if (!in_node && t->n_nodes < 2) return dl_fail(err, DL_IMPOSSIBLE, "--pair", "%s has one node; use node", t->name);
    return DL_OK;
}

static void add_messages(struct dl_calibrating *r, struct dl_points messages)
{
    for (size_t i = 0; i < messages.n; i++)
        dl_calibrate_add(r, (struct dl_timed_run){.op = DL_SENDRECV, .bytes = messages.x[i], .time_s = messages.y[i]});
}

/* What dlsim says with the documents as they are now. */
static enum dl_status estimate(struct dl_calibrating *r, const uint32_t *pair, bool after, struct dl_error *err)
{
    struct dl_topology *t = NULL;
    struct dl_group *const group = dl_arena_alloc(r->arena, sizeof *group);
    if (dl_topology_read(r->machine.system_doc, r->arena, &t, err)) return err->status;
    dl_group_init(group, t, pair, 2, r->arena);
    for (size_t i = 0; i < r->n_runs; i++) r->runs[i].group = group;
    r->collectives = (struct dl_calibration){
        .topology = t, .transport = r->machine.transport_doc, .runs = r->runs, .n_runs = r->n_runs};
    dl_calibration_estimate(&r->collectives, after, err);
    dl_topology_free(t);
    return err->status;
}

/* The transport alone, with the system as it was, does not say what was measured. */
static void warn_of_system(const struct dl_message_calibration *m)
{
    char wires[DL_QUANTITY], measured[DL_QUANTITY];
    if (m->wires_were_s > 0)
        fprintf(stderr,
                "dlsim: --write-transport: the wires of %s take %s, more than the %s of a small message: use "
                "--write-system too, which makes them shorter\n",
                m->topology->name, dl_format_seconds(m->wires_were_s, wires),
                dl_format_seconds(m->fit.small.intercept, measured));
    if (m->wire_is_replaced)
        fprintf(stderr,
                "dlsim: --write-transport: the bandwidth of %s links, which %s assumes, was measured: use "
                "--write-system too, which has it\n",
                m->link, m->topology->name);
}

enum dl_status dl_calibrate_pair(struct dl_calibrating *r, struct dl_error *err)
{
    const struct dl_calibrate_request *const q = &r->request;
    struct dl_message_calibration *const m = &r->messages;
    uint32_t pair[2];
    *m = (struct dl_message_calibration){.topology = r->machine.topology,
                                         .system = r->machine.system_doc,
                                         .transport = r->machine.transport_doc,
                                         .source = r->source,
                                         .where = r->tables[0].name};
    if (q->op || q->devices)
        return dl_fail(err, DL_SYNTAX, q->op ? "--op" : "--devices", "is for collectives, %s is of messages", m->where);
    if (find_pair(r, pair, err) || gather(r, DL_TIMED_MESSAGE, &m->messages, err) ||
        gather(r, DL_TIMED_STREAM, &m->stream, err))
        return err->status;
    m->from = pair[0];
    m->to = pair[1];
    add_messages(r, m->messages);
    if (estimate(r, pair, false, err) || dl_calibrate_messages(m, r->arena, err)) return err->status;
    if (q->write_transport && !q->write_system) warn_of_system(m);
    return estimate(r, pair, true, err);
}
