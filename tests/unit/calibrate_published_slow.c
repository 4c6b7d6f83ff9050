/* calibrate_published_slow.c - calibration by half of the published runs of a machine does not spoil the other half. */
#define _GNU_SOURCE /* fork, pipe */
#include "tests/unit/calibration_fixture.h"

struct published {
    struct subject base; /* of any size: for the machine */
    struct dl_group groups[16];
    struct dl_timed_run runs[128];
    size_t n_groups, n_runs;
    struct dl_calibration c;
};

/* Runs of one machine, the halves as `dlsim calibrate` makes them. */
static void take_published(struct published *p, const char *system, const struct measured *m)
{
    *p = (struct published){0};
    subject_open(&p->base, system, 2);
    for (size_t i = 0; i < m->n_rows; i++) {
        const struct measured_row *const row = &m->rows[i];
        struct dl_error err = {0};
        if (strcmp(row->system, system) || strcmp(row->algorithm, "auto")) continue;
        if (!p->n_groups || p->groups[p->n_groups - 1].n != row->devices) {
            const uint32_t n = (uint32_t)row->devices;
            uint32_t *const device = dl_arena_alloc(p->base.arena, n * sizeof *device);
            dl_place(p->base.machine.topology, "packed", 0, n, device, &err);
            dl_group_init(&p->groups[p->n_groups++], p->base.machine.topology, device, n, p->base.arena);
        }
        const struct dl_group *const group = &p->groups[p->n_groups - 1];
        char id[80];
        snprintf(id, sizeof id, "allreduce %u %u %.0f", group->n, group->n_nodes, row->bytes);
        p->runs[p->n_runs++] = (struct dl_timed_run){.op = DL_ALLREDUCE,
                                                     .group = group,
                                                     .bytes = row->bytes,
                                                     .time_s = row->time_s,
                                                     .kept_out = dl_is_kept_out(id)};
    }
    p->c = (struct dl_calibration){.topology = p->base.machine.topology,
                                   .transport = p->base.machine.transport_doc,
                                   .runs = p->runs,
                                   .n_runs = p->n_runs};
}

static const struct {
    const char *system, *spoilt;
} machines[] = {{"selene", "protocols/Simple/peer/pump_bytes_per_s/nvlink3"}, {"dgx1-v100", "efficiency/nvlink2"}};

START_TEST(half_of_the_published_runs_does_not_worsen_the_other)
{
    struct dl_arena *const arena = dl_arena_new();
    struct measured m = measured_load(arena);
    struct dl_error err = {0};
    static struct published p;
    take_published(&p, machines[_i].system, &m);
    dl_calibrate(&p.c, arena, &err);
    stop_on_error(&err);
    ck_assert_uint_gt(dl_calibration_count(&p.c, DL_FIT_AGREES), 0);
    const double shipped = dl_calibration_error(&p.c, true, false);
    ck_assert_double_le(dl_calibration_error(&p.c, true, true), shipped);

    const struct dl_tunables all = dl_transport_tunables(p.c.transport, p.c.topology, arena);
    const struct dl_tunable *const spoilt = find_constant(&all, machines[_i].spoilt);
    dl_tunable_set(spoilt, 0.6 * spoilt->base);
    dl_calibrate(&p.c, arena, &err);
    stop_on_error(&err);
    ck_assert_double_gt(dl_calibration_error(&p.c, true, false), 1.3 * shipped);
    ck_assert_double_lt(dl_calibration_error(&p.c, true, true), 1.3 * shipped);
    subject_close(&p.base);
    measured_release(&m);
    dl_arena_free(arena);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("calibrate_published");
    TCase *const tests = tcase_create("calibrate_published");
    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, half_of_the_published_runs_does_not_worsen_the_other, 0, DL_COUNT(machines));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
