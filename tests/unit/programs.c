/* programs.c - the engine by hand-written programs: every kind of operation against its closed form; and lines that no
 * program can have. The network is a crossbar of 1e9 bytes/s without latency, as are all links. */
#define _GNU_SOURCE /* fork, mmap, strdup */
#include <math.h>

#include "tests/unit/played_program.h"

#define ONE_RANK "dlsim program 1\ndigit stage values 1 stride 1 stages\nsends asynchronous\n"
#define TWO_REPLICAS                                                                                                   \
    "dlsim program 1\ndigit data values 2 stride 1 replicas\ndigit stage values 1 stride 2 stages\n"                   \
    "sends asynchronous\n"
#define TWO_IN_LOCKSTEP                                                                                                \
    "dlsim program 1\ndigit tensor values 2 stride 1 lockstep\ndigit stage values 1 stride 2 stages\n"                 \
    "sends asynchronous\n"
#define FOUR_IN_LOCKSTEP                                                                                               \
    "dlsim program 1\ndigit rows values 4 stride 1 lockstep\ndigit stage values 1 stride 4 stages\nsends "             \
    "asynchronous\n"
#define HALO(bytes, back, more)                                                                                        \
    "collective 0 halo channel lockstep over rows bytes " bytes " back_fraction " back " cause context" more "\n"
#define TWO_STAGES "dlsim program 1\ndigit stage values 2 stride 1 stages\n"
#define FOUR_STAGES "dlsim program 1\ndigit stage values 4 stride 1 stages\n"
#define GATHER(more) "collective 0 allgather channel lockstep over tensor bytes 2e9 cause tensor alone_s 7" more "\n"
#define BESIDE(number, bytes, more)                                                                                    \
    "collective " number " alltoall channel beside over data bytes " bytes " cause expert" more "\n"
#define FORWARD "item forward micro 0 chunk 0 block 0"

/* Devices below a PCIe switch, with a NIC. */
#define BELOW_SWITCH(devices)                                                                                          \
    "{'schema':'dlsim/system/1','source':'a "                                                                          \
    "test','nodes':64,'transport':'ideal','node':{'device':'none','devices':" devices                                  \
    ",'parts':[{'kind':'pcie','switches':1,'link':'ideal','bandwidth_bytes_per_s':1e9,'latency_s':0,"                  \
    "'switch_bandwidth_bytes_per_s':1e9}],'nics':{'count':1,'attach':['pcie0'],'link':'ideal',"                        \
    "'bandwidth_bytes_per_s':1e9,'latency_s':0}},'network':{'kind':'crossbar','link':'ideal',"                         \
    "'bandwidth_bytes_per_s':1e9,'latency_s':0}}"
/* Devices with a host link of 4 GB/s each, storage that reads 2 GB/s and writes 1 GB/s after half a second, and drives
 * of the node of 1 GB/s. */
#define WITH_STORAGE(devices)                                                                                          \
    "{'schema':'dlsim/system/1','source':'a "                                                                          \
    "test','nodes':8,'transport':'ideal','node':{'device':'none','devices':" devices                                   \
    ",'parts':[{'kind':'switch','link':'ideal','bandwidth_bytes_per_s':1e18,'latency_s':0}],"                          \
    "'host':{'link_bandwidth_bytes_per_s':4e9},'storage':{'write_bytes_per_s':1e9}},'storage':{'write_bytes_per_s':"   \
    "1e9,'read_bytes_per_s':2e9,'latency_s':0.5},'network':{'kind':'crossbar','link':'ideal',"                         \
    "'bandwidth_bytes_per_s':1e9,'latency_s':0}}"
/* A switch's socket as host, behind a NIC of 1 GB/s; storage is no limit. */
#define BEHIND_NIC                                                                                                     \
    "{'schema':'dlsim/system/1','source':'a test','nodes':8,'transport':'ideal','node':{'device':'none','devices':1,"  \
    "'parts':[{'kind':'pcie','switches':1,'link':'ideal','bandwidth_bytes_per_s':1e18,'latency_s':0,"                  \
    "'switch_bandwidth_bytes_per_s':1e18}],'nics':{'count':1,'attach':['pcie0'],'link':'ideal',"                       \
    "'bandwidth_bytes_per_s':1e18,'latency_s':0}},'storage':{'write_bytes_per_s':1e18},'network':{'kind':'fat_tree',"  \
    "'link':'ideal','children':[2,4],'parents':[1,2],'bandwidth_bytes_per_s':1e9,'latency_s':0,'routing':'dmodk'}}"
