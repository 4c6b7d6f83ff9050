#define _POSIX_C_SOURCE 200809L
#include "kernels/device_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "sim/core/output.h"

static bool is_listed(const struct dl_result *r) { return !r->routine->is_own && r->timing.n_samples > 0; }

double dl_best_flop_per_s(const struct dl_profile *p, enum dl_float f)
{
    double best = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct dl_result *const r = &p->results[i];
        if (!is_listed(r) || r->precision != f) continue;
        const double rate = dl_problem_flop(r->problem, r->dim) / r->timing.seconds;
        if (rate > best) best = rate;
    }
    return best;
}

/* Copies larger than the last cache. */
double dl_best_bytes_per_s(const struct dl_profile *p)
{
    double best = 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct dl_result *const r = &p->results[i];
        const double bytes = dl_problem_bytes(r->problem, r->dim, r->precision);
        if (!is_listed(r) || strcmp(r->problem->name, "copy") || bytes < p->facts.last_cache_bytes) continue;
        if (bytes / r->timing.seconds > best) best = bytes / r->timing.seconds;
    }
    return best;
}

/* Names of processors and libraries, as a JSON string. */
static void put_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text >= ' ')
            fputc(*text, out);
    fputc('"', out);
}

static void put_source(FILE *out, const struct dl_profile *p)
{
    char text[1024], date[32] = "", host[64] = "";
    const time_t now = time(NULL);
    struct tm day;
    if (gmtime_r(&now, &day)) strftime(date, sizeof date, "%Y-%m-%d", &day);
    gethostname(host, sizeof host - 1);
    snprintf(text, sizeof text, "dlsim-profile --device %s on %s, %s: %s at %.2f GHz; %s", p->backend->name, host, date,
             p->facts.name, p->facts.clock_hz / 1e9, p->facts.versions);
    put_text(out, text);
}

static void put_peaks(FILE *out, const struct dl_profile *p)
{
    const char *before = "";
    fputs("  \"peak_flop_per_s\": {", out);
    for (int f = 0; f < DL_N_FLOATS; f++) {
        const double rate = dl_best_flop_per_s(p, (enum dl_float)f);
        if (!(rate > 0)) continue;
        fprintf(out, "%s\"%s\": %.4g", before, dl_float_name((enum dl_float)f), rate);
        before = ", ";
    }
    fputs(",\n    \"facts\": {\"*\": \"measured: the best rate of all shapes below\"}},\n", out);
}

/* All that a device file has besides its tables; the model is the plainest, at the rates that were reached. */
static void put_head(FILE *out, const struct dl_profile *p)
{
    fputs("{\n  \"schema\": \"dlsim/device/1\",\n  \"source\": ", out);
    put_source(out, p);
    fputs(",\n  \"model\": \"roofline\",\n", out);
    put_peaks(out, p);
    fprintf(out, "  \"memory_bytes\": %.17g,\n  \"memory_bytes_per_s\": %.4g,\n  \"launch_s\": %.3g,\n",
            p->facts.memory_bytes, dl_best_bytes_per_s(p), p->launch.seconds);
    fputs("  \"facts\": {\n    \"memory_bytes\": \"measured: what the system tells\",\n"
          "    \"memory_bytes_per_s\": \"measured: the fastest copy that is larger than the last cache\",\n"
          "    \"launch_s\": \"measured: calls that do nothing\"\n  },\n"
          "  \"figures\": {\n    \"compute_fraction\": 1,\n    \"bandwidth_fraction\": 1,\n"
          "    \"facts\": {\"*\": \"measured: the peaks above are rates that were reached\"}\n  },\n",
          out);
}

static bool has_table(const struct dl_result *a, const struct dl_result *b)
{
    return a->routine == b->routine && a->precision == b->precision;
}

static int print_row(char *to, size_t size, const struct dl_result *r)
{
    const char *const *names;
    double values[DL_MAX_COLUMNS];
    const size_t n = dl_problem_columns(r->problem, &names);
    int at = snprintf(to, size, "[");
    dl_problem_values(r->problem, r->dim, r->precision, values);
    for (size_t i = 0; i < n; i++) at += snprintf(to + at, size - (size_t)at, "%.12g,", values[i]);
    return at + snprintf(to + at, size - (size_t)at, "%.4g,%.2g]", r->timing.seconds, r->timing.spread);
}

