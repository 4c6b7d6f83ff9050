/* Text that terminals show and do not obey. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/core/json.h"
#include "sim/core/visible.h"
#include "tests/unit/suite.h"

#define ESC "\033"
#define CSI "\xc2\x9b"          /* U+009B */
#define OVERRIDE "\xe2\x80\xae" /* U+202E */
#define ISOLATE "\xe2\x81\xa7"  /* U+2067 */
#define E_ACUTE "\xc3\xa9"      /* U+00E9 */
#define CLEF "\xf0\x9d\x84\x9e" /* U+1D11E */

START_TEST(hidden_characters_become_question_marks_and_others_stay)
{
    static const char *const cases[][2] = {
        {"plain", "plain"},
        {"a" ESC "[31mb\tc\n", "a?[31mb?c?"},
        {"a" CSI "2Jb", "a?2Jb"},
        {"a\x9b"
         "2J",
         "a?2J"}, /* of Latin-1 */
        {"x" OVERRIDE "y" ISOLATE "z\x7f", "x?y?z?"},
        {E_ACUTE CLEF, E_ACUTE CLEF},
        {"cut\xe2\x80", "cut?"},
        {"\xc0\x9b \xe0\x82\x9b", "?? ???"}, /* longer forms of U+001B and U+009B */
        {"\xed\xa0\x80", "???"},             /* half of a pair */
        {"\xf5\x80\x80\x80", "????"},
    };
    for (size_t i = 0; i < DL_COUNT(cases); i++) {
        char text[40];
        strcpy(text, cases[i][0]);
        dl_make_visible(text);
        ck_assert_str_eq(text, cases[i][1]);
    }
}
END_TEST

/* The definition of UTF-8 backwards: each code has one form, of which no beginning is a character. */
START_TEST(every_character_is_read_as_it_is_written)
{
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        char text[5];
        size_t n = 0;
        uint32_t code;
        if (c >= 0xD800 && c <= 0xDFFF) continue;
        if (c < 0x80) {
            text[n++] = (char)c;
        } else {
            const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
            text[n++] = (char)(0xFF << (7 - more) | c >> (6 * more));
            for (int i = more - 1; i >= 0; i--) text[n++] = (char)(0x80 | ((c >> (6 * i)) & 0x3F));
        }
        bool is_right = dl_character(text, n, &code) == n && code == c;
        for (size_t part = 1; part < n; part++) is_right &= dl_character(text, part, &code) == 0;
        if (!is_right) ck_abort_msg("U+%04X is read as U+%04X", c, code); /* a million asserts would take minutes */
    }
}
END_TEST

START_TEST(json_keeps_what_it_hides)
{
    char folder[] = "/tmp/dlsim-visible-XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    char file[60], text[200] = "";
    snprintf(file, sizeof file, "%s/out.json", folder);
    struct dl_error err = {0};
    static const char name[] = ESC CSI OVERRIDE "\x7f" E_ACUTE "\n";
    ck_assert_int_eq(dl_write_json(file, dl_json_pack("{s:s}", "name", name), &err), DL_OK);
    FILE *const in = fopen(file, "r");
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    ck_assert_str_eq(text, "{\n  \"name\": \"\\u001B\\u009B\\u202E\\u007F" E_ACUTE "\\n\"\n}\n");
    json_t *const back = json_loads(text, 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(back, "name")), name);
    json_decref(back);
    remove(file);
    remove(folder);
}
END_TEST

/* Byte by byte, as a full buffer may cut it; and at once, longer than the buffer. */
START_TEST(streams_show_only_text)
{
    static const char printed[] = "a\r\nb\rc" CSI "d" E_ACUTE ESC "\te\x9b\n", shown[] = "a\r\nb?c?d" E_ACUTE "?\te?\n";
    enum { n_times = 5000 };
    FILE *const file = tmpfile();
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        dup2(fileno(file), STDOUT_FILENO);
        dl_show_only_text();
        if (_i) setvbuf(stdout, NULL, _IONBF, 0);
        for (int i = 0; i < n_times; i++)
            for (size_t k = 0; printed[k]; k++) putchar(printed[k]);
        _exit(fflush(stdout) ? 1 : 0);
    }
    int status;
    waitpid(child, &status, 0);
    ck_assert_int_eq(status, 0);
    rewind(file);
    for (int i = 0; i < n_times; i++) {
        char got[sizeof shown] = "";
        ck_assert_uint_eq(fread(got, 1, sizeof shown - 1, file), sizeof shown - 1);
        ck_assert_str_eq(got, shown);
    }
    ck_assert_int_eq(fgetc(file), EOF);
    fclose(file);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("visible");
    tcase_add_test(tests, hidden_characters_become_question_marks_and_others_stay);
    tcase_add_test(tests, every_character_is_read_as_it_is_written);
    tcase_add_test(tests, json_keeps_what_it_hides);
    tcase_add_loop_test(tests, streams_show_only_text, 0, 2);
    Suite *const suite = suite_create("visible");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
