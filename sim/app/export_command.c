/* export_command.c - the machine as others read it: a SimGrid platform for SMPI, a picture for graphviz. */
#include <string.h>

#include "sim/app/commands.h"
#include "sim/app/inputs.h"
#include "sim/report/platform.h"

struct request {
    const char *topo, *transport, *format;
    uint64_t devices;
    struct dl_texts set;
};

static const char *const formats[] = {"simgrid", "dot", NULL};

static const struct dl_option options[] = {
    {"topo", DL_OPT_TEXT, offsetof(struct request, topo), true, 0, 0, NULL,
     "the machine: a name of `dlsim list topologies`, or a file"},
    {"format", DL_OPT_CHOICE, offsetof(struct request, format), true, 0, 0, formats,
     "a SimGrid platform, or a graphviz picture"},
    {"transport", DL_OPT_TEXT, offsetof(struct request, transport), false, 0, 0, NULL,
     "the library whose efficiencies the links of --format simgrid get; the machine's if absent"},
    {"devices", DL_OPT_COUNT, offsetof(struct request, devices), false, 1, 2147483647.0, NULL,
     "how many of the machine; all if absent"},
    {"set", DL_OPT_TEXTS, offsetof(struct request, set), false, 0, 0, NULL,
     "override a value of the machine or its transport: topo.nodes=4, transport.efficiency.ib-hdr=1; may be repeated"},
};

static bool is_simgrid(const struct request *q) { return q->format == formats[0]; }

/* The picture has the links as the machine's file has them. */
static enum dl_status check_together(const struct request *q, struct dl_error *err)
{
    static const char only_simgrid[] = "efficiencies of a transport are in --format simgrid only";
    if (is_simgrid(q)) return DL_OK;
    if (q->transport) return dl_fail(err, DL_IMPOSSIBLE, "--transport", only_simgrid);
    for (size_t i = 0; i < q->set.n; i++)
        if (dl_set_is_for(q->set.items[i], "transport"))
            return dl_fail(err, DL_IMPOSSIBLE, "--set", "'%.100s': %s", q->set.items[i], only_simgrid);
    return DL_OK;
}

/* The whole machine, or the slice of it that so many devices get. */
static enum dl_status open_machine(struct request *q, struct dl_machine *m, struct dl_arena *arena,
                                   struct dl_error *err)
{
    if (dl_machine_open((struct dl_input){.name = q->topo}, &q->set, arena, m, err)) return err->status;
    const uint32_t all = m->topology->n_devices;
    if (!q->devices) q->devices = all;
    if (q->devices > all)
        return dl_fail(err, DL_RANGE, "--devices", "%s has %u devices, got %u", m->topology->name, all,
                       (uint32_t)q->devices);
    return dl_machine_slice(m, (uint32_t)q->devices, NULL, err);
}

static enum dl_status write(const struct request *q, const struct dl_machine *m, struct dl_error *err)
{
    const uint32_t n = (uint32_t)q->devices;
    if (is_simgrid(q)) return dl_platform_write_simgrid(m->topology, m->bytes_per_s, n, err);
    return dl_platform_write_dot(m->topology, n, err);
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {0};
    struct dl_machine m = {0};
    struct dl_arena *const arena = dl_arena_new();
    if (!dl_read_options(argc, argv, options, DL_COUNT(options), &q, NULL, err) && !dl_only_machine_set(&q.set, err) &&
        !check_together(&q, err) && !open_machine(&q, &m, arena, err) &&
        !dl_machine_use_transport(&m, q.transport, m.topology->n_nodes, &q.set, arena, err))
        write(&q, &m, err);
    dl_machine_close(&m);
    dl_arena_free(arena);
    return 0;
}

const struct dl_command dl_command_export = {
    .name = "export",
    .doc = "write the machine as a SimGrid platform or a graphviz picture",
    .usage = "export --topo T --format simgrid|dot [--devices N]",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