#define COPY(number, way, bytes, more) "copy " number " " way " bytes " bytes " cause offload" more "\n"
#define SIMULATED(number, way, bytes) COPY(number, way, bytes, " simulated")

#define ALONE "stage 0 tags 0\nblock 0\nstart 0\nwait 0\n" FORWARD "\n"

static const struct {
    const char *what, *program;
    uint32_t n_ranks;
    double step_s;
} steps[] = {
    {"kernels follow each other",
     ONE_RANK "stage 0 tags 0\nblock 0\n"
              "work cause compute device_s 1 name a\nwork cause compute device_s 2 name b\n" FORWARD "\n",
     1, 3},
    {"a device waits for its host",
     ONE_RANK "stage 0 tags 0\nblock 0\nwork cause compute device_s 1 host_s 4 name a\n"
              "work cause compute device_s 1 host_s 4 name b\n" FORWARD "\n",
     1, 9},
    {"a host runs ahead until it is drained",
     ONE_RANK "stage 0 tags 0\nblock 0\nwork cause compute device_s 5 host_s 1 name a\ndrain\n"
              "work cause compute device_s 1 host_s 2 name b\n" FORWARD "\n",
     1, 9},
    {"the end of the step comes after the items",
     ONE_RANK "stage 0 tags 0\nblock 0\nwork cause compute device_s 1 name a\nend\n"
              "work cause optimizer device_s 3 name update\n" FORWARD "\n",
     1, 4},
    {"a sum goes on beside work, and is waited for", /* 2 (n - 1) / n x bytes */
     TWO_REPLICAS "collective 0 allreduce channel replicas over data bytes 3e9 cause data\n"
                  "stage 0 tags 0\nblock 0\nstart 0\nwork cause compute device_s 2 name a\nwait 0\n" FORWARD "\n",
     2, 3},
    {"two sums of replicas go one after the other",
     TWO_REPLICAS "collective 0 allreduce channel replicas over data bytes 1e9 cause data\n"
                  "stage 0 tags 0\nblock 0\nstart 0\nstart 0\nwait all\n" FORWARD "\n",
     2, 2},
    {"a gather in lockstep is half of its bytes",
     TWO_IN_LOCKSTEP GATHER(" simulated") "stage 0 tags 0\nblock 0\nwork cause compute device_s 1 name a\n"
                                          "start 0\nwait 0\n" FORWARD "\n",
     2, 2},
    {"a shift is what one rank sends, in lockstep",
     FOUR_IN_LOCKSTEP "collective 0 shift channel lockstep over rows bytes 4e9 cause context simulated\n" ALONE, 4, 1},
    {"a halo is what a rank between two others sends", FOUR_IN_LOCKSTEP HALO("4e9", "0.25", " simulated") ALONE, 4, 1},
    {"one of two ranks sends a halo to the other alone",
     TWO_IN_LOCKSTEP
     "collective 0 halo channel lockstep over tensor bytes 2e9 back_fraction 0.25 cause context simulated\n" ALONE,
     2, 0.75},
    {"a halo may go one way", FOUR_IN_LOCKSTEP HALO("4e9", "1", " simulated") ALONE, 4, 1},
    {"a halo that is not simulated is priced", FOUR_IN_LOCKSTEP HALO("4e9", "0.5", " alone_s 3") ALONE, 4, 3},
    {"one that is not simulated takes what it is said to take",
     TWO_IN_LOCKSTEP GATHER("") "stage 0 tags 0\nblock 0\nwork cause compute device_s 1 name a\n"
                                "start 0\nwait 0\n" FORWARD "\n",
     2, 8},
    {"a gather in lockstep goes on beside a kernel",
     TWO_IN_LOCKSTEP GATHER(" simulated") "stage 0 tags 0\nblock 0\nstart 0\n"
                                          "work cause compute device_s 0.75 name a\nwait 0\n"
                                          "work cause compute device_s 1 name b\n" FORWARD "\n",
     2, 2},
    {"and one that is not simulated takes what it is longer",
     TWO_IN_LOCKSTEP GATHER("") "stage 0 tags 0\nblock 0\nstart 0\n"
                                "work cause compute device_s 5 name a\nwait 0\n"
                                "work cause compute device_s 1 name b\n" FORWARD "\n",
     2, 8},
    {"which goes on while the device waits for its host, too", /* 1 s of it at 3 s */
     TWO_IN_LOCKSTEP GATHER("") "stage 0 tags 0\nblock 0\nstart 0\n"
                                "work cause compute device_s 1 host_s 3 name a\nwait 0\n"
                                "work cause compute device_s 1 name b\n" FORWARD "\n",
     2, 8},
    {"what it takes from the kernel is lost, but not twice",
     TWO_IN_LOCKSTEP GATHER(
         " takes_product 0.5") "stage 0 tags 0\nblock 0\nstart 0\n"
                               "work cause compute device_s 5 kernel product name a\nwait 0\n" FORWARD "\n",
     2, 8.5},
    {"and only by kernels of its class",
     TWO_IN_LOCKSTEP GATHER(
         " takes_product 0.5 takes_memory 0.25") "stage 0 tags 0\nblock 0\nstart 0\nwork cause compute device_s 7 "
                                                 "kernel attention name a\nwait 0\n" FORWARD "\n",
     2, 7},
    {"two kinds of collectives are planned by themselves",
     TWO_IN_LOCKSTEP GATHER(" simulated") "collective 1 allgather channel lockstep over tensor bytes 2e9 "
                                          "cause sequence alone_s 3\n"
                                          "stage 0 tags 0\nblock 0\nstart 0\nwait 0\nstart 1\nwait 1\n" FORWARD "\n",
     2, 4},
    {"lockstep groups are planned by themselves", /* the second prices: 7 s */
     "dlsim program 1\ndigit tensor values 2 stride 1 lockstep\ndigit stage values 2 stride 2 stages\n"
     "sends asynchronous\nsimulates 10\n" GATHER(" simulated") "stage 0 tags 0\nblock 0\nstart 0\nwait 0\n" FORWARD
                                                               "\nstage 1 tags 0\nblock 0\n"
                                                               "work cause compute device_s 1 name a\n"
                                                               "start 0\nwait 0\n" FORWARD "\n",
     4, 8},
    {"those beside a layer go one after the other", /* half of the bytes each */
     TWO_REPLICAS BESIDE("0", "2e9", " simulated")
         BESIDE("1", "3e9", " simulated") "stage 0 tags 0\nblock 0\nstart 0\nstart 1\nstart 0\nwork cause compute "
                                          "device_s 2 name a\nwait 0\n" FORWARD "\n",
     2, 3.5},
    {"and are not seen where the layer is longer",
     TWO_REPLICAS BESIDE("0", "2e9", " simulated") "stage 0 tags 0\nblock 0\nstart 0\nstart 0\n"
                                                   "work cause compute device_s 3 name a\nwait 0\n" FORWARD "\n",
     2, 3},
    {"one beside a layer and a sum of replicas have half of the links each",
     TWO_REPLICAS BESIDE("0", "2e9", " simulated") "collective 1 allreduce channel replicas over data bytes 1e9 "
                                                   "cause data\nstage 0 tags 0\nblock 0\nstart 0\nstart 1\n"
                                                   "work cause compute device_s 1 name a\nwait 0\nwait 1\n" FORWARD
                                                   "\n",
     2, 2},
    {"those beside a layer that are not simulated take what all of them are longer",
     TWO_REPLICAS BESIDE("0", "1", " alone_s 2")
         BESIDE("1", "1", " alone_s 1.5") "stage 0 tags 0\nblock 0\nstart 0\nstart 1\nwork cause compute device_s 3 "
                                          "name a\nwait 1\n" FORWARD "\n",
     2, 3.5},
    {"or what they take from it",
     TWO_REPLICAS BESIDE("0", "1", " alone_s 2 takes_memory 0.25") BESIDE(
         "1", "1", " alone_s 1 takes_memory 0.25") "stage 0 tags 0\nblock 0\nstart 0\nstart 1\nwork cause compute "
                                                   "device_s 4 kernel memory name a\nwait 1\n" FORWARD "\n",
     2, 4.75},
    {"a message between stages",
     TWO_STAGES "sends asynchronous\n"
                "stage 0 tags 0 sends_bytes 2e9\nblock 0\nwork cause compute device_s 1 name a\n" FORWARD
                " gives 0 to 1\nstage 1 tags 1\nblock 0\nwork cause compute device_s 3 name b\n" FORWARD
                " wants 0 from 0\n",
     2, 6},
    {"a stage that hands on to itself needs no network",
     ONE_RANK "stage 0 chunks 2 tags 1\nblock 0\nwork cause compute device_s 1 name a\nblock 5\n"
              "work cause compute device_s 2 name b\n" FORWARD " gives 0 to 0\n"
              "item forward micro 0 chunk 1 block 5 wants 0 from 0\n",
     1, 3},
    {"who sends waits for the delivery where sends are batched",
     TWO_STAGES "sends batched\n"
                "stage 0 tags 0 sends_bytes 2e9\nblock 0\nwork cause compute device_s 1 name a\n" FORWARD
                " gives 0 to 1\nitem forward micro 1 chunk 0 block 0\n"
                "stage 1 tags 1\nblock 0\nwork cause compute device_s 0.5 name b\n" FORWARD " wants 0 from 0\n",
     2, 4},
    {"two stages that hold the same",
     TWO_STAGES
     "sends asynchronous\ncollective 0 allreduce channel stages over stage first 0 second 1 bytes 1e9 "
     "cause pipeline\nstage 0 tags 0\nblock 0\nwork cause compute device_s 1 name a\nend\nstart 0\nwait 0\n" FORWARD
     "\nstage 1 tags 0\nblock 0\nwork cause compute device_s 2 name b\nend\nstart 0\nwait 0\n" FORWARD "\n",
     2, 3},
};

