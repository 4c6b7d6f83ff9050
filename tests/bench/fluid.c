/* fluid.c - prints what fluid fidelity makes of rings that are not equal and alone: its time over that of step
 * fidelity.
 *
 *   unequal     one ring over two nodes of eight, 3 us in the node, 14 us between nodes, network of several speeds
 *   contention  two rings over two nodes that share a NIC on each way between them, started together */
#include <math.h>

#include "tests/collective_runs.h"

static const double sizes[] = {1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9}; /* small first: see collective_runs.h */
enum { n_sizes = DL_COUNT(sizes) };

static void print_head(const char *what)
{
    printf("%-50s", what);
    for (size_t i = 0; i < n_sizes; i++) printf(" %9.0e", sizes[i]);
    printf("\n");
}

static void print_row(const char *name, const double *step_s, const double *fluid_s)
{
    printf("%-50s", name);
    for (size_t i = 0; i < n_sizes; i++) printf(" %+7.1f %%", 100 * (fluid_s[i] / step_s[i] - 1));
    printf("\n");
}

/* ---- unequal ---- */

static void print_unequal(enum dl_op op, double network_bytes_per_s)
{
    char speed[64], name[64];
    struct job jobs[2 * n_sizes];
    struct outcome outcomes[2 * n_sizes];
    double step_s[n_sizes], fluid_s[n_sizes];
    snprintf(speed, sizeof speed, "topo.network.bandwidth_bytes_per_s=%g", network_bytes_per_s);
    const struct setting setting = {
        .system = "dgx-h100",
        .transport = "ideal",
        .engine = "simgrid",
        .set = {{"transport.adds_wire_latency=false", "transport.protocols.ideal.peer.direct_s=3e-6",
                 "transport.protocols.ideal.peer.network_s=14e-6", speed},
                4}};
    for (size_t i = 0; i < 2 * n_sizes; i++)
        jobs[i] =
            (struct job){.op = op, .algorithm = "ring", .n = 16, .bytes = sizes[i / 2], .chunks = 1, .fluid = i % 2};
    run_jobs(&setting, jobs, DL_COUNT(jobs), outcomes);
    for (size_t i = 0; i < n_sizes; i++) {
        step_s[i] = outcomes[2 * i].result.time_s;
        fluid_s[i] = outcomes[2 * i + 1].result.time_s;
    }
    snprintf(name, sizeof name, "%s, network %g GB/s", dl_op_name(op), network_bytes_per_s / 1e9);
    print_row(name, step_s, fluid_s);
}

/* ---- contention ---- */

/* When the first and when the last of two rings ends; the second has `share` of the bytes of the first. */
static void run_two(const char *system, double bytes, double share, bool fluid, double *first_s, double *last_s)
{
    static const uint32_t even[] = {4, 6, 8, 10, 0}, odd[] = {5, 7, 9, 11, 0};
    struct job jobs[2];
    struct outcome outcomes[2];
    const struct setting setting = {.system = system, .transport = "ideal", .engine = "simgrid"};
    for (int i = 0; i < 2; i++)
        jobs[i] = (struct job){.op = DL_ALLREDUCE,
                               .algorithm = "ring",
                               .n = 4,
                               .bytes = i ? share * bytes : bytes,
                               .chunks = 1,
                               .device = i ? odd : even,
                               .fluid = fluid,
                               .with_previous = true};
    run_jobs(&setting, jobs, DL_COUNT(jobs), outcomes);
    *first_s = fmin(outcomes[0].result.time_s, outcomes[1].result.time_s);
    *last_s = fmax(outcomes[0].result.time_s, outcomes[1].result.time_s);
}

static void print_contention(const char *system, double share)
{
    double first_s[2][n_sizes], last_s[2][n_sizes];
    char name[64];
    for (int fluid = 0; fluid < 2; fluid++)
        for (size_t i = 0; i < n_sizes; i++)
            run_two(system, sizes[i], share, fluid, &first_s[fluid][i], &last_s[fluid][i]);
    snprintf(name, sizeof name, "%s, second of %g x bytes: first end", system, share);
    print_row(name, first_s[0], first_s[1]);
    print_row("    last end", last_s[0], last_s[1]);
}

int main(void)
{
    static const enum dl_op ops[] = {DL_ALLREDUCE, DL_ALLGATHER, DL_REDUCESCATTER};
    static const double network_bytes_per_s[] = {5e9, 50e9, 400e9};
    static const char *const systems[] = {"dgx-a100-hdr4", "dgx1-v100"};
    static const double shares[] = {1, 0.25};
    print_head("fluid over step, lone unequal ring");
    for (size_t o = 0; o < DL_COUNT(ops); o++)
        for (size_t i = 0; i < DL_COUNT(network_bytes_per_s); i++) print_unequal(ops[o], network_bytes_per_s[i]);
    printf("\n");
    print_head("fluid over step, two rings that share NICs");
    for (size_t s = 0; s < DL_COUNT(systems); s++)
        for (size_t i = 0; i < DL_COUNT(shares); i++) print_contention(systems[s], shares[i]);
    return 0;
}
