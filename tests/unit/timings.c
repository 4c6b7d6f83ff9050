/* Tables of benchmarks as they are printed: what is read from them, and what is refused. */
#include "sim/calibrate/timings.h"

#include <check.h>
#include <string.h>

#include "tests/unit/suite.h"

static struct dl_arena *arena;
static struct dl_error err;
static struct dl_timings t;

static void set_up(void)
{
    arena = dl_arena_new();
    err = (struct dl_error){0};
}

static void tear_down(void)
{
    dl_timings_release(&t);
    dl_arena_free(arena);
}

static void parse(const char *text)
{
    ck_assert_msg(dl_timings_parse(text, "t.txt", arena, &t, &err) == DL_OK, "%s", err.text);
}

static void check_row(size_t i, double bytes, double us)
{
    ck_assert_uint_lt(i, t.n_rows);
    ck_assert_double_eq(t.rows[i].bytes, bytes);
    ck_assert_double_eq_tol(t.rows[i].time_s, us * 1e-6, 1e-15);
}

#define HEAD                                                                                                           \
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "   \
    "#wrong\n"
#define UNITS                                                                                                          \
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"

START_TEST(nccl_tests_of_two_hosts)
{
    parse("# nccl-tests version 2.17.9 nccl-headers=22903 nccl-library=22903\n"
          "# Collective test starting: reduce_scatter_perf\n"
          "# nThread 1 nGpus 1 minBytes 8 maxBytes 16 step: 2(factor) warmup iters: 1 iters: 20\n#\n# Using devices\n"
          "#  Rank  0 Group  0 Pid    490 on node-a device  0 [0000:0f:00] NVIDIA A100-SXM4-40GB\n"
          "#  Rank  1 Group  0 Pid    491 on node-a device  7 [0000:da:00] NVIDIA A100-SXM4-40GB\n"
          "#  Rank  2 Group  0 Pid    247 on node-b device  0 [0000:0f:00] NVIDIA A100-SXM4-40GB\n"
          "node-a:490:490 [0] NCCL INFO cudaDriverVersion 12080\nNCCL version 2.29.3+cuda13.1\n"
          "#                                                              out-of-place                       "
          "in-place\n" HEAD UNITS "           0             0     float     sum      -1     0.15    0.00    0.00      "
          "0     0.14    0.00    0.00      0\n"
          "           8             2     float     sum      -1    13.04    0.00    0.00      0    12.74    0.00    "
          "0.00    N/A\n"
          "  1073741824     268435456     float     sum      -1  10908.0   98.44  184.57      0  1.09e+4   98.44  "
          "184.57      0\n"
          "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 184.5\n#\n");
    ck_assert_str_eq(t.format, "nccl-tests");
    ck_assert_int_eq(t.timed, DL_TIMED_COLLECTIVE);
    ck_assert_int_eq(t.op, DL_REDUCESCATTER);
    ck_assert_uint_eq(t.n_ranks, 3);
    ck_assert_uint_eq(t.host[1], 0);
    ck_assert_uint_eq(t.slot[1], 7);
    ck_assert_uint_eq(t.host[2], 1);
    ck_assert_uint_eq(t.n_rows, 4);
    check_row(0, 8, 13.04);
    check_row(1, 8, 12.74);
    check_row(2, 1073741824, 10908);
    check_row(3, 1073741824, 10900);
}
END_TEST

/* Old versions have no word for the operation where there is none, and no name of the program but that of its call. */
START_TEST(old_nccl_tests_behind_mpirun)
{
    parse("[1,0]<stdout>:$ ./build/alltoall_perf -b 8 -e 16 -f 2\n"
          "[1,0]<stdout>:#   Rank  0 Pid   5897 on         x0 device  0 [0x05] Tesla V100\n"
          "[1,0]<stdout>:#   Rank  1 Pid   5897 on         x0 device  1 [0x06] Tesla V100\n"
          "[1,0]<stdout>:#       size         count      type   redop     time   algbw   busbw  error     time   algbw "
          "  busbw  error\n"
          "[1,0]<stdout>:   268435456       1048576     float           520935    0.52    0.51  0e+00   519562    0.52 "
          "   0.51  1e+00\n");
    ck_assert_int_eq(t.op, DL_ALLTOALL);
    ck_assert_uint_eq(t.n_ranks, 2);
    ck_assert_uint_eq(t.n_rows, 2);
    check_row(0, 268435456, 520935);
    check_row(1, 268435456, 519562);
}
END_TEST

START_TEST(nccl_tests_without_a_head_say_neither_program_nor_ranks)
{
    parse("0: " HEAD "0:            8             2     float     sum      -1    13.04    0.00    0.00      0    12.74 "
          "   0.00    0.00      0\n");
    ck_assert_int_eq(t.op, DL_N_OPS);
    ck_assert_uint_eq(t.n_ranks, 0);
    ck_assert_uint_eq(t.n_rows, 2);
}
END_TEST

