#define _POSIX_C_SOURCE 200809L /* getc_unlocked */
#include "sim/import/log_text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines ---- */

/* What ESC begins, as terminals take it: ESC [ numbers letter. */
static const char *skip_colour(const char *at, const char *end)
{
    if (at < end && *at == '[')
        for (at++; at < end && !isalpha((unsigned char)*at);) at++;
    return at < end ? at + 1 : end;
}

/* In place; what is written is never ahead of what is read. */
static void clean(char *text, size_t n)
{
    const char escape = '\033';
    const char *from = text, *const end = text + n;
    char *to = text;
    while (from < end) {
        const char c = *from++;
        if (c == escape)
            from = skip_colour(from, end);
        else
            *to++ = c == '\t' ? ' ' : c;
        if (to > text && iscntrl((unsigned char)to[-1])) to--;
    }
    *to = 0;
}

bool dl_log_next(struct dl_log_lines *lines)
{
    size_t n = 0;
    int c;
    if (!lines->text) lines->text = dl_alloc(DL_LOG_LINE + 1);
    while ((c = getc_unlocked(lines->stream)) != EOF && c != '\n')
        if (n < DL_LOG_LINE) lines->text[n++] = (char)c;
    lines->is_whole = c == '\n';
    clean(lines->text, n);
    return c != EOF || n;
}

/* ---- words ---- */

const char *dl_log_after(const char *line, const char *mark)
{
    const char *const found = strstr(line, mark);
    if (!found) return NULL;
    const char *const rest = found + strlen(mark);
    return rest + strspn(rest, " ");
}

bool dl_log_number(const char *text, double *value, const char **end)
{
    char digits[64];
    size_t n = 0, at = 0;
    for (; n + 1 < sizeof digits && strchr("+-.,0123456789eE", text[at]) && text[at]; at++) {
        const bool parts_thousands = text[at] == ',' && isdigit((unsigned char)text[at + 1]);
        if (text[at] == ',' && !parts_thousands) break;
        if (!parts_thousands) digits[n++] = text[at];
    }
    digits[n] = 0;
    char *last;
    *value = strtod(digits, &last);
    if (last == digits || !isfinite(*value)) return false;
    if (end) *end = text + at;
    return end || text[at];
}

bool dl_log_number_after(const char *line, const char *mark, double *value)
{
    const char *const text = dl_log_after(line, mark);
    return text && dl_log_number(text, value, NULL);
}

char *dl_log_until(const char *text, const char *ends, struct dl_arena *arena)
{
    size_t n = strcspn(text, ends);
    while (n && text[n - 1] == ' ') n--;
    return dl_arena_format(arena, "%.*s", (int)n, text);
}
