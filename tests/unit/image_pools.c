/* image_pools.c - the pool of ResNet-50, windows of 3 x 3 by 2, against what its kernels took on an H200: cuDNN's,
 * which MXNet calls, and PyTorch's own; 256 images in fp16 with channels last. V100 and A100 have no times of their
 * own: there the instructions of these kernels count, not only what they move. */
#include "tests/unit/divided_step.h"

static const struct {
    const char *software;
    double forward_s, backward_s;
} timed[] = {{"mxnet", 0.287e-3, 1.531e-3}, {"pytorch-eager", 0.820e-3, 1.945e-3}};

static void open_resnet(struct dl_session *t, const char *system, const char *software)
{
    const struct dl_session_request request = {
        .topo = {system, NULL},
        .strategy = {"test.json", "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a test\",\"workload\":\"none\","
                                  "\"precision\":\"fp16\",\"global_batch\":256,\"microbatch\":256,\"stack\":[]}"},
        .workload = {"resnet50", NULL},
        .software = {software, NULL},
        .engine = "analytic"};
    ck_assert_msg(!dl_session_open(t, &request) && !dl_session_run(t), "%s", t->err.text);
}

/* 132 units at 1.98 GHz there, 80 at 1.53 here. */
START_TEST(fewer_slower_units_take_longer_than_was_timed)
{
    const double slower = 132.0 / 80 * 1.98 / 1.53;
    struct dl_session t;
    open_resnet(&t, "dgx2", timed[_i].software);
    check_close("forward", kernels_s(&t, DL_ITEM_F, "pool"), slower * timed[_i].forward_s, 0.2);
    check_close("backward", kernels_s(&t, DL_ITEM_B, "pool"), slower * timed[_i].backward_s, 0.2);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("image_pools");
    tcase_add_loop_test(tests, fewer_slower_units_take_longer_than_was_timed, 0, DL_COUNT(timed));
    Suite *const suite = suite_create("image_pools");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