static void check_closed_form(const char *what, struct played_text played, double step_s)
{
    ck_assert_msg(!played.err.status, "%s: %s", what, played.err.text);
    ck_assert_msg(fabs(played.step_s - step_s) <= 1e-9 * step_s, "%s: %.17g s, not %g", what, played.step_s, step_s);
}

START_TEST(an_operation_takes_what_its_closed_form_says)
{
    check_closed_form(steps[_i].what, play_program(steps[_i].program, steps[_i].n_ranks, 1), steps[_i].step_s);
}
END_TEST

static const struct {
    const char *what, *program;
    uint32_t n_ranks;
    double step_s;
    const char *system;
} copies[] = {
    {"a copy goes on beside work",
     ONE_RANK SIMULATED("0", "out", "2e9") "stage 0 tags 0\nblock 0\nstart 0\n"
                                           "work cause compute device_s 1.5 name a\nwait 0\n" FORWARD "\n",
     1, 2, BELOW_SWITCH("1")},
    {"one that is not simulated takes what it is longer than all work since",
     ONE_RANK COPY("0", "out", "2e9", " alone_s 5") "stage 0 tags 0\nblock 0\nstart 0\n"
                                                    "work cause compute device_s 1.5 name a\n"
                                                    "work cause compute device_s 1 name b\nwait 0\n" FORWARD "\n",
     1, 5, BELOW_SWITCH("1")},
    {"a copy goes on while the device waits for its host",
     ONE_RANK SIMULATED("0", "in", "4e9") "stage 0 tags 0\nblock 0\nstart 0\n"
                                          "work cause compute device_s 1 host_s 3 name a\nwait 0\n" FORWARD "\n",
     1, 4, BELOW_SWITCH("1")},
    {"so does one that is not simulated",
     ONE_RANK COPY("0", "in", "1", " alone_s 4") "stage 0 tags 0\nblock 0\nstart 0\n"
                                                 "work cause compute device_s 1 host_s 3 name a\nwait 0\n" FORWARD "\n",
     1, 4, BELOW_SWITCH("1")},
    {"copies there and back go on at once",
     ONE_RANK SIMULATED("0", "out", "2e9")
         SIMULATED("1", "in", "2e9") "stage 0 tags 0\nblock 0\nstart 0\nstart 1\nwait 0\nwait 1\n" FORWARD "\n",
     1, 2, BELOW_SWITCH("1")},
    {"copies one way go one after the other",
     ONE_RANK SIMULATED("0", "out", "2e9")
         SIMULATED("1", "out", "1e9") "stage 0 tags 0\nblock 0\nstart 0\nstart 1\nstart 0\nwait 1\n"
                                      "work cause compute device_s 1 name a\nwait 0\n" FORWARD "\n",
     1, 5, BELOW_SWITCH("1")},
    {"so do those that are not simulated",
     ONE_RANK COPY("0", "out", "1", " alone_s 2") COPY("1", "out", "1", " alone_s 1")
         COPY("2", "in", "1", " alone_s 4.5") "stage 0 tags 0\nblock 0\nstart 0\nstart 2\nstart 1\nstart 0\nwait 1\n"
                                              "work cause compute device_s 1 name a\nwait 2\nwait 0\n" FORWARD "\n",
     1, 5, BELOW_SWITCH("1")},
    {"a copy is no faster than the host",
     ONE_RANK COPY("0", "in", "1e9", " most_bytes_per_s 5e8 simulated") "stage 0 tags 0\nblock 0\n"
                                                                        "start 0\nwait 0\n" FORWARD "\n",
     1, 2, BELOW_SWITCH("1")},
    {"replicas below a switch share its link to the host",
     TWO_REPLICAS SIMULATED("0", "out", "1e9") "stage 0 tags 0\nblock 0\nstart 0\nwait 0\n" FORWARD "\n", 2, 2,
     BELOW_SWITCH("2")},
    {"so do ranks in lockstep",
     TWO_IN_LOCKSTEP SIMULATED("0", "in", "1e9") "stage 0 tags 0\nblock 0\nstart 0\nwait 0\n" FORWARD "\n", 2, 2,
     BELOW_SWITCH("2")},
    {"what replicas send through their NICs takes half of the device's link from copies",
     TWO_REPLICAS SIMULATED("0", "out",
                            "1e9") "collective 1 allreduce channel replicas over data bytes 1e9 cause data\n"
                                   "stage 0 tags 0\nblock 0\nstart 0\nstart 1\nwait 0\nwait 1\n" FORWARD "\n",
     2, 2, BELOW_SWITCH("1")},
    {"a read takes what storage gives, after its latency",
     ONE_RANK COPY("0", "in", "2e9", " path device-storage simulated") ALONE, 1, 1.5, WITH_STORAGE("1")},
    {"a write takes what storage takes", ONE_RANK COPY("0", "out", "2e9", " path device-storage simulated") ALONE, 1,
     2.5, WITH_STORAGE("1")},
    {"nodes share one file system", TWO_REPLICAS COPY("0", "in", "1e9", " path device-storage simulated") ALONE, 2, 1.5,
     WITH_STORAGE("1")},
    {"drives are each node's own", TWO_REPLICAS COPY("0", "in", "1e9", " path device-node_storage simulated") ALONE, 2,
     1, WITH_STORAGE("1")},
    {"devices of a node share its drives",
     TWO_REPLICAS COPY("0", "out", "1e9", " path device-node_storage simulated") ALONE, 2, 2, WITH_STORAGE("2")},
    {"a host's read leaves the way from it to the device alone",
     ONE_RANK COPY("0", "out", "4e9", " path host-node_storage simulated") COPY(
         "1", "in", "16e9", " simulated") "stage 0 tags 0\nblock 0\nstart 0\nstart 1\nwait 0\nwait 1\n" FORWARD "\n",
     1, 4, WITH_STORAGE("1")},
    {"a read comes through the port of the NIC", ONE_RANK COPY("0", "in", "2e9", " path host-storage simulated") ALONE,
     1, 2, BEHIND_NIC},
    {"what replicas send takes half of that port",
     TWO_REPLICAS COPY(
         "0", "in", "1e9",
         " path host-storage simulated") "collective 1 allreduce channel replicas over data bytes 1e9 cause data\n"
                                         "stage 0 tags 0\nblock 0\nstart 0\nstart 1\nwait 0\nwait 1\n" FORWARD "\n",
     2, 2, BEHIND_NIC},
};

