/* workloads.c - shipped models against published counts and formulas. */
#include "tests/unit/workload_fixture.h"

/* GPT, against the formulas of Narayanan et al. 2021 and Korthikanti et al. 2022. */

static const char *const gpts[] = {
    "gpt-1.7b",       "gpt-3.6b",       "gpt-7.5b",           "gpt-18.4b",   "gpt-39.1b", "gpt-76.1b",
    "gpt-145.6b",     "gpt-310.1b",     "gpt-529.6b",         "gpt-1008b",   "gpt-22b",   "gpt-175b",
    "gpt-530b",       "gpt-1t",         "gpt-1t-korthikanti", "mt-nlg-530b", "gpt2-125m", "gpt2-355m",
    "gpt2-774m",      "gpt2-1.5b",      "gpt3-2.7b",          "gpt3-6.7b",   "gpt-28.3b", "megascale-175b",
    "megascale-530b", "deepspeed-175b", "axonn-40b",          "axonn-160b",
};

START_TEST(gpt_has_the_parameters_of_the_formula)
{
    open_shipped(gpts[_i], 1, "unfused");
    const double l = number("layers"), h = number("hidden"), v = number("vocab"), s = number("seq");
    const double formula = 12 * l * h * h * (1 + 13 / (12 * h) + (v + s) / (12 * l * h)); /* SC21 eq. 2 */
    const double final_norm = 2 * h;                                                      /* which it leaves out */
    const double shared_norms = number("parallel_norms") == 1 ? l * 2 * h : 0;
    ck_assert_close(dl_model_parameters(&model), formula + final_norm - shared_norms);
}
END_TEST

START_TEST(gpt_has_the_flop_of_the_formula)
{
    const double samples = 2;
    const char *const attentions[] = {"unfused", "flash"};
    for (size_t i = 0; i < DL_COUNT(attentions); i++) {
        open_shipped(gpts[_i], samples, attentions[i]);
        const double l = number("layers"), h = number("hidden"), v = number("vocab"), s = number("seq");
        const double formula = 72 * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h)); /* Korthikanti, appendix A */
        ck_assert_close(model.model_flop_per_sample[DL_FLOP_FULL], formula);
    }
}
END_TEST

START_TEST(gpt_saves_the_bytes_of_the_formulas)
{
    const double b = 4;
    open_shipped(gpts[_i], b, "unfused");
    const double s = number("seq"), h = number("hidden"), a = number("heads"), v = number("vocab");
    const struct dl_saved *const block = &model.layers[1].saved;
    const double shared = number("parallel_norms") == 1 ? 4 : 0; /* one norm, and what it gives to both halves */
    ck_assert_close(saved_bytes(block), s * b * h * (34 - shared + 5 * a * s / h)); /* eq. 1 */
    const double t = 8;
    ck_assert_close(block->outside_bytes + block->inside_bytes / t + block->scores_bytes / t,
                    s * b * h * (10 - shared + 24 / t + 5 * a * s / (h * t))); /* eq. 2 */
    ck_assert_close(block->input_bytes, 2 * s * b * h);
    ck_assert_close(saved_bytes(&model.layers[0].saved), s * b * h); /* section 4.3 */
    ck_assert_close(saved_bytes(&model.layers[model.n_layers - 1].saved), 4 * s * b * h * (1 + v / h));

    open_shipped(gpts[_i], b, "flash");
    ck_assert_close(saved_bytes(&model.layers[1].saved), (34 - shared) * s * b * h);
    ck_assert_double_eq(model.layers[1].saved.scores_bytes, 0);
}
END_TEST

#define FEED_FORWARD(function)                                                                                         \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':1,'hidden':64,'ffn':100,'heads':4,"  \
    "'seq':8,'vocab':10,'activation':'" function "'}"

/* The backward of a relu needs its result alone, which the second linear layer keeps anyhow; others need what they were
 * given. Of the result none makes a narrow copy do: a relu needs it as it is. */
