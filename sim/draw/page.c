#define _GNU_SOURCE /* open_memstream */
#include "sim/draw/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/core/files.h"
#include "sim/core/version.h"

enum { most_bytes = 4 << 20 }; /* of d3 or a file of the page */

/* In this order: a file may use what those before it define, and the last one draws. */
static const char *const scripts[] = {"format.js",   "figure.js",     "marks.js",  "slices.js", "lanes.js",
                                      "timeline.js", "bars.js",       "causes.js", "memory.js", "machine.js",
                                      "numbers.js",  "compare.js",    "points.js", "heat.js",   "curves.js",
                                      "sweep.js",    "validation.js", "page.js",   NULL};

/* ---- d3 ---- */

/* Where Debian's packages have it; $DLSIM_D3 names a file elsewhere. NULL: it is not there. */
static const char *find_d3(void)
{
    static const char *const places[] = {"/usr/share/nodejs/d3/dist/d3.min.js", "/usr/share/javascript/d3/d3.min.js"};
    const char *const given = getenv("DLSIM_D3");
    if (given && *given) return access(given, R_OK) ? NULL : given;
    for (size_t i = 0; i < DL_COUNT(places); i++)
        if (access(places[i], R_OK) == 0) return places[i];
    return NULL;
}

enum dl_status dl_page_check(struct dl_error *err)
{
    if (find_d3()) return DL_OK;
    return dl_fail(err, DL_KEY, "--html",
                   "needs d3, which is not installed; as root: apt-get install --no-install-recommends node-d3");
}

/* ---- what is put in ---- */

static void put_file(FILE *to, const char *path, struct dl_error *err)
{
    char *text;
    size_t bytes;
    if (err->status || dl_read_file(path, most_bytes, &text, &bytes, err)) return;
    fwrite(text, 1, bytes, to);
    dl_free(text);
}

struct page {
    FILE *to;
    const char *folder;
    json_t *data;
    struct dl_arena *arena;
    struct dl_error *err;
};

static void put_own(const struct page *p, const char *name)
{
    put_file(p->to, dl_arena_format(p->arena, "%s/%s", p->folder, name), p->err);
}

static void put_style(const struct page *p) { put_own(p, "page.css"); }

static void put_d3(const struct page *p)
{
    if (!dl_page_check(p->err)) put_file(p->to, find_d3(), p->err);
}

static void put_code(const struct page *p)
{
    for (const char *const *name = scripts; *name; name++) put_own(p, *name);
}

/* In JSON this character is only in strings, and without it nothing ends a script. */
static void put_data(const struct page *p)
{
    char *const text = dl_json_dump("--html", p->data, JSON_COMPACT | JSON_ENSURE_ASCII, p->err);
    for (const char *c = text; c && *c; c++)
        if (*c == '<')
            fputs("\\u003c", p->to);
        else
            fputc(*c, p->to);
    free(text);
}

/* ---- the page ---- */

static const struct slot {
    const char *mark;
    void (*put)(const struct page *p);
} slots[] = {{"{{style}}", put_style}, {"{{d3}}", put_d3}, {"{{data}}", put_data}, {"{{code}}", put_code}};

static const struct slot *next_slot(const char *text, const char **at)
{
    const struct slot *first = NULL;
    for (size_t i = 0; i < DL_COUNT(slots); i++) {
        const char *const found = strstr(text, slots[i].mark);
        if (!found || (first && found > *at)) continue;
        first = &slots[i];
        *at = found;
    }
    return first;
}

static void fill(const struct page *p, const char *template)
{
    const char *at = NULL;
    for (const struct slot *slot; (slot = next_slot(template, &at)); template = at + strlen(slot->mark)) {
        fwrite(template, 1, (size_t)(at - template), p->to);
        slot->put(p);
    }
    fputs(template, p->to);
}

enum dl_status dl_page_write(const char *path, json_t *data, struct dl_error *err)
{
    struct dl_arena *const arena = dl_arena_new();
    struct page p = {.folder = dl_shipped("sim/draw/page", arena), .data = data, .arena = arena, .err = err};
    char *text = NULL, *template = NULL;
    size_t bytes, template_bytes;
    json_object_set_new(data, "version", json_string(dl_version()));
    json_object_del(json_object_get(data, "answer"), "host"); /* the same answer makes the same page */
    if (!dl_read_file(dl_arena_format(arena, "%s/page.html", p.folder), most_bytes, &template, &template_bytes, err)) {
        p.to = open_memstream(&text, &bytes);
        fill(&p, template);
        fclose(p.to);
        if (!err->status) dl_write_file(path, text, bytes, err);
        free(text);
        dl_free(template);
    }
    json_decref(data);
    dl_arena_free(arena);
    return err->status;
}