START_TEST(osu_latency_with_no_bytes)
{
    parse(
        "# OSU MPI-CUDA Latency Test v5.9\n# Size          Latency (us)\n0                       1.02\n8     1.25\r\n");
    ck_assert_int_eq(t.timed, DL_TIMED_MESSAGE);
    ck_assert_uint_eq(t.n_rows, 2);
    check_row(0, 0, 1.02);
    check_row(1, 8, 1.25);
}
END_TEST

START_TEST(osu_bandwidth_is_a_time_for_each_message)
{
    parse("# OSU MPI Bandwidth Test v7.3\n# Datatype: MPI_CHAR.\n# Size      Bandwidth (MB/s)\n1048576    12000.00\n");
    ck_assert_int_eq(t.timed, DL_TIMED_STREAM);
    check_row(0, 1048576, 1048576 / 12000.0);
}
END_TEST

START_TEST(imb_ping_pong)
{
    parse("#---------------------------------------------------\n# Benchmarking PingPong\n# #processes = 2\n"
          "       #bytes #repetitions      t[usec]   Mbytes/sec\n            0         1000         0.92         0.00\n"
          "         4096         1000         2.50      1638.40\n\n# All processes entering MPI_Finalize\n");
    ck_assert_int_eq(t.timed, DL_TIMED_MESSAGE);
    ck_assert_uint_eq(t.n_rows, 2);
    check_row(1, 4096, 2.5);
}
END_TEST

START_TEST(json_of_dlsim_measure)
{
    parse("{\"schema\": \"dlsim/measured/1\", \"ranks\": 2, \"messages\": {\"columns\": [\"bytes\", \"measured_s\", "
          "\"fitted_s\"], \"rows\": [[8, 1e-6, 1.1e-6], [16.0, 2e-6, 2e-6]]}}");
    ck_assert_int_eq(t.timed, DL_TIMED_MESSAGE);
    check_row(0, 8, 1);
    check_row(1, 16, 2);
}
END_TEST

static const struct {
    const char *text, *message;
} refused[] = {
    {"", "t.txt: is of no known benchmark: nccl-tests, osu_latency, osu_bw, IMB PingPong, dlsim-measure --json"},
    {HEAD UNITS, "t.txt: has no rows, though it is of nccl-tests"},
    {HEAD "8 2 float\n", "t.txt:2: has 3 cells; the head of the table has more"},
    {HEAD "8 2 float sum -1 abc 0 0 0 1 0 0 0\n", "t.txt:2: 'abc' is no time"},
    {HEAD "8 2 float sum -1 -3 0 0 0 1 0 0 0\n", "t.txt:2: seconds must be in [1e-09, 1e+06], got -3e-06"},
    {"# Rank 1 Pid 1 on x device 0\n" HEAD "8 2 float sum -1 3 0 0 0 1 0 0 0\n",
     "t.txt:1: rank 0 was expected, not 1: all ranks of one run, each once"},
    {"# all_reduce_perf\n# all_gather_perf\n" HEAD,
     "t.txt:2: begins a second table, of all_gather_perf; give each a file of its own"},
    {"# OSU MPI Allreduce Latency Test v7.0\n",
     "t.txt: is OSU's 'Allreduce Latency Test v7.0'; known are osu_latency and osu_bw"},
    {"# OSU MPI Bandwidth Test v7.0\n8 0\n", "t.txt:2: seconds must be in [1e-09, 1e+06], got inf"},
    {"{\"schema\": \"dlsim/measured/1\"}",
     "t.txt:/messages/rows: must hold the rows of dlsim-measure, [bytes, seconds, ...] each"},
    {"{\"schema\": \"dlsim/measured/1\", \"messages\": {\"rows\": [[1]]}}",
     "t.txt:/messages/rows/0: must be [bytes, seconds, ...]"},
};

START_TEST(what_cannot_be_is_refused)
{
    ck_assert_int_ne(dl_timings_parse(refused[_i].text, "t.txt", arena, &t, &err), DL_OK);
    ck_assert_str_eq(err.text, refused[_i].message);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("timings");
    TCase *const tests = tcase_create("timings");
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, nccl_tests_of_two_hosts);
    tcase_add_test(tests, old_nccl_tests_behind_mpirun);
    tcase_add_test(tests, nccl_tests_without_a_head_say_neither_program_nor_ranks);
    tcase_add_test(tests, osu_latency_with_no_bytes);
    tcase_add_test(tests, osu_bandwidth_is_a_time_for_each_message);
    tcase_add_test(tests, imb_ping_pong);
    tcase_add_test(tests, json_of_dlsim_measure);
    tcase_add_loop_test(tests, what_cannot_be_is_refused, 0, DL_COUNT(refused));
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
