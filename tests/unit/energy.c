/* energy.c - what steps draw: closed forms, laws of scaling, and figures of every shipped device and system. */
#include "sim/campaign/energy.h"

#include "sim/campaign/campaign.h"
#include "sim/core/files.h"
#include "sim/core/inherit.h"
#include "tests/unit/analytic_run.h"
#include "tests/unit/divided_step.h"

#define IDLE_W 50.0
#define FREE_W 250.0
#define POWER ",'power':{'limit_w':300,'idle_w':50}"
#define MLP "{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[512,1024,512]}"
#define HEAD "'global_batch':8192,'microbatch':4096,'precision':'fp16'"
#define POWERED(site)                                                                                                  \
    "{'schema':'dlsim/system/1','nodes':4096,'transport':'ideal','node':{'device':'a test','devices':1,'parts':[]},"   \
    "'node_power':{'cpus_w':100,'memory_w':20,'nics_w':15,'switches_w':10,'other_w':5,'fans_fraction':0.1,"            \
    "'supply_efficiency':0.8},'network':{'kind':'crossbar','link':'ideal','bandwidth_bytes_per_s':1e9,"                \
    "'latency_s':0},'network_power':{'port_w':7,'cable_w':3}" site "}"

static const double exact = 1e-9;

static struct dl_energy play(struct dl_session *t, const struct step *step)
{
    open_step(t, step);
    t->request.engine = "analytic";
    ck_assert_msg(!dl_session_run(t), "%s", t->err.text);
    return dl_session_energy(t);
}

static double sum(const double *values)
{
    double all = 0;
    for (int i = 0; i < DL_N_ACTIVITIES; i++) all += values[i];
    return all;
}

/* ---- devices ---- */

/* With memory that is never in the way, products are at the rate of a large one, and so at the limit. */
START_TEST(products_draw_the_limit)
{
    struct dl_session t;
    const struct dl_energy e =
        play(&t, &(struct step){.device = IDEAL_DEVICE_WITH(POWER), .workload = MLP, .head = HEAD, .stack = ""});
    const double products_s = 2 * (kernels_s(&t, DL_ITEM_F, "fc") + kernels_s(&t, DL_ITEM_B, "fc"));
    ck_assert(e.known && products_s > 0);
    check_close("seconds", e.seconds[DL_COMPUTING], products_s, 1e-6);
    check_close("joules", e.joules[DL_COMPUTING], (IDLE_W + FREE_W) * products_s, 1e-6);
    dl_session_close(&t);
}
END_TEST

/* A step is its idle power and what comes on top, each found another way. */
START_TEST(joules_are_those_of_activities_and_idling)
{
    const double communication_share = 0.23;
    struct dl_session t;
    const struct dl_energy e =
        play(&t, &(struct step){.system = SLOW_SYSTEM,
                                .device = IDEAL_DEVICE_WITH(POWER),
                                .workload = MLP,
                                .head = "'global_batch':16384,'microbatch':4096,'precision':'fp16','devices':4",
                                .stack = "{'name':'data'}"});
    const struct dl_training_result *const r = &t.report.result;
    const struct dl_draw *const draw = t.lowered.draw;
    const double kernels_j = draw[DL_BOUND_BY_ARITHMETIC].memory_j + draw[DL_BOUND_BY_MEMORY].memory_j;
    const double exchange_s = r->exposed_s[DL_CAUSE_DATA];
    ck_assert_double_gt(exchange_s, 0.5 * r->step_s);
    check_close("seconds", sum(e.seconds), r->step_s, exact);
    check_close("all", sum(e.joules), IDLE_W * r->step_s + kernels_j + communication_share * FREE_W * exchange_s,
                exact);
    check_close("watts", e.device_w, sum(e.joules) / r->step_s, exact);
    dl_session_close(&t);
}
END_TEST

START_TEST(a_device_that_does_not_tell_draws_nothing_that_is_known)
{
    struct dl_session t;
    const struct dl_energy e = play(&t, &(struct step){.workload = MLP, .head = HEAD, .stack = ""});
    ck_assert(!e.known);
    ck_assert_double_eq(e.site_w, 0);
    dl_session_close(&t);
}
END_TEST

static const struct analytic_run runs[] = {
    {.topo = "h200",
     .workload = "gpt2-1.5b",
     .software = "pytorch-eager",
     .head = "\"global_batch\":4,\"microbatch\":4,",
     .stack = ""},
    {.topo = "dgx-h100",
     .workload = "gpt-22b",
     .head = "\"devices\":32,\"global_batch\":64,\"microbatch\":1,",
     .stack = "{\"name\":\"tensor\",\"ways\":8},{\"name\":\"pipeline\",\"ways\":4}"},
    {.topo = "frontier",
     .workload = "llama2-7b",
     .head = "\"devices\":64,\"global_batch\":64,\"microbatch\":1,",
     .stack = "{\"name\":\"data\"},{\"name\":\"zero\",\"stage\":3}"},
    {.topo = "tpu-v4",
     .workload = "llama2-7b",
     .head = "\"devices\":64,\"global_batch\":64,",
     .stack = "{\"name\":\"data\"}"},
    {.topo = "dgx1-v100",
     .workload = "resnet50",
     .head = "\"devices\":8,\"global_batch\":512,\"precision\":\"fp16\",",
     .stack = "{\"name\":\"data\"}"},
};

