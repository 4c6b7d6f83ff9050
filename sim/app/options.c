#define _GNU_SOURCE /* getopt_long */
#include "sim/app/options.h"

#include <assert.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/output.h"
#include "sim/core/planned.h"

enum { max_options = 64 };

static bool is_unit(const char *text, double *factor)
{
    static const struct {
        const char *name;
        double factor;
    } units[] = {{"", 1},    {"k", 1e3},     {"M", 1e6},     {"G", 1e9},     {"T", 1e12},
                 {"K", 1e3}, {"Ki", 1024.0}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}};
    char stripped[8];
    const size_t length = strlen(text);
    if (length >= sizeof stripped) return false;
    strcpy(stripped, text);
    if (length && stripped[length - 1] == 'B') stripped[length - 1] = '\0';
    for (size_t i = 0; i < DL_COUNT(units); i++) {
        if (strcmp(units[i].name, stripped)) continue;
        *factor = units[i].factor;
        return true;
    }
    return false;
}

static enum dl_status read_number(const struct dl_option *o, const char *text, bool units, double *out,
                                  struct dl_error *err)
{
    char where[64], *end;
    double factor = 1;
    snprintf(where, sizeof where, "--%s", o->name);
    const double x = strtod(text, &end);
    const bool has_digits = strpbrk(text, "0123456789") && !strpbrk(text, "xXpPnN"); /* no nan, inf or hexadecimal */
    if (end == text || !has_digits || (units ? !is_unit(end, &factor) : *end != '\0'))
        return dl_fail(err, DL_SYNTAX, where, "must be a number%s, got '%.60s'",
                       units ? " such as 1e9, 64Mi or 2G" : "", text);
    *out = x * factor;
    if (!(*out >= o->min && *out <= o->max))
        return dl_fail(err, DL_RANGE, where, "must be in [%.15g, %.15g], got '%.60s'", o->min, o->max, text);
    return DL_OK;
}

static enum dl_status read_count(const struct dl_option *o, const char *text, uint64_t *out, struct dl_error *err)
{
    double x;
    if (read_number(o, text, false, &x, err)) return err->status;
    if (x != floor(x)) return dl_fail(err, DL_RANGE, NULL, "--%s: must be a whole number, got '%.60s'", o->name, text);
    *out = (uint64_t)x;
    return DL_OK;
}

enum { max_range_words = 3, range_word = 32 };

/* The words between colons; how many, 0: too many, or one is too long. */
static size_t split_range(const char *text, char words[max_range_words][range_word])
{
    for (size_t n = 0; n < max_range_words; n++) {
        const size_t length = strcspn(text, ":");
        if (length >= range_word) return 0;
        memcpy(words[n], text, length);
        words[n][length] = '\0';
        if (!text[length]) return n + 1;
        text += length + 1;
    }
    return 0;
}

static enum dl_status read_sizes(const struct dl_option *o, const char *text, struct dl_sizes_range *out,
                                 struct dl_error *err)
{
    const struct dl_option count = {.name = o->name, .min = 2, .max = 1000};
    char words[max_range_words][range_word];
    const size_t n_words = split_range(text, words);
    if (n_words < 2)
        return dl_fail(err, DL_SYNTAX, NULL,
                       "--%s: must be FROM:TO or FROM:TO:N, such as 1e3:1e9 or 1k:1G:13, got '%.60s'", o->name, text);
    if (read_number(o, words[0], true, &out->from, err) || read_number(o, words[1], true, &out->to, err) ||
        (n_words == max_range_words && read_count(&count, words[2], &out->n, err)))
        return err->status;
    if (out->from < out->to) return DL_OK;
    return dl_fail(err, DL_RANGE, NULL, "--%s: must go from a smaller size to a larger one, got '%.60s'", o->name,
                   text);
}

static enum dl_status read_choice(const struct dl_option *o, const char *text, const char **out, struct dl_error *err)
{
    char all[256] = "";
    for (size_t i = 0; o->choices[i]; i++) {
        if (strcmp(o->choices[i], text) == 0) {
            *out = o->choices[i];
            return DL_OK;
        }
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", o->choices[i]);
    }
    return dl_fail(err, DL_RANGE, NULL, "--%s: must be one of %s, got '%.60s'", o->name, all, text);
}

static enum dl_status read_text(const struct dl_option *o, const char *text, const char **out, struct dl_error *err)
{
    if (!*text) return dl_fail(err, DL_SYNTAX, NULL, "--%s: must not be empty", o->name);
    *out = text;
    return DL_OK;
}

static enum dl_status read_output(const struct dl_option *o, const char *text, const char **out, struct dl_error *err)
{
    if (read_text(o, text, out, err)) return err->status;
    return dl_plan_output(text, o->name, err);
}

static enum dl_status read_option(const struct dl_option *o, const char *text, void *out, struct dl_error *err)
{
    void *const place = (char *)out + o->offset;
    switch (o->type) {
    case DL_OPT_TEXT: return read_text(o, text, place, err);
    case DL_OPT_OUTPUT: return read_output(o, text, place, err);
    case DL_OPT_COUNT: return read_count(o, text, place, err);
    case DL_OPT_NUMBER: return read_number(o, text, false, place, err);
    case DL_OPT_BYTES: return read_number(o, text, true, place, err);
    case DL_OPT_SIZES: return read_sizes(o, text, place, err);
    case DL_OPT_CHOICE: return read_choice(o, text, place, err);
    case DL_OPT_FLAG: *(bool *)place = true; return DL_OK;
    case DL_OPT_TEXTS: {
        struct dl_texts *const texts = place;
        if (texts->n == DL_MAX_TEXTS)
            return dl_fail(err, DL_RANGE, NULL, "--%s: more than %zu of them", o->name, texts->n);
        texts->items[texts->n++] = text;
        return DL_OK;
    }
    }
    return DL_OK;
}

