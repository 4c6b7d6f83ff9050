#include "tests/unit/system_text.h"
#include "tests/unit/suite.h"
#include "topologies/placement.h"

/* What placement looks at: 3 nodes of 4 devices. */
static const struct dl_topology machine = {.name = "three", .n_nodes = 3, .n_devices = 12, .node = {.n_devices = 4}};

static void place(const char *how, uint64_t seed, uint32_t n, uint32_t *device)
{
    struct dl_error err = {0};
    ck_assert_msg(!dl_place(&machine, how, seed, n, device, &err), "%s", err.text);
}

START_TEST(packed_fills_node_after_node)
{
    uint32_t device[6];
    place("packed", 0, 6, device);
    for (uint32_t rank = 0; rank < 6; rank++) ck_assert_uint_eq(device[rank], rank);
}
END_TEST

START_TEST(even_has_as_many_ranks_on_each_node)
{
    uint32_t device[12];
    place("even", 0, 6, device);
    for (uint32_t rank = 0; rank < 6; rank++) ck_assert_uint_eq(device[rank], rank / 3 * 4 + rank % 3);
    static const uint32_t as_packed[] = {1, 4, 5, 8, 11, 12};
    for (size_t i = 0; i < DL_COUNT(as_packed); i++) {
        place("even", 0, as_packed[i], device);
        for (uint32_t rank = 0; rank < as_packed[i]; rank++) ck_assert_uint_eq(device[rank], rank);
    }
}
END_TEST

START_TEST(spread_goes_round_the_nodes)
{
    uint32_t device[12];
    place("spread", 0, 12, device);
    for (uint32_t rank = 0; rank < 12; rank++) {
        ck_assert_uint_eq(dl_topology_node_of(&machine, device[rank]), rank % 3);
        ck_assert_uint_eq(device[rank] % 4, rank / 3);
    }
}
END_TEST

static void check_distinct(const uint32_t *device, uint32_t n)
{
    bool taken[12] = {false};
    for (uint32_t rank = 0; rank < n; rank++) {
        ck_assert_uint_lt(device[rank], 12);
        ck_assert(!taken[device[rank]]);
        taken[device[rank]] = true;
    }
}

START_TEST(random_is_a_set_of_devices_by_seed)
{
    uint32_t first[12], again[12], other[12];
    for (uint32_t n = 1; n <= 12; n++) {
        place("random", 7, n, first);
        place("random", 7, n, again);
        check_distinct(first, n);
        ck_assert_mem_eq(first, again, n * sizeof *first);
    }
    place("random", 8, 12, other);
    ck_assert_mem_ne(first, other, sizeof first);
}
END_TEST

START_TEST(random_reaches_every_device_equally_often)
{
    enum { n_seeds = 6000, n_ranks = 3 };
    uint32_t hits[12] = {0}, device[n_ranks];
    for (uint64_t seed = 0; seed < n_seeds; seed++) {
        place("random", seed, n_ranks, device);
        for (uint32_t rank = 0; rank < n_ranks; rank++) hits[device[rank]]++;
    }
    const double expected = n_seeds * n_ranks / 12.0;
    for (uint32_t i = 0; i < 12; i++) ck_assert_double_eq_tol(hits[i], expected, 0.1 * expected);
}
END_TEST

START_TEST(a_list_is_taken_as_it_is)
{
    uint32_t device[3];
    place("list:11,0,5", 0, 3, device);
    ck_assert_uint_eq(device[0], 11);
    ck_assert_uint_eq(device[1], 0);
    ck_assert_uint_eq(device[2], 5);
}
END_TEST

/* A collective may want a server beside its ranks; asking for it must not move them. */
START_TEST(servers_move_no_rank)
{
    static const char *const ways[] = {"packed", "even", "spread", "random"};
    for (uint32_t n = 1; n < 12; n++)
        for (uint32_t servers = 0; n + servers <= 12; servers++) {
            struct dl_error err = {0};
            uint32_t alone[12], device[12];
            place(ways[_i], 3, n, alone);
            ck_assert(!dl_place_with_servers(&machine, ways[_i], 3, (struct dl_places){n, servers}, device, &err));
            ck_assert_mem_eq(alone, device, n * sizeof *alone);
            check_distinct(device, n + servers);
        }
}
END_TEST

static const struct {
    const char *how;
    uint32_t n_ranks;
    const char *error;
} bad_placements[] = {
    {"packed", 13, "--devices: 13 ranks need a device each, but three has 12 devices"},
    {"Packed", 2, "--placement: must be packed, even, spread, random or list:DEVICE,..., got 'Packed'"},
    {"", 2, "--placement: must be packed, even, spread, random or list:DEVICE,..., got ''"},
    {"list:1,1", 2, "--placement: device 1 is listed twice: a device holds one rank"},
    {"list:1,12", 2, "--placement: there is no device 12: the devices of three are 0 to 11"},
    {"list:1,2,3", 2, "--placement: lists 3 devices for 2 ranks; list one for each"},
    {"list:1", 2, "--placement: lists 1 devices for 2 ranks; list one for each"},
    {"list:", 1, "--placement: list must hold device numbers such as list:3,1,2, got ''"},
    {"list:1,", 1, "--placement: list must hold device numbers such as list:3,1,2, got ''"},
    {"list:1,,2", 2, "--placement: list must hold device numbers such as list:3,1,2, got ',2'"},
    {"list:-1", 1, "--placement: list must hold device numbers such as list:3,1,2, got '-1'"},
    {"list: 1", 1, "--placement: list must hold device numbers such as list:3,1,2, got ' 1'"},
    {"list:1;2", 2, "--placement: list must separate devices by commas, got ';2'"},
    {"list:4294967296", 1, "--placement: list must hold device numbers such as list:3,1,2, got '4294967296'"},
    {"list:99999999999999999999999", 1,
     "--placement: list must hold device numbers such as list:3,1,2, got '99999999999999999999999'"},
};

START_TEST(errors_say_what_would_be_right)
{
    struct dl_error err = {0};
    uint32_t device[16];
    ck_assert_int_ne(dl_place(&machine, bad_placements[_i].how, 0, bad_placements[_i].n_ranks, device, &err), DL_OK);
    ck_assert_str_eq(err.text, bad_placements[_i].error);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("placement");
    TCase *const tests = tcase_create("placement");
    tcase_add_test(tests, packed_fills_node_after_node);
    tcase_add_test(tests, even_has_as_many_ranks_on_each_node);
    tcase_add_test(tests, spread_goes_round_the_nodes);
    tcase_add_test(tests, random_is_a_set_of_devices_by_seed);
    tcase_add_test(tests, random_reaches_every_device_equally_often);
    tcase_add_test(tests, a_list_is_taken_as_it_is);
    tcase_add_loop_test(tests, servers_move_no_rank, 0, 4);
    tcase_add_loop_test(tests, errors_say_what_would_be_right, 0, DL_COUNT(bad_placements));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
