#include "kernels/profile_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a call is for. */
enum task { WRITE = 1, PRINT = 2, CHECK = 4, SUMMARY = 8, SPLIT = 16, ALL = 31, LIST = 32 };
enum kind { FLAG, TEXT, NUMBER, SIZES, SHARE };
static const struct {
    const char *name;
    enum kind kind;
    size_t at;
    unsigned tasks; /* that it belongs to */
    double min, max;
    const char *value, *doc;
} options[] = {
#define AT(member) offsetof(struct dl_profile_options, member)
    {"--device", TEXT, AT(device), ALL | LIST, 0, 0, " NAME", "cpu or cuda; cpu if absent, of --list all"},
    {"-o", TEXT, AT(output), WRITE, 0, 0, " FILE",
     "the device file to write, a new one; FILE.journal beside it keeps what is done"},
    {"--into", TEXT, AT(into), WRITE, 0, 0, " FILE", "take all but the times from this device file"},
    {"--only", TEXT, AT(only), PRINT | CHECK | SUMMARY, 0, 0, " KERNEL",
     "check or time only this kernel, in all implementations, and print the times"},
    {"--precisions", TEXT, AT(precision), ALL & ~SPLIT, 0, 0, " NAME,...", "only these of fp32, tf32, bf16, fp16, fp8"},
    {"--time-limit", NUMBER, AT(time_limit_s), WRITE | PRINT, 1e-3, 1e7, " SECONDS",
     "then stop; with -o the same call again resumes"},
    {"--share", SHARE, AT(share), WRITE | PRINT, 0, 0, " K/N",
     "time every N-th shape from the K-th, beside N-1 others; the journal stays, joined they are that of one call"},
    {"--spread", NUMBER, AT(spread), ALL & ~CHECK, 1e-4, 1, " X",
     "repeat until the median is known to this fraction; 0.01 if absent"},
    {"--check", FLAG, AT(checks_only), CHECK, 0, 0, "", "check all kernels against their references, time nothing"},
    {"--summary", FLAG, AT(is_summary), SUMMARY, 0, 0, "", "what every kernel reaches at large sizes, and of what"},
    {"--conv", SIZES, AT(conv), ALL, 0, 0, " N,C,H,W,FILTERS,WINDOW,STRIDE,PAD,GROUPS", "split: the convolution"},
    {"--workspace", NUMBER, AT(workspace_bytes), SPLIT, 0, 1e18, " BYTES",
     "split: the limit; as much as it likes if absent"},
    {"--list", FLAG, AT(wants_list), LIST, 0, 0, "", "the kernels, and the implementations that this build has"},
    {"--help", FLAG, AT(wants_help), ALL | LIST, 0, 0, "", "these lines"},
    {"--man", FLAG, AT(wants_man), ALL | LIST, 0, 0, "", "the manual page, as roff"},
#undef AT
};
enum { n_options = sizeof options / sizeof *options };

static const char *const usages[][2] = {
    {"dlsim-profile -o FILE [OPTIONS]", "time this machine's kernels into a device file"},
    {"dlsim-profile --only KERNEL [OPTIONS]", "time one kernel and print what it takes"},
    {"dlsim-profile --check [OPTIONS]", "check kernels against their references"},
    {"dlsim-profile --summary [OPTIONS]", "time kernels at large sizes, beside the machine's best rates"},
    {"dlsim-profile --list", "what there is to check and to time"},
    {"dlsim-profile split --conv N,C,... [OPTIONS]", "the fastest division of a mini-batch under a limit of workspace"},
};
enum { n_usages = sizeof usages / sizeof *usages };

int dl_profile_help(void)
{
    for (size_t i = 0; i < n_usages; i++) printf("%-40s %s\n", usages[i][0], usages[i][1]);
    puts("");
    for (size_t i = 0; i < n_options; i++) {
        char call[80];
        snprintf(call, sizeof call, "%s%s", options[i].name, options[i].value);
        printf("  %-22s %s\n", call, options[i].doc);
    }
    return 0;
}

/* For roff, where a bare - is a hyphen. */
static void put(const char *text)
{
    for (; *text; text++)
        if (*text == '-')
            fputs("\\-", stdout);
        else
            putchar(*text);
}