START_TEST(a_device_is_between_idle_and_its_limit)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_session s;
    ck_assert_msg(analytic_run(&runs[_i], arena, &s), "%s", s.err.text);
    const struct dl_energy e = dl_session_energy(&s);
    const struct dl_power *const p = s.device.power;
    check_close("seconds", sum(e.seconds), s.report.result.step_s, exact);
    ck_assert_double_gt(e.device_w, p->idle_w);
    ck_assert_double_le(e.device_w, p->limit_w * (1 + exact));
    for (int i = 0; i < DL_N_ACTIVITIES; i++) ck_assert_double_ge(e.joules[i], p->idle_w * e.seconds[i] * (1 - exact));
    ck_assert_double_ge(e.node_w, s.machine.topology->node.n_devices * e.device_w);
    dl_session_close(&s);
    dl_arena_free(arena);
}
END_TEST

/* ---- nodes, network, site ---- */

START_TEST(a_machine_draws_what_its_parts_do)
{
    const double parts_w = 100 + 20 + 15 + 10 + 5, n = 8, ports_and_cables_w = 7 + 3; /* of each node, on a crossbar */
    const char *const systems[] = {POWERED(""), POWERED(",'site':{'pue':1.5}")};
    const double pues[] = {1, 1.5};
    for (size_t i = 0; i < DL_COUNT(systems); i++) {
        struct dl_session t;
        const struct dl_energy e = play(&t, &(struct step){.system = systems[i],
                                                           .device = IDEAL_DEVICE_WITH(POWER),
                                                           .workload = MLP,
                                                           .head = "'global_batch':8192,'devices':8",
                                                           .stack = "{'name':'data'}"});
        check_close("node", e.node_w, (e.device_w + parts_w) * 1.1 / 0.8, exact);
        check_close("network", e.network_w, n * ports_and_cables_w, exact);
        check_close("machine", e.machine_w, n * e.node_w + e.network_w, exact);
        check_close("site", e.site_w, pues[i] * e.machine_w, exact);
        dl_session_close(&t);
    }
}
END_TEST

START_TEST(footprints_are_linear)
{
    const struct dl_energy e = {.known = true, .site_w = 2e6};
    const struct dl_facility site = {.pue = 1.1, .carbon_g_per_kwh = 400, .usd_per_kwh = 0.1, .usd_per_device_hour = 2};
    const struct dl_footprint day = dl_footprint_of(&e, &site, 86400, 1000),
                              two = dl_footprint_of(&e, &site, 2 * 86400, 1000);
    check_close("kWh", day.joules / 3.6e6, 48000, exact);
    check_close("kg", day.carbon_kg, 48000 * 0.4, exact);
    check_close("energy", day.usd_of_energy, 4800, exact);
    check_close("devices", day.usd_of_devices, 48000, exact);
    check_close("joules", two.joules, 2 * day.joules, exact);
    check_close("carbon", two.carbon_kg, 2 * day.carbon_kg, exact);
    check_close("usd", two.usd_of_devices + two.usd_of_energy, 2 * (day.usd_of_devices + day.usd_of_energy), exact);
}
END_TEST

START_TEST(twice_the_tokens_take_twice_the_energy)
{
    struct dl_campaign_step step = {.seconds = 3,
                                    .n_devices = 10,
                                    .samples = 8,
                                    .tokens_per_sample = 100,
                                    .energy = {.known = true, .site_w = 1e4},
                                    .site = {.carbon_g_per_kwh = 100}};
    const struct dl_campaign one = dl_campaign_of(&(struct dl_amount){.tokens = 8e6}, &step),
                             two = dl_campaign_of(&(struct dl_amount){.tokens = 16e6}, &step);
    check_close("joules", one.footprint.joules, 1e4 * 3 * 1e4, exact);
    check_close("twice", two.footprint.joules, 2 * one.footprint.joules, exact);
    check_close("carbon", two.footprint.carbon_kg, 2 * one.footprint.carbon_kg, exact);
    step.energy.site_w *= 1.2;
    check_close("pue", dl_campaign_of(&(struct dl_amount){.tokens = 8e6}, &step).footprint.joules,
                1.2 * one.footprint.joules, exact);
}
END_TEST

/* ---- what is shipped ---- */

