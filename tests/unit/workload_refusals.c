/* workload_refusals.c - what builders of workloads refuse, and where they say it is. */
#include "tests/unit/workload_fixture.h"

#define CONVNET(layers)                                                                                                \
    "{'schema':'dlsim/workload/1','source':'a test','kind':'convnet','input':[3,8,8],'layers':[" layers "]}"
#define CONV "{'kind':'conv','filters':4,'window':3}"

static const struct {
    const char *text, *message;
} bad[] = {
    {"{'schema':'dlsim/workload/1','source':'a test'}", "test.json: needs the key 'kind'"},
    {"{'schema':'dlsim/workload/1','source':'a test','kind':'gpt'}",
     "test.json:/kind: must be one of transformer, convnet, mlp, got 'gpt'"},
    {"{" SMALL ",'layer':3}", "test.json:/layer: unknown key, did you mean 'layers'?"},
    {"{" SMALL ",'kv_heads':3}", "test.json:/kv_heads: must divide heads, 4, got 3"},
    {"{" SMALL ",'ffn':0}", "test.json:/ffn: must be in [1, 16777216], got 0"},
    {"{" SMALL ",'norm':'batchnorm'}", "test.json:/norm: must be one of layernorm, rmsnorm, got 'batchnorm'"},
    {"{" SMALL ",'top_k':2}", "test.json:/top_k: means nothing without the key 'experts'"},
    {"{" SMALL ",'experts':8}", "test.json:/experts: means nothing without the key 'top_k'"},
    {"{" SMALL ",'experts':8,'top_k':9}", "test.json:/top_k: must be at most experts, 8, got 9"},
    {"{" SMALL "," EXPERTS ",'dense_layers':5}", "test.json:/dense_layers: must be at most layers, 4, got 5"},
    {"{" SMALL "," EXPERTS ",'capacity_factor':0.5}", "test.json:/capacity_factor: must be in [1, 16777216], got 0.5"},
    {"{" SMALL ",'kv_rank':16,'qk_norm':true}",
     "test.json:/qk_norm: means nothing beside 'kv_rank': latent attention has norms of its own"},
    {"{" SMALL ",'kv_rank':16,'kv_heads':2}",
     "test.json:/kv_heads: means nothing beside 'kv_rank': latent attention has none"},
    {"{'schema':'dlsim/workload/1','source':'a test','kind':'transformer','layers':4,'hidden':64,'heads':5,'seq':32,"
     "'vocab':100}",
     "test.json:/heads: 5 heads do not divide hidden, 64; or give head_size"},
    {"{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[10]}",
     "test.json:/widths: must be at least that of the input and of the output"},
    {"{'schema':'dlsim/workload/1','source':'a test','kind':'convnet','input':[3,8],'layers':[]}",
     "test.json:/input: must be [channels, height, width] or [channels, depth, height, width]"},
    {CONVNET(""), "test.json:/layers: has no conv or fc, so there is nothing to train"},
    {CONVNET("3"), "test.json:/layers/0: must be an object with a \"kind\""},
    {CONVNET("{'filters':3}"), "test.json:/layers/0: needs the key 'kind'"},
    {CONVNET("{'kind':'cnv'}"), "test.json:/layers/0/kind: unknown element 'cnv', did you mean 'conv'?"},
    {CONVNET("{'kind':'conv','filters':4}"), "test.json:/layers/0: needs the key 'window'"},
    {CONVNET("{'kind':'fc','outputs':4,'momentum':3}"), "test.json:/layers/0/momentum: unknown key; known here: kind, "
                                                        "name, outputs, bias, batchnorm, relu, leaky_relu, relu6"},
    {CONVNET(CONV ",{'kind':'pool','window':9}"),
     "test.json:/layers/1: a window of 9 with pad 0 and stride 1 does not fit on 6 x 6"},
    {CONVNET("{'kind':'conv','filters':4,'window':3,'groups':2}"),
     "test.json:/layers/0: 2 groups do not divide 3 channels and 4 filters"},
    {CONVNET("{'kind':'add','branches':[[]]}"), "test.json:/layers/0/branches: must be at least two lists of elements"},
    {CONVNET("{'kind':'add','branches':[[],[" CONV "]]}"),
     "test.json:/layers/0/branches/1: ends with 4 x 6 x 6, the first branch with 3 x 8 x 8"},
    {CONVNET("{'kind':'concat','branches':[[],3]}"), "test.json:/layers/0/branches/1: must be a list of elements"},
    {CONVNET("{'kind':'repeat','times':60,'layers':[{'kind':'concat','branches':[[],[]]}]}"),
     "test.json:/layers/0/layers/0: makes 2.51658e+07 x 8 x 8, which is more than 1.67772e+07 in one direction"},
    {CONVNET(CONV ",{'kind':'repeat','times':60,'layers':[{'kind':'concat','keeps_parts':true,'branches':[[],[]]}]}"),
     "test.json:/layers/1/layers/0: with all repeats there are more than 100000 elements"},
    {CONVNET(CONV ",{'kind':'cross_entropy'},{'kind':'relu'}"),
     "test.json:/layers/2: comes after the loss; nothing can follow it"},
    {CONVNET(CONV ",{'kind':'add','branches':[[],[{'kind':'cross_entropy'}]]}"),
     "test.json:/layers/1/branches/1: ends in a loss; what leads to one is a \"side\""},
    {"{'schema':'dlsim/workload/1','source':'a test','kind':'mlp','widths':[10,20],'loss':'mse'}",
     "test.json:/loss: must be one of none, cross_entropy, got 'mse'"},
    {CONVNET("{'kind':'repeat','times':999,'layers':[{'kind':'repeat','times':999,'layers':[{'kind':'relu'}]}]}"),
     "test.json:/layers/0/layers/0/layers/0: with all repeats there are more than 100000 elements"},
};

START_TEST(bad_workloads_are_refused_with_the_key)
{
    open_text(bad[_i].text);
    ck_assert_int_ne(dl_workload_read(f.doc, 1, (struct dl_model_code){.attention = "flash"}, f.arena, &model, &f.err),
                     DL_OK);
    ck_assert_str_eq(f.err.text, bad[_i].message);
}
END_TEST

START_TEST(unknown_attention_is_refused)
{
    open_text("{" SMALL "}");
    ck_assert_int_ne(dl_workload_read(f.doc, 1, (struct dl_model_code){.attention = "fast"}, f.arena, &model, &f.err),
                     DL_OK);
    ck_assert_str_eq(f.err.text, "attention: must be one of unfused, flash, got 'fast'");
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("workload_refusals");
    TCase *const all = tcase_create("workload_refusals");
    tcase_add_checked_fixture(all, set_up, tear_down);
    tcase_add_loop_test(all, bad_workloads_are_refused_with_the_key, 0, DL_COUNT(bad));
    tcase_add_test(all, unknown_attention_is_refused);
    suite_add_tcase(suite, all);
    return run_without_forking(suite);
}