static void put_entry(const char *name, const char *value, const char *doc)
{
    fputs(".TP\n.B ", stdout);
    put(name);
    put(value);
    puts("");
    put(doc);
    puts("");
}

int dl_profile_man(void)
{
    puts(".TH DLSIM\\-PROFILE 1 \"\" dlsim \"User Commands\"\n.nh\n.ad l\n"
         ".SH NAME\ndlsim\\-profile \\- time the kernels of a machine into a device file of dlsim\n.SH SYNOPSIS");
    for (size_t i = 0; i < n_usages; i++) put_entry(usages[i][0], "", usages[i][1]);
    puts(".SH OPTIONS");
    for (size_t i = 0; i < n_options; i++) put_entry(options[i].name, options[i].value, options[i].doc);
    puts(".SH SEE ALSO\n.BR dlsim (1)");
    return 0;
}

static char complaint[300];

static const char *refuse(const char *name, const char *what)
{
    snprintf(complaint, sizeof complaint, "%s: %s", name, what);
    return complaint;
}

static const char *read_number(size_t i, const char *text, double *to)
{
    char *end;
    const double x = strtod(text, &end);
    if (end != text && !*end && x >= options[i].min && x <= options[i].max) {
        *to = x;
        return NULL;
    }
    snprintf(complaint, sizeof complaint, "%s: must be a number in [%g, %g], got '%.40s'", options[i].name,
             options[i].min, options[i].max, text);
    return complaint;
}

/* The nine of a convolution, with at least one output pixel. */
static const char *read_conv(const char *text, int64_t *size)
{
    static const char needs[] = "must be nine whole numbers: samples, channels, height, width, filters, window, "
                                "stride, pad, groups; a window must fit and groups divide channels and filters";
    enum { n_sizes = 9, most = 65536 };
    for (int i = 0; i < n_sizes; i++) {
        char *end;
        size[i] = strtoll(text, &end, 10);
        const bool is_pad = i == 7;
        if (end == text || *end != (i < n_sizes - 1 ? ',' : 0) || size[i] < !is_pad || size[i] > most)
            return refuse("--conv", needs);
        text = end + 1;
    }
    const bool fits = size[2] + 2 * size[7] >= size[5] && size[3] + 2 * size[7] >= size[5];
    return fits && size[1] % size[8] == 0 && size[4] % size[8] == 0 ? NULL : refuse("--conv", needs);
}

static const char *read_share(const char *text, struct dl_profile_options *o)
{
    const long most = 4096;
    char *end;
    const long share = strtol(text, &end, 10);
    const long n_shares = *end == '/' ? strtol(end + 1, &end, 10) : 0;
    if (*end || share < 1 || share > n_shares || n_shares > most)
        return refuse("--share", "must be K/N with 1 <= K <= N, such as 2/8");
    o->share = (size_t)(share - 1);
    o->n_shares = (size_t)n_shares;
    return NULL;
}

static const char *read_value(size_t i, const char *text, struct dl_profile_options *o)
{
    void *const to = (char *)o + options[i].at;
    if (options[i].kind != FLAG && (!text || !*text)) return refuse(options[i].name, "needs a value");
    switch (options[i].kind) {
    case FLAG: *(bool *)to = true; return NULL;
    case TEXT: *(const char **)to = text; return NULL;
    case NUMBER: return read_number(i, text, to);
    case SIZES: return read_conv(text, to);
    case SHARE: return read_share(text, o);
    }
    return NULL;
}

static const char *read_words(int argc, char **argv, struct dl_profile_options *o, bool given[n_options])
{
    for (int word = 1; word < argc; word++) {
        if (word == 1 && strcmp(argv[1], "split") == 0) {
            o->split = true;
            continue;
        }
        size_t i = 0;
        while (i < n_options && strcmp(argv[word], options[i].name)) i++;
        if (i == n_options) return refuse(argv[word], "no such option; see --help");
        if (given[i]) return refuse(options[i].name, "is given twice");
        given[i] = true;
        const char *const wrong = read_value(i, word + 1 < argc ? argv[word + 1] : NULL, o);
        if (wrong) return wrong;
        word += options[i].kind != FLAG;
    }
    return NULL;
}

