/* wafer.c - devices that stream weights keep activations and a layer's weights, and send gradients out once. */
#define _GNU_SOURCE /* fork, pipe */
#include <check.h>
#include <math.h>

#include "sim/memory/memory_use.h"
#include "tests/training_runs.h"
#include "tests/unit/suite.h"

static const struct training_inputs cs2 = {.system = "cs2", .software = "ideal", .workload = "gpt3-6.7b"};
static const double weight_bytes = 2, gradient_bytes = 2, state_bytes = 12, stream_bytes_per_s = 150e9;

static struct dl_session s;

static void open_job(const char *set, const char *head, const char *stack)
{
    struct training_inputs inputs = cs2;
    inputs.set = set;
    ck_assert_msg(!training_open_stack(&s, inputs, head, stack), "%s", s.err.text);
}

static struct dl_training_result play(const char *set, const char *head, const char *stack)
{
    open_job(set, head, stack);
    const struct training_outcome outcome = training_simulate(&s, "simgrid");
    ck_assert_msg(!outcome.err.status, "%s", outcome.err.text);
    dl_session_close(&s);
    return outcome.result;
}

/* The weights of the layer at work, its gradients, and those of the layer before on their way out. */
static double working_set(void)
{
    double most = 0;
    for (size_t i = 0; i < s.model.n_layers; i++) {
        const double here = s.model.layers[i].parameters_inside + s.model.layers[i].parameters_outside;
        const double before = i + 1 < s.model.n_layers
                                  ? s.model.layers[i + 1].parameters_inside + s.model.layers[i + 1].parameters_outside
                                  : 0;
        most = fmax(most, here * (weight_bytes + gradient_bytes) + before * gradient_bytes);
    }
    return most;
}

START_TEST(a_wafer_holds_activations_and_the_weights_at_work)
{
    open_job(NULL, "'devices':1,'global_batch':1,'microbatch':1", "");
    const struct dl_memory_use *const m = &s.memory[0];
    ck_assert_double_eq(m->parameters + m->gradients + m->optimizer, 0);
    ck_assert_double_gt(m->buffers, 0);
    ck_assert_double_le(m->buffers, working_set());
    ck_assert_double_eq_tol(m->peak, m->activations + m->buffers + m->workspace, 1);
    ck_assert_double_le(m->peak, s.device.memory_bytes);
    dl_session_close(&s);
}
END_TEST

/* Once for all of them, however many there are and whatever they divide. */
START_TEST(all_else_is_outside_once)
{
    static const struct {
        const char *head, *stack;
    } jobs[] = {{"'devices':1,'global_batch':1,'microbatch':1", ""},
                {"'devices':16,'global_batch':16,'microbatch':1", "{'name':'data'}"},
                {"'devices':16,'global_batch':4,'microbatch':1", "{'name':'tensor','ways':4},{'name':'data'}"},
                {"'devices':4,'global_batch':4,'microbatch':1", "{'name':'pipeline','ways':4}"}};
    open_job(NULL, jobs[_i].head, jobs[_i].stack);
    const double bytes = dl_model_parameters(&s.model) * (weight_bytes + gradient_bytes + state_bytes);
    ck_assert_double_eq_tol(dl_memory_outside(&s.job.setting, &s.model) / bytes, 1, 1e-9);
    s.machine.topology->weight_memory_bytes = bytes * 1.001;
    ck_assert(dl_memory_fits_outside(s.machine.topology, &s.job.setting, &s.model));
    s.machine.topology->weight_memory_bytes = bytes * 0.999;
    ck_assert(!dl_memory_fits_outside(s.machine.topology, &s.job.setting, &s.model));
    dl_session_close(&s);
}
END_TEST

/* A micro-batch of one sample is too small to hide weights: they come in for forward and backward, and gradients go
 * out. As many wafers as there are take no longer; the network sums gradients meanwhile. */
START_TEST(gradients_go_out_once)
{
    static const char one[] = "'devices':1,'global_batch':1,'microbatch':1";
    static const char sixteen[] = "'devices':16,'global_batch':16,'microbatch':1";
    open_job(NULL, one, "");
    const double hidden = 4096, layers = 32;
    const double weights = 12 * hidden * hidden * layers, way_s = weights * weight_bytes / stream_bytes_per_s;
    const double head_s = (dl_model_parameters(&s.model) - weights) * weight_bytes / stream_bytes_per_s;
    dl_session_close(&s);
    const struct dl_training_result alone = play(NULL, one, ""), all = play(NULL, sixteen, "{'name':'data'}");
    ck_assert_double_ge(alone.step_s, 3 * way_s);
    ck_assert_double_le(alone.step_s, 1.01 * 3 * (way_s + head_s));
    ck_assert_double_eq_tol(all.step_s / alone.step_s, 1, 1e-9);
    ck_assert_double_eq(all.exposed_s[DL_CAUSE_DATA], 0);
}
END_TEST

/* A network that cannot add leaves the sum to the wafers: at least what there is goes through their ports once more. */
START_TEST(a_network_that_cannot_add_leaves_it_to_the_wafers)
{
    static const char sixteen[] = "'devices':16,'global_batch':16,'microbatch':1";
    const struct dl_training_result r = play("topo.network.reduces=false", sixteen, "{'name':'data'}");
    open_job(NULL, sixteen, "{'name':'data'}");
    ck_assert_double_ge(r.exposed_s[DL_CAUSE_DATA],
                        dl_model_parameters(&s.model) * gradient_bytes / stream_bytes_per_s);
    dl_session_close(&s);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("wafer");
    tcase_add_test(tests, a_wafer_holds_activations_and_the_weights_at_work);
    tcase_add_loop_test(tests, all_else_is_outside_once, 0, 4);
    tcase_add_test(tests, gradients_go_out_once);
    tcase_add_test(tests, a_network_that_cannot_add_leaves_it_to_the_wafers);
    Suite *const suite = suite_create("wafer");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