START_TEST(a_relu_keeps_its_result_alone)
{
    const double tokens = 3 * 8, ffn = 100;
    open_text(FEED_FORWARD("gelu"));
    build(3, "flash");
    const struct dl_saved with_gelu = model.layers[1].saved;
    open_text(FEED_FORWARD("squared_relu"));
    build(3, "flash");
    ck_assert_double_eq(saved_bytes(&model.layers[1].saved), saved_bytes(&with_gelu));
    open_text(FEED_FORWARD("relu"));
    build(3, "flash");
    const struct dl_saved *const with_relu = &model.layers[1].saved;
    ck_assert_double_eq(saved_bytes(&with_gelu) - saved_bytes(with_relu), 2 * tokens * ffn);
    ck_assert_double_eq(with_gelu.operands_inside_bytes - with_relu->operands_inside_bytes, 2 * tokens * ffn);
    ck_assert_double_eq(with_relu->copied_inside_bytes - with_gelu.copied_inside_bytes, 2 * tokens * ffn);
}
END_TEST

START_TEST(tied_head_has_no_parameters_of_its_own)
{
    open_shipped("gpt-22b", 1, "unfused");
    const struct dl_layer *const head = &model.layers[model.n_layers - 1];
    ck_assert(model.tied_embedding);
    ck_assert_double_eq(head->parameters_inside, 0);
    ck_assert_double_eq(model.layers[0].parameters_inside, number("vocab") * number("hidden"));
    open_shipped("llama2-7b", 1, "unfused");
    ck_assert(!model.tied_embedding);
    ck_assert_double_eq(model.layers[model.n_layers - 1].parameters_inside, number("vocab") * number("hidden"));
}
END_TEST

/* A linear layer on every patch, the blocks of a GPT on patches and class token, a head on the latter alone. */
static const char *const vits[] = {"vit-base-16", "vit-large-16"};

START_TEST(vit_has_the_parameters_and_flop_of_the_formula)
{
    const double samples = 3, passes = 3;
    open_shipped(vits[_i], samples, "unfused");
    const double l = number("layers"), h = number("hidden"), c = number("vocab"), s = number("seq"),
                 p = number("patch");
    const double block = 12 * h * h, biases_and_norms = 13 * h, tokens_and_positions = h + s * h, final_norm = 2 * h;
    ck_assert_close(dl_model_parameters(&model),
                    (p * h + h) + tokens_and_positions + l * (block + biases_and_norms) + final_norm + (h * c + c));
    const double patches = 2 * (s - 1) * p * h, blocks = l * (2 * s * block + 4 * s * s * h), head = 2 * h * c;
    ck_assert_close(forward_flop(), samples * (patches + blocks + head));
    ck_assert_close(model.model_flop_per_sample[DL_FLOP_FULL],
                    passes * (patches + blocks + head) - patches); /* pixels need no gradient */
}
END_TEST

/* Biases of queries, keys and values by themselves, with grouped queries and without. */
START_TEST(biases_of_queries_keys_and_values_are_counted)
{
    static const char text[] = "{'schema':'dlsim/workload/1','kind':'transformer','layers':3,'hidden':64,'heads':8,"
                               "'kv_heads':2,'seq':16,'vocab':100,'bias':%s,'qkv_bias':%s}";
    static const struct {
        const char *bias, *qkv_bias;
        double sign;
    } cases[] = {{"false", "true", 1}, {"true", "false", -1}};
    const double biases = 3 * (64 + 2 * 2 * 8);
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        double parameters[2], tensors[2];
        for (int has = 0; has < 2; has++) {
            char one[sizeof text + 16];
            snprintf(one, sizeof one, text, cases[i].bias, has ? cases[i].qkv_bias : cases[i].bias);
            open_text(one);
            build(1, "flash");
            parameters[has] = dl_model_parameters(&model);
            tensors[has] = model.layers[1].n_tensors;
        }
        ck_assert_double_eq(parameters[1] - parameters[0], cases[i].sign * biases);
        ck_assert_double_eq(tensors[1] - tensors[0], cases[i].sign);
    }
}
END_TEST

/* Of scores in memory the softmax is kept, 2 a s^2 b; with dropout what is left of it and a mask, too. Masks of the two
 * residuals are kept outside. */
