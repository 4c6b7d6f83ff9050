/* calibrate_groups.c - tables of collectives: which devices ran them, and which rows are kept out. */
#include <stdio.h>

#include "sim/app/calibrate_parts.h"
#include "sim/report/units.h"
#include "sim/report/validation.h"
#include "topologies/placement.h"

/* Devices by the hosts and numbers that the file says. */
static enum dl_status place_as_said(const struct dl_timings *table, const struct dl_topology *t, uint32_t *device,
                                    struct dl_error *err)
{
    for (uint32_t i = 0; i < table->n_ranks; i++) {
        if (table->host[i] >= t->n_nodes)
            return dl_fail(err, DL_IMPOSSIBLE, table->name, "is of more hosts than the %u node%s of %s", t->n_nodes,
                           t->n_nodes == 1 ? "" : "s", t->name);
        if (table->slot[i] >= t->node.n_devices)
            return dl_fail(err, DL_IMPOSSIBLE, table->name, "rank %u is on device %u of its host; a node of %s has %u",
                           i, table->slot[i], t->name, t->node.n_devices);
        device[i] = table->host[i] * t->node.n_devices + table->slot[i];
        for (uint32_t j = 0; j < i; j++)
            if (device[j] == device[i])
                return dl_fail(err, DL_IMPOSSIBLE, table->name, "ranks %u and %u are on the same device", j, i);
    }
    return DL_OK;
}

static enum dl_status make_group(struct dl_calibrating *r, const struct dl_timings *table, struct dl_group **out,
                                 struct dl_error *err)
{
    const struct dl_topology *const t = r->machine.topology;
    const uint64_t n = table->n_ranks ? table->n_ranks : r->request.devices;
    if (!n) return dl_fail(err, DL_SYNTAX, table->name, "does not say its ranks; use --devices N");
    if (n < 2) return dl_fail(err, DL_IMPOSSIBLE, table->name, "is of one rank, which exchanges nothing");
    if (r->request.devices && n != r->request.devices)
        return dl_fail(err, DL_IMPOSSIBLE, "--devices", "%s is of %llu ranks", table->name, (unsigned long long)n);
    if (n > t->n_devices)
        return dl_fail(err, DL_RANGE, table->name, "is of %llu ranks; %s has %u devices", (unsigned long long)n,
                       t->name, t->n_devices);
    uint32_t *const device = dl_arena_alloc(r->arena, n * sizeof *device);
    if (table->n_ranks ? place_as_said(table, t, device, err) : dl_place(t, "packed", 0, (uint32_t)n, device, err))
        return err->status;
    *out = dl_arena_alloc(r->arena, sizeof **out);
    dl_group_init(*out, t, device, (uint32_t)n, r->arena);
    return DL_OK;
}

/* What sendrecv_perf measures among more ranks, all sending at once, is no operation of dlsim. */
static enum dl_status find_op(const struct dl_calibrating *r, const struct dl_timings *table, uint32_t n_ranks,
                              enum dl_op *op, struct dl_error *err)
{
    *op = table->op != DL_N_OPS ? table->op : r->request.op ? dl_op_named(r->request.op) : DL_N_OPS;
    if (*op == DL_N_OPS) return dl_fail(err, DL_SYNTAX, table->name, "does not say its operation; use --op OP");
    if (r->request.op && *op != dl_op_named(r->request.op))
        return dl_fail(err, DL_IMPOSSIBLE, "--op", "%s is of %s", table->name, dl_op_name(*op));
    if (*op == DL_SENDRECV && n_ranks != 2)
        return dl_fail(err, DL_IMPOSSIBLE, table->name, "sendrecv must be of 2 ranks, this is of %u", n_ranks);
    return DL_OK;
}

/* Runs of the same kind are all fitted to or all kept out, or the one half would tell of the other. */
static enum dl_status add_collectives(struct dl_calibrating *r, const struct dl_timings *table, struct dl_error *err)
{
    struct dl_group *group = NULL;
    enum dl_op op;
    if (make_group(r, table, &group, err) || find_op(r, table, group->n, &op, err)) return err->status;
    for (size_t i = 0; i < table->n_rows; i++) {
        const struct dl_timing *const row = &table->rows[i];
        const char *const id =
            dl_arena_format(r->arena, "%s %u %u %.0f", dl_op_name(op), group->n, group->n_nodes, row->bytes);
        dl_calibrate_add(
            r,
            (struct dl_timed_run){
                .op = op, .group = group, .bytes = row->bytes, .time_s = row->time_s, .kept_out = dl_is_kept_out(id)});
    }
    return DL_OK;
}

static enum dl_status check_halves(const struct dl_calibrating *r, struct dl_error *err)
{
    const size_t least = 4;
    size_t n_fit = 0;
    for (size_t i = 0; i < r->n_runs; i++) n_fit += !r->runs[i].kept_out;
    if (n_fit >= least) return DL_OK;
    return dl_fail(err, DL_RANGE, r->tables[0].name,
                   "has too few rows: %zu are left when about half are kept out to check, %zu are needed", n_fit,
                   least);
}

/* What no transport can do on this system should not be asked of it. */
static enum dl_status warn_of_wires(struct dl_calibrating *r, struct dl_error *err)
{
    char wires[DL_QUANTITY], measured[DL_QUANTITY], bytes[DL_QUANTITY];
    double wires_s;
    const struct dl_timed_run *const run =
        dl_calibration_below_wires(&r->collectives, r->machine.transport_doc, &wires_s, r->arena, err);
    if (run)
        fprintf(stderr,
                "dlsim: %s: the wires of %s alone take %s of an %s of %s, which took %s: no transport reaches that; a "
                "table of messages with --write-system makes the wires shorter\n",
                r->machine.system_doc.where, r->machine.topology->name, dl_format_seconds(wires_s, wires),
                dl_op_name(run->op), dl_format_bytes(run->bytes, bytes), dl_format_seconds(run->time_s, measured));
    return err->status;
}

enum dl_status dl_calibrate_groups(struct dl_calibrating *r, struct dl_error *err)
{
    struct dl_calibration *const c = &r->collectives;
    if (r->request.pair)
        return dl_fail(err, DL_SYNTAX, "--pair", "is for messages, %s is of collectives", r->tables[0].name);
    for (size_t i = 0; i < r->n_tables; i++)
        if (add_collectives(r, &r->tables[i], err)) return err->status;
    *c = (struct dl_calibration){
        .topology = r->machine.topology, .transport = r->machine.transport_doc, .runs = r->runs, .n_runs = r->n_runs};
    if (check_halves(r, err) || dl_calibrate(c, r->arena, err)) return err->status;
    if (!c->constants.n)
        return dl_fail(err, DL_IMPOSSIBLE, r->machine.transport_doc.where,
                       "has no constants that rows could tell; use another --transport");
    r->tells_nothing =
        dl_calibration_count(c, DL_FIT_NO_EFFECT) + dl_calibration_count(c, DL_FIT_NOT_TOLD) == c->constants.n;
    dl_calibration_apply(c, r->machine.transport_doc, r->source, r->arena);
    return warn_of_wires(r, err);
}