START_TEST(a_copy_takes_what_its_closed_form_says)
{
    machine = copies[_i].system;
    check_closed_form(copies[_i].what, play_program(copies[_i].program, copies[_i].n_ranks, 1), copies[_i].step_s);
    machine = NULL;
}
END_TEST

/* A sum of 3 s beside work of 1 s, in every third step. */
START_TEST(collectives_take_turns)
{
    const struct played_text played = play_program(
        TWO_REPLICAS "collective 0 allreduce channel replicas over data bytes 3e9 cause data every 3 turn 1\n"
                     "stage 0 tags 0\nblock 0\nstart 0\nwork cause compute device_s 1 name a\nwait 0\n" FORWARD "\n",
        2, (uint32_t)_i + 1);
    ck_assert_msg(!played.err.status, "%s", played.err.text);
    ck_assert_double_eq_tol(played.step_s, _i % 3 == 1 ? 3 : 1, 1e-9);
}
END_TEST

static const struct {
    const char *program, *message;
} refused[] = {
    {"dlsim program 2\n", "test.txt:1: a program begins with the line \"dlsim program 1\""},
    {"dlsim program 1\nwork cause compute device_s 1 name a\n", "test.txt:2: 'work' must be in a stage"},
    {ONE_RANK "stage 0 tags 0\nwork cause compute name a\n", "test.txt:5: 'work' must be in a block"},
    {ONE_RANK "stage 0 tags 0\nblock 0\nwork cause computing name a\n",
     "test.txt:6: must be one of compute, recompute, optimizer"},
    {ONE_RANK "stage 0 tags 0\nblock 0\nwork cause compute device_s -1 name a\n",
     "test.txt:6: '-1' is not a number that can stand here"},
    {ONE_RANK "stage 0 tags 0\nblock 0\nwork cause compute device_s 1 speed 2 name a\n",
     "test.txt:6: 'speed' means nothing here"},
    {ONE_RANK "stage 0 tags 0\nblock 5\n", "test.txt:5: '5' is not a number that can stand here"},
    {ONE_RANK "stage 1 tags 0\n", "test.txt:4: '1' is not the next stage"},
    {"dlsim program 1\ndigit data values 3 stride 1 replicas\ndigit stage values 1 stride 3 stages\nsends "
     "asynchronous\n"
     "collective 0 allreduce channel replicas over data drawn bytes 1 cause data\n",
     "test.txt:5: pairs are drawn of an even number of replicas"},
    {TWO_IN_LOCKSTEP "collective 0 shift channel lockstep over tensor bytes 1 back_fraction 0.5 cause tensor\n",
     "test.txt:5: 'back_fraction' is of halos, and at most 1"},
    {FOUR_IN_LOCKSTEP HALO("1", "1.5", ""), "test.txt:5: 'back_fraction' is of halos, and at most 1"},
    {TWO_IN_LOCKSTEP "collective 0 allreduce channel lockstep over tensor drawn bytes 1 cause tensor\n",
     "test.txt:5: pairs are drawn of an even number of replicas"},
    {ONE_RANK "collective 0 allreduce channel replicas over data bytes 1 cause data\n",
     "test.txt:4: there is no digit 'data'"},
    {TWO_REPLICAS "collective 0 allreduce channel replicas over data bytes 1 cause data every 0 turn 0\n",
     "test.txt:5: 'every' must be at least 1"},
    {TWO_REPLICAS "collective 0 allreduce channel replicas over data bytes 1 cause data every 2 turn 2\n",
     "test.txt:5: '2' is not a number that can stand here"},
    {TWO_REPLICAS "collective 0 allreduce channel replicas over data bytes 1 cause data turn 1\n",
     "test.txt:5: 'turn' means nothing here"},
    {TWO_IN_LOCKSTEP "collective 0 allgather channel lockstep over tensor bytes 1 cause tensor every 2 turn 0\n",
     "test.txt:5: only collectives of replicas take turns"},
    {ONE_RANK "stage 0 tags 1\n" FORWARD " wants 0 from 0\n",
     "item: a tag is wanted and not given, or given and not wanted"},
    {TWO_REPLICAS "collective 0 allreduce channel replicas over data bytes 1 cause data simulated\n",
     "test.txt:5: 'simulated' means nothing here"},
    {TWO_IN_LOCKSTEP "collective 0 alltoall channel lockstep over tensor bytes 1 cause expert once simulated\n",
     "test.txt:5: 'simulated' means nothing here"},
    {ONE_RANK "stage 0 tags 0\nblock 0\nwait 0\n", "test.txt:6: there is no collective to wait"},
    {TWO_IN_LOCKSTEP GATHER("") "stage 0 tags 0\nblock 0\nstart 0\nstart 0\nwait 0\n" FORWARD "\n",
     "stage 0 starts exchange 0 in lockstep before it has waited for the one before"},
    {TWO_IN_LOCKSTEP GATHER("") "stage 0 tags 0\nblock 0\nstart 0\nwait 0\nwait 0\n" FORWARD "\n",
     "stage 0 waits for exchange 0 in lockstep but has not just started it"},
    {TWO_IN_LOCKSTEP GATHER("") "stage 0 tags 0\nblock 0\nstart 0\n" FORWARD "\n",
     "stage 0 starts exchange 0 in lockstep and does not wait for it"},
    {ONE_RANK SIMULATED("0", "out", "1e9") "stage 0 tags 0\nblock 0\nstart 0\nwait 0\n" FORWARD "\n",
     "run: copies need a host, and the machine has none"},
    {ONE_RANK COPY("0", "in", "1", "") "stage 0 tags 0\nblock 0\nwait 0\n" FORWARD "\n",
     "stage 0 waits for copy 0, which it has not started in the same block"},
    {TWO_REPLICAS BESIDE("0", "1", "") "stage 0 tags 0\nblock 0\nwait 0\n" FORWARD "\n",
     "stage 0 waits for exchange 0, which it has not started in the same block"},
    {ONE_RANK "copy 0 up bytes 1 cause offload\n", "test.txt:4: must be one of out, in"},
    {ONE_RANK "copy 0 out path device-disk bytes 1 cause offload\n",
     "test.txt:4: must be one of device-host, device-storage, device-node_storage, host-storage, host-node_storage"},
    {ONE_RANK "copy 0 out bytes 1 cause offload takes_memory 0.2\n", "test.txt:4: 'takes_memory' means nothing here"},
    {FOUR_STAGES "stage 0 tags 0\n" FORWARD " gives 0 to 2\nstage 1 tags 0\nstage 2 tags 1\n" FORWARD
                 " wants 0 from 0\nstage 3 tags 0\n",
     "item: a tag is given twice, is too large or goes to a stage that is no neighbour"},
    {TWO_STAGES "stage 0 tags 0\n", "must have as many stages as its digits say"},
    {ONE_RANK "stage 0 tags 0\n" FORWARD " with_next\n", "the last item of a stage goes with one after it"},
};

START_TEST(what_no_program_can_have_is_refused_by_its_line)
{
    const struct played_text played = play_program(refused[_i].program, 2, 1);
    ck_assert_msg(played.err.status && strstr(played.err.text, refused[_i].message), "'%s', not '%s'", played.err.text,
                  refused[_i].message);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("programs");
    tcase_add_loop_test(tests, an_operation_takes_what_its_closed_form_says, 0, DL_COUNT(steps));
    tcase_add_loop_test(tests, collectives_take_turns, 0, 5);
    tcase_add_loop_test(tests, a_copy_takes_what_its_closed_form_says, 0, DL_COUNT(copies));
    tcase_add_loop_test(tests, what_no_program_can_have_is_refused_by_its_line, 0, DL_COUNT(refused));
    return run_steps(tests, "programs");
}