START_TEST(scores_and_residuals_may_differ_in_dropout)
{
    static const char text[] = "{'schema':'dlsim/workload/1','kind':'transformer','layers':2,'hidden':64,'heads':8,"
                               "'seq':16,'vocab':100,'dropout':%s,'attention_dropout':%s}";
    static const char *const words[] = {"false", "true"};
    const double scores = 8 * 16 * 16, mask = 16 * 64;
    double without = 0;
    for (int i = 0; i < 4; i++) {
        char one[sizeof text + 16];
        const bool all = i / 2, of_scores = i % 2;
        snprintf(one, sizeof one, text, words[all], words[of_scores]);
        open_text(one);
        build(1, "unfused");
        const struct dl_saved *const block = &model.layers[1].saved;
        if (i == 0) without = block->outside_bytes;
        ck_assert_double_eq(block->scores_bytes, (of_scores ? 5 : 2) * scores);
        ck_assert_double_eq(block->outside_bytes, without + (all ? 2 * mask : 0));
    }
}
END_TEST

/* Llama: each norm and each linear layer after it keeps what it is given, 4 x 2sbh whole; of attention q, k, v and what
 * the projection is given, of the gated layers both halves and their product, cut; no dropout, so the softmax alone. */
static const char *const llamas[] = {"llama2-7b",        "llama2-13b",           "llama2-70b",
                                     "llama3-8b",        "llama3-70b",           "llama3-405b",
                                     "llama3-405b-128k", "llama3-70b-12-layers", "maxtext-32b"};

START_TEST(llama_saves_what_its_layers_are_given)
{
    const double b = 3;
    open_shipped(llamas[_i], b, "unfused");
    const double s = number("seq"), h = number("hidden"), a = number("heads"), kv = number("kv_heads");
    const double ffn = number("ffn"), head = h / a;
    const struct dl_saved *const block = &model.layers[1].saved;
    ck_assert_close(block->outside_bytes, 8 * s * b * h);
    ck_assert_close(block->inside_bytes, 2 * s * b * (2 * a + 2 * kv) * head + 3 * 2 * s * b * ffn);
    ck_assert_close(block->scores_bytes, 2 * a * s * s * b);
}
END_TEST

/* Exact counts of the released checkpoints or of what is usually built from the paper. */
static const struct {
    const char *name;
    double parameters, tolerance;
} published[] = {
    {"gpt2-125m", 124439808, 0},
    {"gpt2-1.5b", 1557611200, 0},
    {"llama2-7b", 6738415616, 0},
    {"llama2-13b", 13015864320, 0},
    {"llama2-70b", 68976648192, 0},
    {"llama3-8b", 8030261248, 0},
    {"llama3-70b", 70553706496, 0},
    {"llama3-405b", 405853388800, 0},
    {"llama3-405b-128k", 405853388800, 0},
    {"llama-65b", 65.2e9, 0.002},
    {"smollm3-3b", 3075098624, 0},
    {"olmo2-7b", 7298617344, 5e-5}, /* norms of queries over all heads, not one */
    {"olmo2-13b", 13716198400, 5e-5},
    {"olmo2-32b", 32234279936, 5e-5},
    {"maxtext-v4-22b", 22e9, 0.01},
    {"maxtext-v4-52b", 52e9, 0.01},
    {"pythia-160m", 85056000 + 2.0 * 50304 * 768, 0}, /* Table 1 of arXiv 2304.01373, embedding and head apart */
    {"pythia-410m", 302311424 + 2.0 * 50304 * 1024, 0},
    {"pythia-1b", 805736448 + 2.0 * 50304 * 2048, 0},
    {"pythia-1.4b", 1208602624 + 2.0 * 50304 * 2048, 0},
    {"pythia-2.8b", 2517652480 + 2.0 * 50304 * 2560, 0},
    {"pythia-6.9b", 6444163072 + 2.0 * 50432 * 4096, 0},
    {"pythia-12b", 11327027200 + 2.0 * 50688 * 5120, 0},
    {"starcoder-15b", 15.5e9, 0.005},
    {"opt-175b", 175e9, 0.005},
    {"glm-130b", 130e9, 0.015},
    {"poro-34b", 34.2e9, 0.005},
    {"bloomberggpt-50b", 50.6e9, 0.002},
    {"gpt-28.3b", 28.3e9, 0.005},
    {"megascale-175b", 175e9, 0.005},
    {"megascale-530b", 530e9, 0.005},
    {"axonn-40b", 40e9, 0.03},
    {"axonn-160b", 160e9, 0.05},
    {"maxtext-32b", 32e9, 0.02},
    {"mpt-30b", 30e9, 0.005},
    {"forge-1.44b", 1.44e9, 0.005},
    {"mixtral-8x7b", 46702792704, 0},
    {"deepseek-v3", 671e9, 1e-3},
    {"deepseek-v3-mtp", 682.6e9, 1e-3}, /* with 14e9 of the module, of which 1.9e9 are the embedding and the head */
    {"kimi-k2", 1.04e12, 0.02},
    {"gpt-oss-120b", 116.8e9, 0.02},
    {"qwen3-30b-a3b", 30532122624, 0},
    {"qwen3-235b-a22b", 235093634560, 0},
    {"switch-base", 7.4e9, 0.01},
    {"bert-large", 336.2e6, 0.005}, /* without pooler and next-sentence head */
    {"vit-base-16", 86567656, 0},   /* torchvision.models.vit_b_16 */
    {"vit-large-16", 304326632, 0}, /* torchvision.models.vit_l_16 */
    {"lenet-5", 61706, 0},
    {"alexnet-2012", 60965224, 0},
    {"alexnet", 61100840, 0},  /* torchvision.models.alexnet */
    {"googlenet", 6624904, 0}, /* torchvision.models.googlenet(aux_logits=False) */
    {"vgg19", 143667240, 0},
    {"googlenet-2014", 6998552, 0},
    {"resnet50", 25557032, 0},
    {"resnet152", 60192808, 0},
    {"resnext50", 25028904, 0},       /* torchvision.models.resnext50_32x4d */
    {"resnext101", 83455272, 0},      /* torchvision.models.resnext101_64x4d */
    {"wide-resnet50", 68883240, 0},   /* torchvision.models.wide_resnet50_2 */
    {"wide-resnet101", 126886696, 0}, /* torchvision.models.wide_resnet101_2 */
    {"mixtral-1b", 1154081792, 0},    /* kernels/torch/decoders.py */
    {"t5-large", 783150080, 0},       /* transformers: T5ForConditionalGeneration of google/t5-v1_1-large */
    {"t5-xl", 2849757184, 0},
    {"t5-xxl", 11135332352, 0},
    {"densenet121", 7978856, 0},
    {"hep-15pf", 2.3 * 1048576 / 4, 0.02},        /* 2.3 MiB of fp32 */
    {"climate-15pf", 302.1 * 1048576 / 4, 0.001}, /* 302.1 MiB */
};

