/* Fingerprints: SHA-256 by the vectors of its standard; what counts as the same input and what does not. */
#include <check.h>
#include <string.h>

#include "sim/core/fingerprint.h"
#include "sim/core/memory.h"
#include "tests/unit/suite.h"

/* NIST, FIPS 180-4 examples and the test vectors of its Cryptographic Algorithm Validation Program. */
static const struct {
    const char *text;
    size_t times;
    const char *hex;
} vectors[] = {
    {"", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
     1, "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    {"a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
};

START_TEST(sha256_is_that_of_the_standard)
{
    struct dl_sha256 h;
    char hex[DL_SHA256_HEX];
    dl_sha256_init(&h);
    for (size_t i = 0; i < vectors[_i].times; i++) dl_sha256_add(&h, vectors[_i].text, strlen(vectors[_i].text));
    dl_sha256_end(&h, hex);
    ck_assert_str_eq(hex, vectors[_i].hex);
}
END_TEST

/* Lengths around the end of a block, where the padding is another. */
START_TEST(pieces_do_not_count)
{
    char text[200], whole[DL_SHA256_HEX], pieces[DL_SHA256_HEX];
    struct dl_sha256 h;
    memset(text, 'x', sizeof text);
    for (size_t n = 0; n < sizeof text; n++) {
        dl_sha256_init(&h);
        dl_sha256_add(&h, text, n);
        dl_sha256_end(&h, whole);
        dl_sha256_init(&h);
        for (size_t i = 0; i < n; i++) dl_sha256_add(&h, text + i, 1);
        dl_sha256_end(&h, pieces);
        ck_assert_str_eq(whole, pieces);
    }
}
END_TEST

static const char *const names[] = {"workload", "node.device", NULL};

static const char *of(const char *text)
{
    static char hex[4][DL_SHA256_HEX];
    static size_t next;
    char *const out = hex[next++ % DL_COUNT(hex)];
    struct dl_fingerprint f;
    json_t *const doc = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(doc);
    dl_fingerprint_begin(&f);
    dl_fingerprint_document(&f, "strategy", doc, names);
    dl_fingerprint_end(&f, out);
    json_decref(doc);
    return out;
}

START_TEST(layout_order_and_names_of_files_do_not_count)
{
    const char *const one =
        of("{\"a\": 1, \"b\": [1, 2.5], \"workload\": \"x\", \"node\": {\"device\": \"d\", \"n\": 1}}");
    ck_assert_str_eq(
        one, of("{\"b\":[1,2.5],\"node\":{\"n\":1,\"device\":\"./d.json\"},\"workload\":\"./x.json\",\"a\":1}"));
    ck_assert_str_eq(one, of("{\"a\":1,\"b\":[1,2.5],\"node\":{\"n\":1}}"));
}
END_TEST

static const char *const others[] = {"{\"a\":1,\"b\":[1,2.5],\"node\":{\"n\":2}}",
                                     "{\"a\":1,\"b\":[2.5,1],\"node\":{\"n\":1}}",
                                     "{\"a\":1,\"b\":[1,2.5000000000000004],\"node\":{\"n\":1}}",
                                     "{\"a\":1,\"b\":[1,2.5]}", "{\"a\":\"1\",\"b\":[1,2.5],\"node\":{\"n\":1}}"};

START_TEST(values_count) { ck_assert_str_ne(of(others[_i]), of("{\"a\":1,\"b\":[1,2.5],\"node\":{\"n\":1}}")); }
END_TEST

static void texts(const char *const (*pairs)[2], size_t n, char hex[DL_SHA256_HEX])
{
    struct dl_fingerprint f;
    dl_fingerprint_begin(&f);
    for (size_t i = 0; i < n; i++) dl_fingerprint_text(&f, pairs[i][0], pairs[i][1]);
    dl_fingerprint_end(&f, hex);
}

START_TEST(what_is_what_counts)
{
    static const char *const lists[][2][2] = {{{"a", "b"}, {"c", "d"}},    {{"a", "bc"}, {"", "d"}},
                                              {{"a", "d"}, {"c", "b"}},    {{"a", NULL}, {"c", "d"}},
                                              {{"a", "none"}, {"c", "d"}}, {{"a", ""}, {"c", "d"}}};
    char hex[DL_COUNT(lists)][DL_SHA256_HEX];
    for (size_t i = 0; i < DL_COUNT(lists); i++) {
        texts(lists[i], 2, hex[i]);
        for (size_t j = 0; j < i; j++) ck_assert_str_ne(hex[i], hex[j]);
    }
}
END_TEST

int main(void)
{
    Suite *const suite = suite_create("fingerprint");
    TCase *const tests = tcase_create("fingerprint");
    tcase_add_loop_test(tests, sha256_is_that_of_the_standard, 0, DL_COUNT(vectors));
    tcase_add_test(tests, pieces_do_not_count);
    tcase_add_test(tests, layout_order_and_names_of_files_do_not_count);
    tcase_add_loop_test(tests, values_count, 0, DL_COUNT(others));
    tcase_add_test(tests, what_is_what_counts);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
