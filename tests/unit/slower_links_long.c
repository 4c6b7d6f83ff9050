/* slower_links_long.c - links that get slower never make a collective faster: on every shipped system, for each rate
 * that its file states, what `auto` is estimated to take.
 *
 * Routes that follow rates break this: links that nobody crosses any more limit nobody. */
#include <check.h>

#include "sim/core/files.h"
#include "tests/collective_runs.h"
#include "tests/unit/suite.h"

static const double slowdowns[] = {1.05, 2};
static const double sizes[] = {1e5, 1e8};
static const uint32_t groups[] = {16, 96};
static const enum dl_op ops[] = {DL_ALLREDUCE, DL_ALLGATHER, DL_REDUCESCATTER, DL_ALLTOALL, DL_BROADCAST};
enum { n_answers = DL_COUNT(sizes) * DL_COUNT(groups) * DL_COUNT(ops), most_rates = 32 };

struct subject {
    const char *system;
    struct dl_arena *arena;
    const char *rate[most_rates]; /* paths in the file */
    double bytes_per_s[most_rates];
    size_t n_rates;
};

/* ---- the rates of a file ---- */

static bool is_rate(const char *key)
{
    const char *const ends[] = {"bandwidth_bytes_per_s", "lane_bytes_per_s"};
    for (size_t i = 0; i < DL_COUNT(ends); i++) {
        const size_t n = strlen(key), m = strlen(ends[i]);
        if (n >= m && strcmp(key + n - m, ends[i]) == 0) return true;
    }
    return false;
}

static void list_rates(struct subject *s, const char *path, json_t *object)
{
    const char *key;
    json_t *value;
    json_object_foreach(object, key, value)
    {
        if (!is_rate(key) || !json_is_number(value)) continue;
        ck_assert_uint_lt(s->n_rates, most_rates);
        s->bytes_per_s[s->n_rates] = json_number_value(value);
        s->rate[s->n_rates++] = dl_arena_format(s->arena, "%s.%s", path, key);
    }
}

static void list_all_rates(struct subject *s, json_t *system)
{
    json_t *const node = json_object_get(system, "node"), *const parts = json_object_get(node, "parts");
    for (size_t i = 0; i < json_array_size(parts); i++)
        list_rates(s, dl_arena_format(s->arena, "topo.node.parts.%zu", i), json_array_get(parts, i));
    list_rates(s, "topo.node.nics", json_object_get(node, "nics"));
    list_rates(s, "topo.network", json_object_get(system, "network"));
}

/* ---- what auto takes ---- */

static double estimate(const struct dl_machine *m, enum dl_op op, uint32_t n, double bytes)
{
    struct dl_error err = {0};
    struct dl_arena *const arena = dl_arena_new();
    struct dl_estimator e;
    struct dl_group group;
    struct dl_choice choice;
    uint32_t *const device = dl_arena_alloc(arena, n * sizeof *device);
    for (uint32_t i = 0; i < n; i++) device[i] = i;
    dl_group_init(&group, m->topology, device, n, arena);
    group.shapes = dl_shapes_new();
    dl_estimator_init(&e, m->topology, &m->transport, m->bytes_per_s);
    const struct dl_wish wish = {.op = op, .algorithm = "auto", .protocol = "auto", .group = &group, .bytes = bytes};
    const bool possible = !dl_choose(&e, &wish, arena, &choice, &err);
    ck_assert_msg(possible || err.status == DL_IMPOSSIBLE, "%s", err.text);
    const double seconds = possible ? choice.estimate.presumed_s : 0;
    dl_estimator_release(&e);
    dl_shapes_free(group.shapes);
    dl_arena_free(arena);
    return seconds;
}

/* A transport is that of so many nodes. */
static void answer_group(const struct subject *s, const struct dl_texts *set, size_t group, double *out)
{
    struct dl_error err = {0};
    struct dl_machine m = {0};
    ck_assert_msg(!dl_machine_open((struct dl_input){.name = s->system}, set, s->arena, &m, &err), "%s", err.text);
    const uint32_t most = m.topology->n_devices, in_node = m.topology->node.n_devices,
                   n = groups[group] < most ? groups[group] : most;
    ck_assert(!dl_machine_use_transport(&m, NULL, (n + in_node - 1) / in_node, set, s->arena, &err));
    for (size_t i = group; i < n_answers; i += DL_COUNT(groups)) {
        const size_t rest = i / DL_COUNT(groups);
        out[i] = n > 1 ? estimate(&m, ops[rest % DL_COUNT(ops)], n, sizes[rest / DL_COUNT(ops)]) : 0;
    }
    dl_machine_close(&m);
}

static void answer(const struct subject *s, const struct dl_texts *set, double *out)
{
    for (size_t group = 0; group < DL_COUNT(groups); group++) answer_group(s, set, group, out);
}

static void compare(const struct subject *s, const char *set, const double *before, const double *after)
{
    const double adaptive = 0.01; /* routes of dragonflies deal bytes to ways by what is booked on them */
    for (size_t i = 0; i < n_answers; i++)
        ck_assert_msg(after[i] >= before[i] * (1 - adaptive),
                      "%s with %s: %s of %g bytes over %u takes %g s, before %g s", s->system, set,
                      dl_op_name(ops[i / DL_COUNT(groups) % DL_COUNT(ops)]),
                      sizes[i / DL_COUNT(groups) / DL_COUNT(ops)], groups[i % DL_COUNT(groups)], after[i], before[i]);
}

static const char **names;

START_TEST(a_slower_link_makes_no_collective_faster)
{
    struct subject s = {.system = names[_i], .arena = dl_arena_new()};
    struct dl_machine m = {0};
    struct dl_error err = {0};
    const struct dl_texts none = {0};
    double before[n_answers], after[n_answers];
    ck_assert(!dl_machine_open((struct dl_input){.name = s.system}, &none, s.arena, &m, &err));
    list_all_rates(&s, m.system_doc.value);
    dl_machine_close(&m);
    answer(&s, &none, before);
    for (size_t i = 0; i < s.n_rates; i++)
        for (size_t k = 0; k < DL_COUNT(slowdowns); k++) {
            const char *const text = dl_arena_format(s.arena, "%s=%.17g", s.rate[i], s.bytes_per_s[i] / slowdowns[k]);
            answer(&s, &(struct dl_texts){{text}, 1}, after);
            compare(&s, text, before, after);
        }
    dl_arena_free(s.arena);
}
END_TEST

int main(void)
{
    struct dl_arena *const arena = dl_arena_new();
    const int n = (int)dl_list_folder("topologies/systems", arena, &names);
    Suite *const s = suite_create("slower_links");
    TCase *const tests = tcase_create("systems");
    tcase_add_loop_test(tests, a_slower_link_makes_no_collective_faster, 0, n);
    suite_add_tcase(s, tests);
    const int failed = run_suite(s);
    dl_arena_free(arena);
    return failed;
}