START_TEST(models_have_the_published_parameters)
{
    open_shipped(published[_i].name, 1, "flash");
    const double wanted = published[_i].parameters, got = dl_model_parameters(&model);
    ck_assert_msg(fabs(got - wanted) <= published[_i].tolerance * wanted, "%s: %.0f, published %.0f",
                  published[_i].name, got, wanted);
}
END_TEST

/* 10^9 multiply-adds of one forward, as tables of such networks have them. */
static const struct {
    const char *name;
    double multiply_adds;
} of_images[] = {
    {"alexnet-2012", 0.72},    {"vgg19", 19.6},         {"googlenet-2014", 1.58},
    {"resnet50", 4.09},        {"resnet152", 11.5},     {"densenet121", 2.83},
    {"vit-base-16", 17.56},    {"vit-large-16", 61.55}, /* GFLOPS of torchvision's models */
    {"resnext50", 4.23},       {"resnext101", 15.46},   {"wide-resnet50", 11.4},
    {"wide-resnet101", 22.75},
};

START_TEST(models_of_images_have_the_published_flop)
{
    open_shipped(of_images[_i].name, 1, "flash");
    ck_assert_double_eq_tol(forward_flop() / 2e9, of_images[_i].multiply_adds, 0.01 * of_images[_i].multiply_adds);
}
END_TEST

START_TEST(lenet_layers_are_those_of_the_paper)
{
    static const struct {
        const char *name;
        double parameters; /* LeCun et al. 1998, section II.B */
    } layers[] = {{"C1", 156}, {"C5", 48120}, {"F6", 10164}};
    open_shipped("lenet-5", 1, "flash");
    for (size_t i = 0; i < DL_COUNT(layers); i++) {
        size_t at = 0;
        while (at < model.n_layers && strcmp(model.layers[at].name, layers[i].name)) at++;
        ck_assert_uint_lt(at, model.n_layers);
        ck_assert_double_eq(dl_layer_parameters(&model.layers[at]), layers[i].parameters);
    }
}
END_TEST

