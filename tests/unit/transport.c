/* transport.c - transport files: what is read, by machine and by span, and what is refused. */
#include <check.h>
#include <math.h>

#include "tests/unit/shipped_system.h"
#include "tests/unit/system_text.h"
#include "topologies/transport.h"

static struct dl_transport transport;

static enum dl_status read_text(struct fixture *f, const char *system, uint32_t n_nodes, const char *text)
{
    fixture_open(f, text);
    return dl_transport_read(f->doc, open_system(system), n_nodes, f->arena, &transport, &f->err);
}

#define TRANSPORT(body) "{'schema':'dlsim/transport/1','source':'a test'," body "}"
#define PROTOCOL(body) TRANSPORT("'protocols':[{'name':'one'," body "}]")

START_TEST(every_shipped_transport_can_be_read)
{
    static const char *const names[] = {"ideal", "mpi", "nccl", "oneccl", "rccl", "hccl"};
    const char *path;
    const struct dl_topology *const t = open_system(_i < 2 ? "crossbar" : "dgx-h100");
    struct dl_json file = {0};
    ck_assert(!dl_find_file("topologies/transports", "transport", names[_i], arena, &path, &err));
    ck_assert(!dl_json_load(path, arena, &file, &err));
    for (uint32_t n_nodes = 1; n_nodes <= 3; n_nodes++)
        ck_assert_msg(!dl_transport_read(file, t, n_nodes, arena, &transport, &err), "%s", err.text);
    ck_assert_str_eq(transport.name, names[_i]);
    ck_assert_uint_gt(transport.n_protocols, 0);
    json_decref(file.value);
}
END_TEST

START_TEST(ideal_adds_nothing_to_the_wire)
{
    struct fixture f;
    ck_assert(!read_text(&f, "crossbar", 2, PROTOCOL("'peer':{}")));
    const struct dl_protocol *const p = &transport.protocols[0];
    ck_assert(transport.adds_wire_latency && !transport.pipelines);
    ck_assert_double_eq(p->start_s[DL_FAMILY_PEER] + p->network_s, 0);
    for (int reach = 0; reach < DL_N_REACHES; reach++) ck_assert_double_eq(p->step_s[DL_FAMILY_PEER][reach], 0);
    ck_assert_double_eq(p->bandwidth_fraction, 1);
    ck_assert(isinf(p->pump_bytes_per_s[DL_FAMILY_PEER]));
    ck_assert(p->has_family[DL_FAMILY_PEER] && !p->has_family[DL_FAMILY_TREE] && !p->has_family[DL_FAMILY_SWITCH]);
    for (uint16_t k = 0; k < topology->n_link_kinds; k++) ck_assert_double_eq(transport.efficiency[k], 1);
    fixture_close(&f);
}
END_TEST

/* dgx-h100: nvlink4 in the node, ib-ndr between nodes. */
START_TEST(figures_are_looked_up_by_kind_of_link)
{
    struct fixture f;
    ck_assert(!read_text(&f, "dgx-h100", 2,
                         TRANSPORT("'efficiency':{'nvlink4':0.75,'ib-ndr':0.5,'*':0.25},"
                                   "'protocols':[{'name':'one','network_s':{'ib-ndr':3e-6,'*':9e-6},"
                                   "'peer':{'start_s':1e-6,'direct_s':2e-6,'pcie_s':4e-6,'network_s':5e-6,"
                                   "'pump_bytes_per_s':{'nvlink3':1e9,'nvlink4':2e9,'*':3e9}},"
                                   "'tree':{'pump_bytes_per_s':{'nvlink3':1e9,'*':3e9}},"
                                   "'switch':{'pump_port_fraction':0.5}}]")));
    const struct dl_protocol *const p = &transport.protocols[0];
    for (uint16_t k = 0; k < topology->n_link_kinds; k++) {
        const char *const kind = topology->link_kinds[k];
        const double want = strcmp(kind, "nvlink4") == 0 ? 0.75 : strcmp(kind, "ib-ndr") == 0 ? 0.5 : 0.25;
        ck_assert_double_eq(transport.efficiency[k], want);
    }
    ck_assert_double_eq(p->network_s, 3e-6);
    ck_assert_double_eq(p->start_s[DL_FAMILY_PEER], 1e-6);
    ck_assert_double_eq(p->step_s[DL_FAMILY_PEER][DL_REACH_DIRECT], 2e-6);
    ck_assert_double_eq(p->step_s[DL_FAMILY_PEER][DL_REACH_PCIE], 4e-6);
    ck_assert_double_eq(p->step_s[DL_FAMILY_PEER][DL_REACH_NETWORK], 5e-6);
    ck_assert_double_eq(p->pump_bytes_per_s[DL_FAMILY_PEER], 2e9);
    ck_assert_double_eq(p->pump_bytes_per_s[DL_FAMILY_TREE], 3e9);
    double port = 0;
    for (size_t e = 0; e < topology->node.n_edges; e++)
        if (topology->node.edges[e].reach == DL_REACH_DIRECT && topology->node.edges[e].a == 0)
            port += topology->node.edges[e].bandwidth_bytes_per_s;
    ck_assert_double_gt(port, 0);
    ck_assert_double_eq(p->pump_bytes_per_s[DL_FAMILY_SWITCH], 0.5 * port);
    fixture_close(&f);
}
END_TEST