static enum dl_status unknown_option(const char *word, const struct dl_option *options, size_t n, struct dl_error *err)
{
    const char *names[max_options];
    for (size_t i = 0; i < n; i++) names[i] = options[i].name;
    const char *const nearest = dl_nearest(word + strspn(word, "-"), names, n);
    if (nearest) return dl_fail(err, DL_SYNTAX, word, "unknown option, did you mean '--%s'?", nearest);
    return dl_fail(err, DL_SYNTAX, word, "unknown option");
}

static enum dl_status read_words(int argc, char **argv, struct dl_texts *words, struct dl_error *err)
{
    for (int i = optind; i < argc; i++) {
        if (!words) return dl_fail(err, DL_SYNTAX, argv[i], "is no option; options begin with --");
        if (words->n == DL_MAX_TEXTS) return dl_fail(err, DL_RANGE, argv[i], "more than %zu words", words->n);
        words->items[words->n++] = argv[i];
    }
    return DL_OK;
}

/* getopt_long takes the next option for the value that was forgotten. */
static bool lacks_value(char *const *argv) { return argv[optind - 1] == optarg && strncmp(optarg, "--", 2) == 0; }

/* getopt_long takes any beginning of a name that is the only one, which would break scripts when an option is added. */
static bool is_abbreviated(char *const *argv, const char *name)
{
    const char *const last = argv[optind - 1];
    const char *const word = last == optarg ? argv[optind - 2] : last;
    const size_t length = strlen(name);
    return strncmp(word, "--", 2) || strncmp(word + 2, name, length) || (word[2 + length] && word[2 + length] != '=');
}

enum dl_status dl_read_options(int argc, char **argv, const struct dl_option *options, size_t n_options, void *out,
                               struct dl_texts *words, struct dl_error *err)
{
    struct option table[max_options + 1] = {0};
    bool given[max_options] = {false};
    for (size_t i = 0; i < n_options; i++)
        table[i] = (struct option){options[i].name, options[i].type == DL_OPT_FLAG ? no_argument : required_argument,
                                   NULL, (int)i};
    optind = 0;
    for (;;) {
        const int word = optind ? optind : 1;
        const int which = getopt_long(argc, argv, ":", table, NULL);
        if (which == -1) break;
        if (which == ':') return dl_fail(err, DL_SYNTAX, argv[optind - 1], "needs a value");
        if (which == '?') return unknown_option(argv[word], options, n_options, err);
        if (is_abbreviated(argv, options[which].name))
            return dl_fail(err, DL_SYNTAX, argv[word], "write the option in full: --%s", options[which].name);
        if (lacks_value(argv)) return dl_fail(err, DL_SYNTAX, NULL, "--%s: needs a value", options[which].name);
        if (given[which] && options[which].type != DL_OPT_TEXTS)
            return dl_fail(err, DL_SYNTAX, NULL, "--%s: is given twice", options[which].name);
        given[which] = true;
        if (read_option(&options[which], optarg, out, err)) return err->status;
    }
    for (size_t i = 0; i < n_options; i++)
        if (options[i].required && !given[i])
            return dl_fail(err, DL_SYNTAX, argv[0], "needs the option --%s", options[i].name);
    return read_words(argc, argv, words, err);
}

void dl_lengthen_output(int argc, char **argv)
{
    static char output[] = "--output";
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "-o") == 0) argv[i] = output;
}

const char *dl_option_call(const struct dl_option *o, char text[DL_OPTION_CALL])
{
    static const char *const values[] = {
        [DL_OPT_TEXT] = " NAME",       [DL_OPT_OUTPUT] = " FILE", [DL_OPT_COUNT] = " N",
        [DL_OPT_NUMBER] = " X",        [DL_OPT_BYTES] = " N",     [DL_OPT_FLAG] = "",
        [DL_OPT_TEXTS] = " PATH=JSON", [DL_OPT_CHOICE] = " ",     [DL_OPT_SIZES] = " FROM:TO[:N]",
    };
    size_t used = (size_t)snprintf(text, DL_OPTION_CALL, "--%s%s", o->name, values[o->type]);
    for (size_t i = 0; o->type == DL_OPT_CHOICE && o->choices[i] && used < DL_OPTION_CALL; i++)
        used += (size_t)snprintf(text + used, DL_OPTION_CALL - used, "%s%s", i ? "|" : "", o->choices[i]);
    assert(used < DL_OPTION_CALL);
    return text;
}

bool dl_helped(int argc, char **argv, const char *usage, const struct dl_option *options, size_t n_options)
{
    bool is_asked = false;
    for (int i = 1; i < argc; i++) is_asked = is_asked || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    if (!is_asked) return false;
    puts(usage);
    for (size_t i = 0; i < n_options; i++) {
        char call[DL_OPTION_CALL];
        printf("  %s%s\n", dl_option_call(&options[i], call), options[i].required ? "  (required)" : "");
        printf("      %s\n", options[i].doc);
    }
    return true;
}

bool dl_tells_text(const char *json) { return !json || !dl_is_same_file(json, "-"); }
