/* json_text.c - JSON as it is written: what a terminal would obey is escaped. It can only be in strings, because
 * nothing else of JSON goes beyond ASCII; line ends and tabs between values stay. */
#include <stdio.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/core/json.h"
#include "sim/core/visible.h"

enum { escape_bytes = 6 }; /* \u009B */

/* The bytes of the next character; whether it must be escaped. A character that is cut off is one that is none. */
static size_t next(const char *text, size_t n, uint32_t *code, bool *is_escaped)
{
    const size_t length = dl_character(text, n, code);
    *is_escaped = !length || (dl_is_hidden(*code) && *code != '\n' && *code != '\t');
    return length ? length : 1;
}

static size_t count_escapes(const char *text, size_t n)
{
    size_t n_escapes = 0;
    uint32_t code;
    bool is_escaped;
    for (size_t at = 0; at < n; n_escapes += is_escaped) at += next(text + at, n - at, &code, &is_escaped);
    return n_escapes;
}

static size_t escape(const char *text, size_t n, char *to)
{
    char *const begin = to;
    uint32_t code;
    bool is_escaped;
    for (size_t at = 0; at < n;) {
        const size_t length = next(text + at, n - at, &code, &is_escaped);
        if (is_escaped)
            to += snprintf(to, escape_bytes + 1, "\\u%04X", code & 0xFFFF); /* none is above */
        else
            to = (char *)memcpy(to, text + at, length) + length;
        at += length;
    }
    return (size_t)(to - begin);
}

enum dl_status dl_write_json_text(const char *path, const char *text, size_t bytes, struct dl_error *err)
{
    const size_t n_escapes = count_escapes(text, bytes);
    if (!n_escapes) return dl_write_file(path, text, bytes, err);
    char *const escaped = dl_alloc(bytes + n_escapes * escape_bytes + 1);
    dl_write_file(path, escaped, escape(text, bytes, escaped), err);
    dl_free(escaped);
    return err->status;
}
