/* Errors: the first one wins, they are one line, and misspelt words find their neighbour. */
#include <check.h>
#include <string.h>

#include "sim/core/error.h"
#include "tests/unit/suite.h"

START_TEST(an_error_is_place_and_message)
{
    struct dl_error err = {0};
    ck_assert_int_eq(dl_fail(&err, DL_RANGE, "a.json:/nodes", "must be at least %d", 1), DL_RANGE);
    ck_assert_str_eq(err.text, "a.json:/nodes: must be at least 1");
}
END_TEST

START_TEST(an_error_without_place_is_the_message_alone)
{
    struct dl_error err = {0};
    dl_fail(&err, DL_SYNTAX, NULL, "no command is given");
    ck_assert_str_eq(err.text, "no command is given");
}
END_TEST

START_TEST(the_first_error_wins)
{
    struct dl_error err = {0};
    dl_fail(&err, DL_KEY, "first", "one");
    ck_assert_int_eq(dl_fail(&err, DL_TYPE, "second", "two"), DL_KEY);
    ck_assert_str_eq(err.text, "first: one");
}
END_TEST

START_TEST(control_characters_cannot_break_the_line)
{
    struct dl_error err = {0};
    dl_fail(&err, DL_KEY, "a\nb", "c\r\x1b[31md\x7f");
    ck_assert_str_eq(err.text, "a?b: c??[31md?");
}
END_TEST

START_TEST(a_long_message_is_cut_not_overrun)
{
    struct dl_error err = {0};
    char word[2000];
    memset(word, 'x', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    dl_fail(&err, DL_KEY, "here", "%s", word);
    ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
    ck_assert_int_eq(strncmp(err.text, "here: xxx", 9), 0);
}
END_TEST

START_TEST(a_long_place_leaves_room_for_the_message)
{
    struct dl_error err = {0};
    char place[2000];
    memset(place, 'p', sizeof place - 1);
    place[sizeof place - 1] = '\0';
    dl_fail(&err, DL_KEY, place, "is wrong");
    ck_assert_ptr_nonnull(strstr(err.text, "ppp: is wrong"));
}
END_TEST

static const char *const keys[] = {"bandwidth_bytes_per_s", "latency_s", "devices", "lanes", "link"};

START_TEST(nearest_undoes_one_slip_of_any_kind)
{
    ck_assert_str_eq(dl_nearest("latency_s", keys, DL_COUNT(keys)), "latency_s");
    ck_assert_str_eq(dl_nearest("latencys", keys, DL_COUNT(keys)), "latency_s");   /* left out */
    ck_assert_str_eq(dl_nearest("latenccy_s", keys, DL_COUNT(keys)), "latency_s"); /* added */
    ck_assert_str_eq(dl_nearest("ladency_s", keys, DL_COUNT(keys)), "latency_s");  /* exchanged */
    ck_assert_str_eq(dl_nearest("latnecy_s", keys, DL_COUNT(keys)), "latency_s");  /* swapped */
    ck_assert_str_eq(dl_nearest("device", keys, DL_COUNT(keys)), "devices");
    ck_assert_str_eq(dl_nearest("lane", keys, DL_COUNT(keys)), "lanes");
}
END_TEST

START_TEST(nearest_forgives_case_and_what_is_left_out_at_the_end)
{
    const char *const names[] = {"nccl", "pytorch-eager", "pytorch-ddp"};
    ck_assert_str_eq(dl_nearest("NCCL", names, DL_COUNT(names)), "nccl");
    ck_assert_str_eq(dl_nearest("PyTorch", names, DL_COUNT(names)), "pytorch-eager");
    ck_assert_ptr_null(dl_nearest("py", names, DL_COUNT(names)));
}
END_TEST

START_TEST(a_hint_names_the_nearest_or_all)
{
    char hint[DL_HINT];
    const char *const names[] = {"data", "tensor"};
    ck_assert_str_eq(dl_hint("tensors", names, 2, hint), ", did you mean 'tensor'?");
    ck_assert_str_eq(dl_hint("fsdp", names, 2, hint), "; there are data, tensor");
    ck_assert_str_eq(dl_hint("fsdp", names, 0, hint), "");
    const char *many[200];
    for (size_t i = 0; i < DL_COUNT(many); i++) many[i] = "something";
    ck_assert_uint_lt(strlen(dl_hint("else", many, DL_COUNT(many), hint)), DL_HINT);
}
END_TEST

START_TEST(nearest_offers_nothing_far_fetched)
{
    const char *const options[] = {"topo", "op", "bytes"};
    ck_assert_ptr_null(dl_nearest("colour", keys, DL_COUNT(keys)));
    ck_assert_ptr_null(dl_nearest("colour", options, DL_COUNT(options)));
    ck_assert_ptr_null(dl_nearest("lanes", keys, 0));
    char word[200];
    memset(word, 'l', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    ck_assert_ptr_null(dl_nearest(word, keys, DL_COUNT(keys)));
}
END_TEST

START_TEST(nearest_prefers_the_earlier_of_equals)
{
    const char *const twins[] = {"abcx", "abcy"};
    ck_assert_str_eq(dl_nearest("abcz", twins, 2), "abcx");
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("error");
    tcase_add_test(tests, an_error_is_place_and_message);
    tcase_add_test(tests, an_error_without_place_is_the_message_alone);
    tcase_add_test(tests, the_first_error_wins);
    tcase_add_test(tests, control_characters_cannot_break_the_line);
    tcase_add_test(tests, a_long_message_is_cut_not_overrun);
    tcase_add_test(tests, a_long_place_leaves_room_for_the_message);
    tcase_add_test(tests, nearest_undoes_one_slip_of_any_kind);
    tcase_add_test(tests, nearest_forgives_case_and_what_is_left_out_at_the_end);
    tcase_add_test(tests, a_hint_names_the_nearest_or_all);
    tcase_add_test(tests, nearest_offers_nothing_far_fetched);
    tcase_add_test(tests, nearest_prefers_the_earlier_of_equals);
    Suite *const suite = suite_create("error");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