START_TEST(pump_lists_go_by_the_number_of_nodes)
{
    static const double by_span[] = {1e9, 2e9, 3e9, 3e9};
    for (uint32_t n_nodes = 1; n_nodes <= DL_COUNT(by_span); n_nodes++) {
        struct fixture f;
        ck_assert(!read_text(&f, "dgx-h100", n_nodes, PROTOCOL("'peer':{'pump_bytes_per_s':{'*':[1e9,2e9,3e9]}}")));
        ck_assert_double_eq(transport.protocols[0].pump_bytes_per_s[DL_FAMILY_PEER], by_span[n_nodes - 1]);
        fixture_close(&f);
    }
}
END_TEST

START_TEST(larger_messages_have_figures_of_their_own)
{
    struct fixture f;
    ck_assert(!read_text(&f, "dgx-h100", 2,
                         PROTOCOL("'network_s':{'*':3e-6},'peer':{},'tree':{},'above':{'bytes':1e6,'direct_s':1e-6,"
                                  "'pcie_s':2e-6,'network_s':4e-6,'bandwidth_fraction':0.5}")));
    const struct dl_above *const above = &transport.protocols[0].above;
    ck_assert_double_eq(above->bytes, 1e6);
    ck_assert_double_eq(above->bandwidth_fraction, 0.5);
    ck_assert_double_eq(above->step_s[DL_REACH_DIRECT], 1e-6);
    ck_assert_double_eq(above->step_s[DL_REACH_PCIE], 2e-6);
    ck_assert_double_eq(above->step_s[DL_REACH_NETWORK], 4e-6 + 3e-6);
    fixture_close(&f);
}
END_TEST

START_TEST(never_on_takes_a_protocol_out_only_where_the_network_is_used)
{
    static const char text[] = TRANSPORT("'protocols':[{'name':'one','never_on':['ib-ndr','efa1'],'peer':{}},"
                                         "{'name':'two','never_on':['roce'],'peer':{}}]");
    for (uint32_t n_nodes = 1; n_nodes <= 2; n_nodes++) {
        struct fixture f;
        ck_assert(!read_text(&f, "dgx-h100", n_nodes, text));
        ck_assert_uint_eq(transport.n_protocols, n_nodes == 1 ? 2 : 1);
        ck_assert_str_eq(transport.protocols[0].name, n_nodes == 1 ? "one" : "two");
        fixture_close(&f);
    }
}
END_TEST

START_TEST(algorithms_are_listed_with_and_without_operation)
{
    struct fixture f;
    ck_assert(!read_text(&f, "crossbar", 2,
                         TRANSPORT("'algorithms':['ring','alltoall.direct'],'protocols':[{'name':'one','peer':{}}]")));
    ck_assert(dl_transport_has(&transport, "allreduce", "ring"));
    ck_assert(dl_transport_has(&transport, "allgather", "ring"));
    ck_assert(dl_transport_has(&transport, "alltoall", "direct"));
    ck_assert(!dl_transport_has(&transport, "allreduce", "direct"));
    ck_assert(!dl_transport_has(&transport, "all", "direct"));       /* not the beginning of an operation */
    ck_assert(!dl_transport_has(&transport, "alltoallv", "direct")); /* nor a longer one */
    ck_assert(!dl_transport_has(&transport, "allreduce", "tree"));
    ck_assert(!dl_transport_has(&transport, "allreduce", "rings"));
    fixture_close(&f);
    ck_assert(!read_text(&f, "crossbar", 2, PROTOCOL("'peer':{}")));
    ck_assert(dl_transport_has(&transport, "allreduce", "anything")); /* no list: all */
    fixture_close(&f);
    ck_assert(!read_text(&f, "crossbar", 2, TRANSPORT("'algorithms':[],'protocols':[{'name':'one','peer':{}}]")));
    ck_assert(!dl_transport_has(&transport, "allreduce", "ring")); /* an empty list: none */
    fixture_close(&f);
}
END_TEST

