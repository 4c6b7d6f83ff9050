/* workload_losses.c - what classifiers end in, and gradients of what was joined: against counts by hand. */
#include <string.h>

#include "tests/unit/workload_fixture.h"

static const struct {
    const char *name;
    double classes;
} classifiers[] = {
    {"alexnet", 1000},   {"alexnet-2012", 1000}, {"densenet121", 1000}, {"googlenet", 1000}, {"googlenet-2014", 1000},
    {"hep-15pf", 2},     {"lenet-5", 10},        {"mlp-mnist", 10},     {"resnet50", 1000},  {"resnet101", 1000},
    {"resnet152", 1000}, {"vgg16", 1000},        {"vgg19", 1000},
};

static double elements_of(const struct dl_work *work, size_t n, const char *operation)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        if (strcmp(dl_kernel_operation(&work[i].kernel), operation) == 0) sum += work[i].kernel.elements;
    return sum;
}

/* Logits become fp32, 2 bytes read and 4 written, which softmax and cross entropy read and write; backward the same in
 * the other order. What softmax wrote is kept. */
static void check_loss(const struct dl_layer *loss, double logits, double rows)
{
    ck_assert_str_eq(loss->name, "cross_entropy");
    ck_assert(!loss->is_block);
    ck_assert_double_eq(loss->whole_logits, logits);
    ck_assert_double_eq(loss->logits, 0);
    ck_assert_double_eq(loss->output_elements, rows);
    ck_assert_double_eq(dl_layer_parameters(loss), 0);
    ck_assert_double_eq(elements_of(loss->forward, loss->n_forward, "logits_to_fp32"), 3 * logits);
    ck_assert_double_eq(elements_of(loss->forward, loss->n_forward, "cross_entropy"), 4 * logits);
    ck_assert_double_eq(elements_of(loss->backward, loss->n_backward, "cross_entropy"), 4 * logits);
    ck_assert_double_eq(elements_of(loss->backward, loss->n_backward, "logits_to_fp32"), 3 * logits);
    ck_assert_double_eq(flop_of(loss->forward, loss->n_forward) + flop_of(loss->backward, loss->n_backward), 0);
    ck_assert_double_eq(loss->saved.outside_bytes, 4 * logits);
    ck_assert_double_eq(saved_bytes(&loss->saved), 4 * logits);
    ck_assert_double_eq(loss->saved.input_bytes, 2 * logits);
}

START_TEST(classifiers_end_in_a_loss_of_each_sample)
{
    const double samples = 6, logits = samples * classifiers[_i].classes;
    open_shipped(classifiers[_i].name, samples, "flash");
    check_loss(&model.layers[model.n_layers - 1], logits, samples);
    for (size_t i = 0; i + 1 < model.n_layers; i++) ck_assert_double_eq(model.layers[i].whole_logits, 0);
}
END_TEST

#define CONVNET(layers)                                                                                                \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'convnet','input':[3,8,8],'layers':[" layers "]}"
#define CONV "{'kind':'conv','filters':4,'window':1}"
#define LOSS "{'kind':'cross_entropy'}"

START_TEST(pixels_have_a_loss_each)
{
    open_text(CONVNET(CONV "," LOSS));
    build(5, "flash");
    check_loss(&model.layers[1], 5 * 4 * 8 * 8, 5 * 8 * 8);
}
END_TEST

START_TEST(a_side_has_a_loss_of_its_own)
{
    open_text(CONVNET(CONV ",{'kind':'side','layers':[" CONV "," LOSS "]}," CONV "," LOSS));
    build(5, "flash");
    ck_assert_uint_eq(model.n_layers, 4);
    ck_assert(model.layers[1].is_block);
    ck_assert_double_eq(model.layers[1].whole_logits, 5 * 4 * 8 * 8);
    check_loss(&model.layers[3], 5 * 4 * 8 * 8, 5 * 8 * 8);
}
END_TEST

START_TEST(without_it_a_network_is_as_it_was)
{
    open_text(CONVNET(CONV));
    build(5, "flash");
    ck_assert_uint_eq(model.n_layers, 1);
    open_text("{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[10,20,30],'loss':'none'}");
    build(5, "flash");
    ck_assert_uint_eq(model.n_layers, 1);
}
END_TEST

