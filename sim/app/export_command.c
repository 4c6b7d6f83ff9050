/* export_command.c - what others read: the machine as a SimGrid platform for SMPI or a picture for graphviz, a strategy
 * as flags of Megatron-LM. */
#include <string.h>

#include "sim/app/commands.h"
#include "sim/app/export_megatron.h"
#include "sim/report/platform.h"
#include "sim/session/inputs.h"

struct request {
    const char *topo, *transport, *format, *strategy, *workload;
    uint64_t devices;
    struct dl_texts set;
};

static const char *const formats[] = {"simgrid", "dot", "megatron", NULL};

static const struct dl_option options[] = {
    {"topo", DL_OPT_TEXT, offsetof(struct request, topo), false, 0, 0, NULL,
     "the machine, for simgrid and dot: a name of `dlsim list topologies`, or a file"},
    {"strategy", DL_OPT_TEXT, offsetof(struct request, strategy), false, 0, 0, NULL,
     "how it is trained, for megatron: a name of `dlsim list strategies`, or a file"},
    {"workload", DL_OPT_TEXT, offsetof(struct request, workload), false, 0, 0, NULL,
     "the model, for megatron; the strategy's if absent"},
    {"format", DL_OPT_CHOICE, offsetof(struct request, format), true, 0, 0, formats,
     "a SimGrid platform, a graphviz picture, or a launch command of Megatron-LM"},
    {"transport", DL_OPT_TEXT, offsetof(struct request, transport), false, 0, 0, NULL,
     "the library whose efficiencies the links of --format simgrid get; the machine's if absent"},
    {"devices", DL_OPT_COUNT, offsetof(struct request, devices), false, 1, 2147483647.0, NULL,
     "how many of the machine, all if absent; for megatron as the strategy says if absent"},
    {"set", DL_OPT_TEXTS, offsetof(struct request, set), false, 0, 0, NULL,
     "override a value of what is exported: topo.nodes=4, transport.efficiency.ib-hdr=1, microbatch=2; may be "
     "repeated"},
};

static bool is_simgrid(const struct request *q) { return q->format == formats[0]; }
static bool is_megatron(const struct request *q) { return q->format == formats[2]; }

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

static enum dl_status export_machine(struct request *q, struct dl_error *err)
{
    struct dl_machine m = {0};
    struct dl_arena *const arena = dl_arena_new();
    if (!dl_only_machine_set(&q->set, err) && !check_together(q, err) && !open_machine(q, &m, arena, err) &&
        !dl_machine_use_transport(&m, q->transport, m.topology->n_nodes, &q->set, arena, err))
        write(q, &m, err);
    dl_machine_close(&m);
    dl_arena_free(arena);
    return err->status;
}

/* An option that the format needs, or that means nothing to it. */
static enum dl_status check_options(const struct request *q, struct dl_error *err)
{
    const struct {
        const char *option, *given;
        bool for_machine, is_needed;
    } of[] = {{"--topo", q->topo, true, true},
              {"--transport", q->transport, true, false},
              {"--strategy", q->strategy, false, true},
              {"--workload", q->workload, false, false}};
    for (size_t i = 0; i < DL_COUNT(of); i++) {
        const bool fits = of[i].for_machine != is_megatron(q);
        if (of[i].given && !fits)
            return dl_fail(err, DL_IMPOSSIBLE, of[i].option, "means nothing with --format %s", q->format);
        if (!of[i].given && fits && of[i].is_needed)
            return dl_fail(err, DL_KEY, of[i].option, "must be given with --format %s", q->format);
    }
    return DL_OK;
}

static int run(int argc, char **argv, struct dl_error *err)
{
    struct request q = {0};
    if (dl_read_options(argc, argv, options, DL_COUNT(options), &q, NULL, err) || check_options(&q, err)) return 0;
    const struct dl_export_training training = {q.strategy, q.workload, (uint32_t)q.devices, &q.set};
    if (is_megatron(&q))
        dl_export_megatron(&training, err);
    else
        export_machine(&q, err);
    return 0;
}

const struct dl_command dl_command_export = {
    .name = "export",
    .doc = "write the machine for SimGrid or graphviz, or a strategy as flags of Megatron-LM",
    .usage = "export --topo T --format simgrid|dot [--devices N] | --strategy S --format megatron",
    .run = run,
    .options = options,
    .n_options = DL_COUNT(options),
};
