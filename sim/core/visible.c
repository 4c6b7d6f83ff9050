#define _GNU_SOURCE /* fopencookie */
#include "sim/core/visible.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- characters ---- */

static bool is_between(uint32_t code, uint32_t first, uint32_t last) { return code >= first && code <= last; }

size_t dl_character(const char *text, size_t n_bytes, uint32_t *code)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000}; /* of so many bytes: no longer form is UTF-8 */
    const unsigned char first = (unsigned char)*text;
    const size_t more = first < 0x80 ? 0 : is_between(first, 0xC2, 0xDF) ? 1 : is_between(first, 0xE0, 0xEF) ? 2 : 3;
    *code = DL_NO_CHARACTER;
    if (is_between(first, 0x80, 0xC1) || first > 0xF4) return 1;
    uint32_t found = more ? first & (0x3FU >> more) : first;
    for (size_t i = 1; i <= more; i++) {
        if (i == n_bytes) return 0;
        if ((text[i] & 0xC0) != 0x80) return 1;
        found = found << 6 | (text[i] & 0x3F);
    }
    if (found < least[more] || found > 0x10FFFF || is_between(found, 0xD800, 0xDFFF)) return 1;
    *code = found;
    return more + 1;
}

bool dl_is_hidden(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0, 0x1F},
        {0x7F, 0x9F},
        {0x61C, 0x61C}, /* C0, DEL and C1; Arabic letter mark */
        {0x200E, 0x200F},
        {0x2028, 0x202E},
        {0x2066, 0x2069}, /* marks, separators, embeddings, isolates */
        {DL_NO_CHARACTER, DL_NO_CHARACTER},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (is_between(code, ranges[i][0], ranges[i][1])) return true;
    return false;
}

void dl_make_visible(char *text)
{
    char *to = text;
    uint32_t code;
    for (size_t n = strlen(text); n;) {
        const size_t length = dl_character(text, n, &code), taken = length ? length : n;
        if (!length || dl_is_hidden(code))
            *to++ = '?';
        else
            for (size_t i = 0; i < taken; i++) *to++ = text[i];
        text += taken;
        n -= taken;
    }
    *to = '\0';
}

/* ---- streams ---- */

struct filter {
    int file;
    char begun[4]; /* of a character */
    size_t n_begun;
    bool has_return; /* shown where it ends a line, as in CSV; elsewhere it would write over the line */
    char ready[BUFSIZ];
    size_t n_ready;
};

static bool write_out(struct filter *f)
{
    for (size_t done = 0; done < f->n_ready;) {
        const ssize_t part = write(f->file, f->ready + done, f->n_ready - done);
        if (part < 0 && errno == EINTR) continue;
        if (part < 0) return false;
        done += (size_t)part;
    }
    f->n_ready = 0;
    return true;
}

static void put(struct filter *f, const char *bytes, size_t n)
{
    memcpy(f->ready + f->n_ready, bytes, n);
    f->n_ready += n;
}

static void put_character(struct filter *f, uint32_t code, size_t length)
{
    const bool is_shown = code == '\n' || code == '\t' || !dl_is_hidden(code);
    if (f->has_return) put(f, code == '\n' ? "\r" : "?", 1);
    f->has_return = code == '\r';
    if (!f->has_return) put(f, is_shown ? f->begun : "?", is_shown ? length : 1);
}

/* Characters may come in pieces. */
static void add(struct filter *f, char byte)
{
    uint32_t code;
    f->begun[f->n_begun++] = byte;
    for (size_t length; f->n_begun && (length = dl_character(f->begun, f->n_begun, &code));) {
        put_character(f, code, length);
        f->n_begun -= length;
        memmove(f->begun, f->begun + length, f->n_begun);
    }
}

static ssize_t filter(void *cookie, const char *bytes, size_t n)
{
    enum { most_of_byte = 8 }; /* a return and what was begun, as single marks */
    struct filter *const f = cookie;
    f->n_ready = 0; /* what could not be written is lost, as in any stream */
    for (size_t i = 0; i < n; i++) {
        add(f, bytes[i]);
        if (f->n_ready + most_of_byte > sizeof f->ready && !write_out(f)) return 0;
    }
    return write_out(f) ? (ssize_t)n : 0;
}

static FILE *filtered(struct filter *f, int buffering)
{
    const cookie_io_functions_t functions = {.write = filter};
    FILE *const stream = fopencookie(f, "w", functions);
    if (stream) setvbuf(stream, NULL, buffering, BUFSIZ);
    return stream;
}

void dl_show_only_text(void)
{
    static struct filter out = {.file = STDOUT_FILENO}, err = {.file = STDERR_FILENO};
    FILE *const of_out = filtered(&out, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF);
    FILE *const of_err = filtered(&err, _IONBF);
    if (of_out) stdout = of_out;
    if (of_err) stderr = of_err;
}