/* Of two convolutions the second keeps what it is given, which is what a relu needs; one that ends at 6 needs what it
 * was given itself, of 2 bytes for each pixel. */
START_TEST(a_relu_up_to_six_keeps_what_it_is_given)
{
    const double samples = 5, pixels = 8 * 8, filters = 4;
    open_text(CONVNET("{'kind':'conv','filters':4,'window':1,'relu':true}," CONV));
    build(samples, "flash");
    const double with_relu = saved_bytes(&model.layers[0].saved) + saved_bytes(&model.layers[1].saved);
    open_text(CONVNET("{'kind':'conv','filters':4,'window':1,'relu6':true}," CONV));
    build(samples, "flash");
    const double with_relu6 = saved_bytes(&model.layers[0].saved) + saved_bytes(&model.layers[1].saved);
    ck_assert_double_eq(with_relu6 - with_relu, 2 * samples * pixels * filters);
    ck_assert_double_eq(elements_of(model.layers[0].forward, model.layers[0].n_forward, "relu6"),
                        2 * samples * pixels * filters);
}
END_TEST

/* Of the gradients of activations that are added, in all layers. */
struct sums {
    size_t n, n_of_slices;
    double elements;
};

static struct sums sums_of_gradients(void)
{
    struct sums s = {0};
    for (size_t i = 0; i < model.n_layers; i++) {
        const struct dl_layer *const layer = &model.layers[i];
        for (size_t j = 0; j < layer->n_backward; j++) {
            const struct dl_kernel *const k = &layer->backward[j].kernel;
            if (!k->name || strcmp(k->name, "add")) continue;
            s.elements += k->elements;
            s.n++;
            s.n_of_slices += strcmp(dl_kernel_operation(k), "add_slices") == 0;
        }
    }
    return s;
}

/* Four ways part in each of nine modules of GoogLeNet, two in each of the 16 blocks of ResNet-50. */
START_TEST(gradients_of_ways_are_added_one_by_one)
{
    open_shipped("googlenet", 1, "flash");
    ck_assert_uint_eq(sums_of_gradients().n, 9 * 3);
    open_shipped("resnet50", 1, "flash");
    ck_assert_uint_eq(sums_of_gradients().n, 16);
    ck_assert_uint_eq(sums_of_gradients().n_of_slices, 0);
    open_text(CONVNET(CONV ",{'kind':'concat','branches':[[],[],[]]}"));
    build(1, "flash");
    ck_assert_uint_eq(sums_of_gradients().n, 2);
    ck_assert_str_eq(model.layers[1].backward[1].kernel.name, "add"); /* rules that mean the concat do not mean it */
}
END_TEST

/* Layer i of a dense block gets i parts: n (n + 1) / 2 sums in a block of n, of as many elements in all. */
START_TEST(gradients_of_parts_are_added_one_by_one)
{
    static const size_t blocks[] = {6, 12, 24, 16};
    static const double sides[] = {56, 28, 14, 7};
    const double growth = 32;
    size_t n = 0;
    double elements = 0, channels = 64;
    for (size_t i = 0; i < DL_COUNT(blocks); i++) {
        n += blocks[i] * (blocks[i] + 1) / 2;
        for (size_t j = 0; j < blocks[i]; j++, channels += growth) elements += 3 * channels * sides[i] * sides[i];
        channels /= 2;
    }
    open_shipped("densenet121", 1, "flash");
    ck_assert_uint_eq(sums_of_gradients().n, n);
    ck_assert_uint_eq(sums_of_gradients().n_of_slices, n - DL_COUNT(blocks)); /* the first layer of a block gets one */
    ck_assert_close(sums_of_gradients().elements, elements);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("workload_losses");
    TCase *const all = tcase_create("workload_losses");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, classifiers_end_in_a_loss_of_each_sample, 0, DL_COUNT(classifiers));
    tcase_add_test(all, pixels_have_a_loss_each);
    tcase_add_test(all, a_side_has_a_loss_of_its_own);
    tcase_add_test(all, without_it_a_network_is_as_it_was);
    tcase_add_test(all, a_relu_up_to_six_keeps_what_it_is_given);
    tcase_add_test(all, gradients_of_ways_are_added_one_by_one);
    tcase_add_test(all, gradients_of_parts_are_added_one_by_one);
    suite_add_tcase(suite, all);
    return run_without_forking(suite);
}