/* A list needs no device to be there, nor any to be chosen. */
static const char *find_backend(struct dl_profile_options *o)
{
    if (!o->device && o->wants_list) return NULL;
    if (!o->device) o->device = "cpu";
    o->backend = dl_backend_find(o->device);
    if (!o->backend)
        return refuse(o->device, "no such device in this build; --device is cpu, or cuda if built with nvcc");
    const char *const absent = o->wants_list ? NULL : o->backend->open();
    return absent ? refuse(o->device, absent) : NULL;
}

static const char *read_precisions(struct dl_profile_options *o)
{
    o->precisions = o->precision ? 0 : ~0u;
    for (const char *at = o->precision; at && *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        int f = 0;
        while (f < DL_N_FLOATS && strncmp(dl_float_name((enum dl_float)f), at, length)) f++;
        if (f == DL_N_FLOATS || strlen(dl_float_name((enum dl_float)f)) != length)
            return refuse("--precisions", "must be names of fp32, tf32, bf16, fp16 and fp8 with commas between");
        o->precisions |= 1u << f;
        at += length;
    }
    return NULL;
}

/* Of what --only names: a kernel, and one that is timed unless it is only to be checked. */
static const char *find_kernel(const struct dl_profile_options *o)
{
    bool is_there = false, is_timed = false;
    for (size_t i = 0; i < dl_problem_count(); i++) {
        const bool is_it = strcmp(dl_problem_get(i)->name, o->only) == 0;
        is_there |= is_it;
        is_timed |= is_it && dl_problem_get(i)->timed;
    }
    if (!is_there) return refuse(o->only, "no such kernel; see --list for their names");
    return is_timed || o->checks_only ? NULL : refuse(o->only, "is checked by --check, and never timed");
}

/* Something that is asked for, on this device and in one of the precisions. */
static const char *find_routine(const struct dl_profile_options *o)
{
    const char *const kernel = o->split ? "conv" : o->only;
    const char *lacks = NULL;
    for (size_t i = 0; i < dl_routine_count(o->backend); i++) {
        const struct dl_routine *const r = dl_routine_get(o->backend, i);
        if (!(r->precisions & o->precisions) || (kernel && strcmp(kernel, r->problem))) continue;
        if (!r->lacks) return NULL;
        lacks = r->lacks;
    }
    if (!lacks)
        return refuse(o->precision ? "--precisions" : kernel,
                      "this device has no such kernel; see --list for all it has");
    snprintf(complaint, sizeof complaint, "%s: this build has no %s", o->device, lacks);
    return complaint;
}

static enum task task_of(const struct dl_profile_options *o)
{
    return o->wants_list    ? LIST
           : o->split       ? SPLIT
           : o->is_summary  ? SUMMARY
           : o->checks_only ? CHECK
           : o->output      ? WRITE
                            : PRINT;
}

/* Nothing that is asked for in vain. */
static const char *check_together(const struct dl_profile_options *o, const bool given[n_options])
{
    static const char *const words[] = {
        [WRITE] = "cannot go with -o",          [PRINT] = "cannot go with --only", [CHECK] = "cannot go with --check",
        [SUMMARY] = "cannot go with --summary", [SPLIT] = "cannot go with split",  [LIST] = "cannot go with --list"};
    const enum task task = task_of(o);
    for (size_t i = 0; i < n_options; i++)
        if (given[i] && !(options[i].tasks & task)) return refuse(options[i].name, words[task]);
    return NULL;
}

const char *dl_profile_options_read(int argc, char **argv, struct dl_profile_options *o)
{
    bool given[n_options] = {false};
    *o = (struct dl_profile_options){.n_shares = 1, .spread = 0.01, .time_limit_s = 1e7, .workspace_bytes = 1e18};
    const char *wrong = read_words(argc, argv, o, given);
    if (wrong || o->wants_help || o->wants_man) return wrong;
    if (o->split != (o->conv[0] > 0)) return refuse("--conv", "belongs to split, which needs it");
    const bool has_task = o->wants_list || o->split || o->checks_only || o->is_summary || o->only || o->output;
    if (!has_task) return refuse("-o", "must name the file to write");
    wrong = check_together(o, given);
    if (!wrong && o->only) wrong = find_kernel(o);
    if (!wrong) wrong = read_precisions(o);
    if (!wrong) wrong = find_backend(o);
    return wrong || o->wants_list ? wrong : find_routine(o);
}
