#include "sim/core/fingerprint.h"

#include <stdio.h>
#include <string.h>

#include "sim/core/files.h"
#include "sim/core/version.h"

/* What is added ends with a NUL, which neither texts nor JSON have inside, so that no two lists of things are alike. */
static void add(struct dl_fingerprint *f, const char *text) { dl_sha256_add(&f->hash, text, strlen(text) + 1); }

void dl_fingerprint_begin(struct dl_fingerprint *f)
{
    dl_sha256_init(&f->hash);
    dl_fingerprint_text(f, "version", dl_version());
}

void dl_fingerprint_text(struct dl_fingerprint *f, const char *what, const char *text)
{
    add(f, what);
    add(f, text ? "text" : "none");
    if (text) add(f, text);
}

void dl_fingerprint_number(struct dl_fingerprint *f, const char *what, double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.17g", x);
    add(f, what);
    add(f, "number");
    add(f, text);
}

static int add_piece(const char *piece, size_t bytes, void *user)
{
    struct dl_fingerprint *const f = user;
    dl_sha256_add(&f->hash, piece, bytes);
    return 0;
}

void dl_fingerprint_json(struct dl_fingerprint *f, const char *what, const json_t *value)
{
    add(f, what);
    add(f, value ? "json" : "none");
    if (value) json_dump_callback(value, add_piece, f, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    add(f, "");
}

static void remove_at(json_t *object, const char *path)
{
    char key[64];
    const char *dot;
    while ((dot = strchr(path, '.'))) {
        snprintf(key, sizeof key, "%.*s", (int)(dot - path), path);
        object = json_object_get(object, key);
        path = dot + 1;
    }
    json_object_del(object, path);
}

void dl_fingerprint_document(struct dl_fingerprint *f, const char *what, const json_t *doc, const char *const *names)
{
    json_t *const copy = json_deep_copy(doc);
    for (size_t i = 0; names[i]; i++) remove_at(copy, names[i]);
    dl_fingerprint_json(f, what, copy);
    json_decref(copy);
}

enum dl_status dl_fingerprint_file(struct dl_fingerprint *f, const char *what, const char *path, struct dl_error *err)
{
    const size_t most_bytes = (size_t)64 << 20;
    char *text = NULL;
    size_t bytes;
    if (!dl_read_file(path, most_bytes, &text, &bytes, err)) dl_fingerprint_text(f, what, text);
    dl_free(text);
    return err->status;
}

void dl_fingerprint_end(struct dl_fingerprint *f, char hex[DL_SHA256_HEX]) { dl_sha256_end(&f->hash, hex); }
