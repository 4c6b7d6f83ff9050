/* device_head.c - what a device file says besides its times, kept word for word where these are written anew. Only as
 * much of JSON is understood here as it takes to find the key "measured". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/device_file.h"

static const char *skip_space(const char *at) { return at + strspn(at, " \t\r\n"); }

/* Behind the string that begins here. */
static const char *behind_string(const char *at)
{
    for (at++; *at && *at != '"'; at++)
        if (*at == '\\' && at[1]) at++;
    return *at ? at + 1 : at;
}

/* The key "measured" of the document itself, not of what it holds; NULL: it has none. */
static const char *find_measured(const char *text)
{
    static const char key[] = "\"measured\"";
    int depth = 0;
    for (const char *at = text; *at;) {
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        const char *const next = *at == '"' ? behind_string(at) : at + 1;
        if (depth == 1 && strncmp(at, key, sizeof key - 1) == 0 && *skip_space(next) == ':') return at;
        at = next;
    }
    return NULL;
}

/* Whether the end of the document comes behind the list that is the value of this key. */
static bool is_last_key(const char *at)
{
    int depth = 0;
    at = skip_space(skip_space(behind_string(at)) + 1);
    do {
        depth += (*at == '{' || *at == '[') - (*at == '}' || *at == ']');
        at = *at == '"' ? behind_string(at) : at + (*at != 0);
    } while (*at && depth > 0);
    at = skip_space(at);
    return *at == '}' && !*skip_space(at + 1);
}

static char *read_whole(const char *path)
{
    enum { most_bytes = 1 << 24 };
    FILE *const in = fopen(path, "r");
    if (!in) return NULL;
    char *const text = dl_memory(most_bytes + 1);
    text[fread(text, 1, most_bytes, in)] = 0;
    fclose(in);
    return text;
}

static const char *why_not(const char *text)
{
    if (!strstr(text, "\"dlsim/device/1\"") || !strrchr(text, '}')) return "is no device file";
    const char *const measured = find_measured(text);
    return !measured || is_last_key(measured) ? NULL : "has keys behind \"measured\", which must be the last";
}

const char *dl_why_no_device_file(const char *path)
{
    char *const text = read_whole(path);
    if (!text) return strerror(errno);
    const char *const wrong = why_not(text);
    free(text);
    return wrong;
}

const char *dl_device_head_copy(FILE *out, const char *path)
{
    char *const text = read_whole(path);
    if (!text) return strerror(errno);
    const char *const wrong = why_not(text), *const measured = find_measured(text);
    const char *end = measured ? measured : strrchr(text, '}');
    while (end && end > text && strchr(" \t\r\n", end[-1])) end--;
    if (!wrong) fprintf(out, "%.*s%s\n", (int)(end - text), text, measured ? "" : ",");
    free(text);
    return wrong;
}