/* CosmoFlow: cubes with a bias, filters doubled and sides halved five times from 128 on. Of 2, with zeros on both
 * sides, they are 129 each way. */
static const struct {
    const char *name;
    double window, more;
} volumes[] = {{"cosmoflow", 3, 0}, {"cosmoflow-0.7", 2, 1}};

START_TEST(volumes_have_the_parameters_and_flop_of_the_formula)
{
    const double window = pow(volumes[_i].window, 3), more = volumes[_i].more;
    double parameters = 0, multiply_adds = 0, channels = 4, side = 128;
    for (double filters = 32; filters <= 512; filters *= 2) {
        parameters += (window * channels + 1) * filters;
        multiply_adds += pow(side + more, 3) * window * channels * filters;
        channels = filters;
        side = floor((side + more) / 2);
    }
    const double widths[] = {channels * pow(side, 3), 128, 64, 4};
    for (size_t i = 1; i < DL_COUNT(widths); i++) {
        parameters += (widths[i - 1] + 1) * widths[i];
        multiply_adds += widths[i - 1] * widths[i];
    }
    open_shipped(volumes[_i].name, 3, "flash");
    ck_assert_double_eq(dl_model_parameters(&model), parameters);
    ck_assert_double_eq_tol(forward_flop() / 2, 3 * multiply_adds, 1e-9 * multiply_adds);
    ck_assert_double_eq(model.layers[0].saved.input_bytes, 3 * 2 * 4 * pow(128, 3));
    ck_assert_double_eq(model.layers[1].output_elements, 3 * 32 * pow(64, 3));
}
END_TEST

/* Every voxel is read once, however many cubes hold it. */
START_TEST(a_voxel_in_several_cubes_is_moved_once)
{
    open_shipped("cosmoflow-0.7", 1, "flash");
    const struct dl_kernel *const k = &model.layers[2].forward[0].kernel; /* the second convolution */
    ck_assert_double_eq_tol(k->window * k->window, 8, 1e-9);
    ck_assert_double_eq_tol(k->k / (k->window * k->window), 32, 1e-9);
    ck_assert_double_eq(k->m, pow(65, 3));
}
END_TEST

START_TEST(deconvolutions_undo_convolutions)
{
    open_shipped("climate-15pf", 2, "flash");
    ck_assert_double_eq(model.layers[model.n_layers - 1].output_elements, 2 * 16 * 768 * 768);
    ck_assert_double_eq(model.layers[0].saved.input_bytes, 2 * 2 * 16 * 768 * 768);
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("workloads");
    TCase *const all = tcase_create("workloads");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, gpt_has_the_parameters_of_the_formula, 0, DL_COUNT(gpts));
    tcase_add_loop_test(all, gpt_has_the_flop_of_the_formula, 0, DL_COUNT(gpts));
    tcase_add_loop_test(all, gpt_saves_the_bytes_of_the_formulas, 0, DL_COUNT(gpts));
    tcase_add_test(all, a_relu_keeps_its_result_alone);
    tcase_add_test(all, tied_head_has_no_parameters_of_its_own);
    tcase_add_loop_test(all, vit_has_the_parameters_and_flop_of_the_formula, 0, DL_COUNT(vits));
    tcase_add_test(all, biases_of_queries_keys_and_values_are_counted);
    tcase_add_test(all, scores_and_residuals_may_differ_in_dropout);
    tcase_add_loop_test(all, llama_saves_what_its_layers_are_given, 0, DL_COUNT(llamas));
    tcase_add_loop_test(all, models_have_the_published_parameters, 0, DL_COUNT(published));
    tcase_add_loop_test(all, models_of_images_have_the_published_flop, 0, DL_COUNT(of_images));
    tcase_add_loop_test(all, volumes_have_the_parameters_and_flop_of_the_formula, 0, DL_COUNT(volumes));
    tcase_add_test(all, a_voxel_in_several_cubes_is_moved_once);
    tcase_add_test(all, lenet_layers_are_those_of_the_paper);
    tcase_add_test(all, deconvolutions_undo_convolutions);
    suite_add_tcase(suite, all);
    return run_without_forking(suite);
}