static const struct {
    const char *text;
    enum dl_status status;
    const char *place; /* in the message */
} mistakes[] = {
    {"{'schema':'dlsim/system/1','source':'a test','protocols':[]}", DL_KEY, "schema"},
    {TRANSPORT("'fill':0.5"), DL_KEY, "protocols"},
    {TRANSPORT("'protocols':[]"), DL_IMPOSSIBLE, "/protocols"},
    {TRANSPORT("'fil':0.5,'protocols':[{'name':'one'}]"), DL_KEY, "fil"},
    {TRANSPORT("'drain':-1,'protocols':[{'name':'one'}]"), DL_RANGE, "/drain"},
    {TRANSPORT("'relay_efficiency':1.5,'protocols':[{'name':'one'}]"), DL_RANGE, "/relay_efficiency"},
    {TRANSPORT("'pipelines':1,'protocols':[{'name':'one'}]"), DL_TYPE, "/pipelines"},
    {TRANSPORT("'port_busy':'bits','protocols':[{'name':'one'}]"), DL_RANGE, "/port_busy"},
    {TRANSPORT("'port_busy':'message','pipelines':true,'protocols':[{'name':'one','peer':{}}]"), DL_IMPOSSIBLE,
     "/port_busy"},
    {TRANSPORT("'port_busy':'message','protocols':[{'name':'one','peer':{'pump_bytes_per_s':{'*':1e9}}}]"),
     DL_IMPOSSIBLE, "/port_busy"},
    {TRANSPORT("'algorithms':[7],'protocols':[{'name':'one'}]"), DL_TYPE, "/algorithms/0"},
    {TRANSPORT("'efficiency':{'nvlink9':2},'protocols':[{'name':'one'}]"), DL_RANGE, "/efficiency/nvlink9"},
    {TRANSPORT("'efficiency':{'*':'all'},'protocols':[{'name':'one'}]"), DL_TYPE, "/efficiency/*"},
    {PROTOCOL("'peer':{'start':1}"), DL_KEY, "start_s"},
    {PROTOCOL("'peer':{'start_s':2}"), DL_RANGE, "/protocols/0/peer/start_s"},
    {PROTOCOL("'bandwidth_fraction':0"), DL_RANGE, "/protocols/0/bandwidth_fraction"},
    {PROTOCOL("'network_s':{'roce':-1}"), DL_RANGE, "/protocols/0/network_s/roce"},
    {PROTOCOL("'peer':{'pump_bytes_per_s':{'*':[1e9,2e9]}}"), DL_RANGE, "/peer/pump_bytes_per_s"},
    {PROTOCOL("'peer':{'pump_bytes_per_s':{'*':['a',2e9,3e9]}}"), DL_TYPE, "/peer/pump_bytes_per_s"},
    {PROTOCOL("'peer':{'pump_bytes_per_s':{'*':[1e9,'b',3e9]}}"), DL_TYPE, "/peer/pump_bytes_per_s"},
    {PROTOCOL("'peer':{'pump_bytes_per_s':{'*':[1e9,2e9,-3]}}"), DL_RANGE, "/peer/pump_bytes_per_s"},
    {PROTOCOL("'peer':{},'above':{'direct_s':1e-6}"), DL_KEY, "bytes"},
    {PROTOCOL("'peer':{},'above':{'bytes':1e6,'bandwidth_fraction':2}"), DL_RANGE, "/above/bandwidth_fraction"},
    {PROTOCOL("'peer':{'pump_port_fraction':0.5},'above':{'bytes':1e6}"), DL_IMPOSSIBLE, "/protocols/0/above"},
    {PROTOCOL("'peer':{},'switch':{},'above':{'bytes':1e6}"), DL_IMPOSSIBLE, "/protocols/0/above"},
    {PROTOCOL("'never_on':[7]"), DL_TYPE, "/never_on/0"},
    {TRANSPORT("'protocols':[{'peer':{}}]"), DL_KEY, "name"},
    {TRANSPORT("'protocols':[7]"), DL_TYPE, "/protocols/0"},
};

START_TEST(mistakes_are_refused_with_their_place)
{
    struct fixture f;
    const enum dl_status status = read_text(&f, "dgx-h100", 1, mistakes[_i].text);
    ck_assert_msg(status == mistakes[_i].status, "%s: status %d, '%s'", mistakes[_i].text, status, f.err.text);
    ck_assert_msg(strstr(f.err.text, mistakes[_i].place), "%s: '%s'", mistakes[_i].text, f.err.text);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("transport");
    tcase_add_loop_test(tests, every_shipped_transport_can_be_read, 0, 6);
    tcase_add_test(tests, ideal_adds_nothing_to_the_wire);
    tcase_add_test(tests, figures_are_looked_up_by_kind_of_link);
    tcase_add_test(tests, pump_lists_go_by_the_number_of_nodes);
    tcase_add_test(tests, larger_messages_have_figures_of_their_own);
    tcase_add_test(tests, never_on_takes_a_protocol_out_only_where_the_network_is_used);
    tcase_add_test(tests, algorithms_are_listed_with_and_without_operation);
    tcase_add_loop_test(tests, mistakes_are_refused_with_their_place, 0, DL_COUNT(mistakes));
    return run_systems(tests, "transport");
}