/* As many on a line as fit. */
static void put_rows(FILE *out, const struct dl_profile *p, const struct dl_result *first)
{
    const int width = 118, margin = 6;
    int at = 0; /* 0: the first row of all */
    for (const struct dl_result *r = first; r < p->results + p->n; r++) {
        char row[200];
        if (!is_listed(r) || !has_table(r, first)) continue;
        const int length = print_row(row, sizeof row, r);
        const bool begins = at == 0 || at + length > width;
        fprintf(out, "%s%s%s", at ? "," : "", begins ? "\n      " : "", row);
        at = (begins ? margin : at) + length + 1;
    }
}

static void put_table(FILE *out, const struct dl_profile *p, const struct dl_result *first)
{
    const char *const *names;
    const size_t n = dl_problem_columns(first->problem, &names);
    fprintf(out,
            "    {\"kernel\": \"%s\", \"pass\": \"%s\", \"precision\": \"%s\", \"library\": ", first->problem->name,
            first->problem->pass, dl_float_name(first->precision));
    put_text(out, p->backend->library(first->routine));
    fputs(",\n     \"columns\": [", out);
    for (size_t i = 0; i < n; i++) fprintf(out, "\"%s\", ", names[i]);
    fputs("\"seconds\", \"spread\"],\n     \"rows\": [", out);
    put_rows(out, p, first);
    fputs("]}", out);
}

static bool is_first(const struct dl_profile *p, const struct dl_result *r)
{
    for (const struct dl_result *other = p->results; other < r; other++)
        if (is_listed(other) && has_table(other, r)) return false;
    return is_listed(r);
}

static void put_tables(FILE *out, const struct dl_profile *p)
{
    const char *before = "\n";
    fputs("  \"measured\": [", out);
    for (size_t i = 0; i < p->n; i++) {
        if (!is_first(p, &p->results[i])) continue;
        fputs(before, out);
        put_table(out, p, &p->results[i]);
        before = ",\n";
    }
    fputs("\n  ]\n}\n", out);
}

const char *dl_why_no_output(const char *path)
{
    struct stat info;
    return stat(path, &info) || S_ISREG(info.st_mode) ? NULL : "is there, and is not a file";
}

static const char *put_file(FILE *out, const char *into, const struct dl_profile *p)
{
    const char *const wrong = into ? dl_device_head_copy(out, into) : NULL;
    if (wrong) return wrong;
    if (!into) put_head(out, p);
    put_tables(out, p);
    return NULL;
}

/* The bytes of a file of the first n, whose times are not known yet. */
static double bytes_of(const struct dl_profile *p, const char *into, size_t n)
{
    const struct dl_timing longest = {1.234e-5, 1.2e-4, 1}; /* when printed */
    struct dl_result *const results = dl_memory(n * sizeof *results);
    struct dl_profile timed = *p;
    char *text = NULL;
    size_t size = 0;
    for (size_t i = 0; i < n; i++) {
        results[i] = p->results[i];
        results[i].timing = longest;
    }
    timed.results = results;
    timed.n = n;
    FILE *const out = open_memstream(&text, &size);
    if (out) {
        put_file(out, into, &timed);
        fclose(out);
    }
    free(text);
    free(results);
    return (double)size;
}

size_t dl_device_file_fits(const struct dl_profile *p, const char *into)
{
    size_t n = p->n;
    for (double bytes; n && (bytes = bytes_of(p, into, n)) > DL_DEVICE_FILE_BYTES;)
        n = (size_t)((double)n * DL_DEVICE_FILE_BYTES / bytes); /* a table's head goes with its last row */
    return n;
}

const char *dl_device_file_write(const char *path, const char *into, const struct dl_profile *p)
{
    struct dl_output out;
    const char *wrong = dl_why_no_output(path);
    if (!wrong) wrong = dl_output_open(&out, path);
    if (wrong) return wrong;
    wrong = put_file(out.stream, into, p);
    const char *const unwritten = dl_output_close(&out, !wrong);
    return wrong ? wrong : unwritten;
}