static struct dl_json shipped(const char *folder, const char *name, struct dl_arena *arena)
{
    const char *path;
    struct dl_json doc = {0};
    struct dl_error err = {0};
    ck_assert_msg(!dl_find_file(folder, "file", name, arena, &path, &err) && !dl_json_load(path, arena, &doc, &err) &&
                      !dl_json_inherit(doc, folder, "file", arena, &err),
                  "%s", err.text);
    return doc;
}

struct tally {
    size_t n, n_stated;
};

static void count(void *user, const struct dl_fact *fact)
{
    struct tally *const t = user;
    const bool is_of_power =
        strstr(fact->where, "power/") || strstr(fact->where, ":/site/"); /* power, node_power, network_power */
    t->n += is_of_power;
    t->n_stated += is_of_power && fact->stated;
}

START_TEST(every_shipped_device_says_what_it_draws_and_who_says_so)
{
    struct dl_arena *const arena = dl_arena_new();
    const char **names;
    const size_t n = dl_list_folder("topologies/devices", arena, &names);
    ck_assert_uint_gt(n, 20);
    for (size_t i = 0; i < n; i++) {
        struct dl_json doc = shipped("topologies/devices", names[i], arena);
        struct dl_error err = {0};
        struct dl_device d;
        ck_assert_msg(!dl_device_read(doc, arena, &d, &err), "%s", err.text);
        struct tally tally = {0};
        dl_json_facts(doc, arena, count, &tally);
        ck_assert_msg(d.power && tally.n >= 2 && tally.n_stated == tally.n, "%s: %zu figures, %zu with a source",
                      names[i], tally.n, tally.n_stated);
        ck_assert_double_lt(d.power->idle_w, d.power->limit_w);
        json_decref(doc.value);
    }
    dl_arena_free(arena);
}
END_TEST

START_TEST(every_shipped_node_says_what_it_draws_and_who_says_so)
{
    struct dl_arena *const arena = dl_arena_new();
    const char **names;
    const size_t n = dl_list_folder("topologies/systems", arena, &names);
    ck_assert_uint_gt(n, 40);
    for (size_t i = 0; i < n; i++) {
        struct dl_json doc = shipped("topologies/systems", names[i], arena);
        const json_t *const power = json_object_get(doc.value, "node_power");
        struct tally tally = {0};
        dl_json_facts(doc, arena, count, &tally);
        ck_assert_msg(power && tally.n > 0 && tally.n_stated == tally.n, "%s: %zu figures, %zu with a source", names[i],
                      tally.n, tally.n_stated);
        json_decref(doc.value);
    }
    dl_arena_free(arena);
}
END_TEST

/* RA-11333 has 8,192 cables at each of three levels: one end of the first at adapters, all others at switches. */
START_TEST(ports_and_cables_are_those_of_the_reference_architecture)
{
    const double per_level = 8192;
    struct dl_arena *const arena = dl_arena_new();
    struct dl_json doc = shipped("topologies/systems", "dgx-h100", arena);
    struct dl_topology *t;
    struct dl_error err = {0};
    ck_assert_msg(!dl_topology_read(doc, arena, &t, &err), "%s", err.text);
    const struct dl_cabling cabling = dl_topology_cabling(t);
    check_close("cables", cabling.cables, 3 * per_level, exact);
    check_close("ports", cabling.switch_ports, 5 * per_level, exact);
    dl_topology_free(t);
    json_decref(doc.value);
    dl_arena_free(arena);
}
END_TEST

START_TEST(what_leaves_the_step_alone_is_only_of_energy)
{
    const struct dl_power throttling = {.throttles = true}, simple = {0};
    const struct dl_device governed = {.power = &throttling}, plain = {.power = &simple};
    ck_assert(dl_is_only_of_energy(&plain, "a.json:/power/limit_w"));
    ck_assert(!dl_is_only_of_energy(&governed, "a.json:/power/limit_w"));
    ck_assert(dl_is_only_of_energy(&governed, "a.json:/power/communication_w"));
    ck_assert(!dl_is_only_of_energy(&plain, "a.json:/figures/tile_s"));
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("energy");
    TCase *const tests = tcase_create("energy");
    tcase_add_test(tests, products_draw_the_limit);
    tcase_add_test(tests, joules_are_those_of_activities_and_idling);
    tcase_add_test(tests, a_device_that_does_not_tell_draws_nothing_that_is_known);
    tcase_add_loop_test(tests, a_device_is_between_idle_and_its_limit, 0, (int)DL_COUNT(runs));
    tcase_add_test(tests, a_machine_draws_what_its_parts_do);
    tcase_add_test(tests, footprints_are_linear);
    tcase_add_test(tests, twice_the_tokens_take_twice_the_energy);
    tcase_add_test(tests, every_shipped_device_says_what_it_draws_and_who_says_so);
    tcase_add_test(tests, every_shipped_node_says_what_it_draws_and_who_says_so);
    tcase_add_test(tests, ports_and_cables_are_those_of_the_reference_architecture);
    tcase_add_test(tests, what_leaves_the_step_alone_is_only_of_energy);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
