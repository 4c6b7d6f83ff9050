#define _XOPEN_SOURCE 700 /* realpath */
#include "sim/core/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/core/home.h"
#include "sim/core/output.h"
#include "sim/core/planned.h"

const char *dl_base_name(const char *path)
{
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool dl_is_regular(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

enum dl_status dl_open_input(const char *path, FILE **file, size_t *bytes, struct dl_error *err)
{
    struct stat info;
    if (dl_refuse_planned(path, err)) return err->status;
    if (strpbrk(path, "\r\n")) return dl_fail(err, DL_NOT_FOUND, path, "is a name of more than one line");
    if (stat(path, &info)) return dl_fail(err, DL_NOT_FOUND, path, "%s", strerror(errno));
    if (!S_ISREG(info.st_mode)) return dl_fail(err, DL_NOT_FOUND, path, "is not a file");
    *bytes = (size_t)info.st_size;
    *file = fopen(path, "rb");
    return *file ? DL_OK : dl_fail(err, DL_NOT_FOUND, path, "%s", strerror(errno));
}

enum dl_status dl_read_file(const char *path, size_t max_bytes, char **text, size_t *bytes, struct dl_error *err)
{
    FILE *file;
    size_t size;
    if (dl_open_input(path, &file, &size, err)) return err->status;
    if (size > max_bytes) {
        fclose(file);
        return dl_fail(err, DL_RANGE, path, "is larger than the %zu MiB that an input file may have", max_bytes >> 20);
    }
    char *const buffer = dl_alloc(size + 1);
    const size_t got = fread(buffer, 1, size, file);
    fclose(file);
    buffer[got] = '\0';
    *text = buffer;
    *bytes = got;
    return DL_OK;
}

enum dl_status dl_write_file(const char *path, const char *text, size_t bytes, struct dl_error *err)
{
    struct dl_output out;
    const char *const name = strcmp(path, "-") ? path : "standard output";
    const char *wrong = dl_output_open(&out, path);
    if (!wrong) {
        fwrite(text, 1, bytes, out.stream);
        wrong = dl_output_close(&out, true);
    }
    return wrong ? dl_fail(err, DL_NOT_FOUND, name, "cannot be written: %s", wrong) : DL_OK;
}

const char *dl_shipped(const char *folder, struct dl_arena *arena)
{
    return dl_arena_format(arena, "%s/%s", dl_home(arena), folder);
}

const char *dl_without_json(const char *file, struct dl_arena *arena)
{
    static const char ending[] = ".json";
    const size_t length = strlen(file), ending_length = sizeof ending - 1;
    const bool has_it = length > ending_length && strcmp(file + length - ending_length, ending) == 0;
    return dl_arena_format(arena, "%.*s", (int)(has_it ? length - ending_length : length), file);
}

static int by_name(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

size_t dl_list_folder(const char *folder, struct dl_arena *arena, const char ***names)
{
    *names = NULL;
    DIR *const dir = opendir(dl_shipped(folder, arena));
    if (!dir) return 0;
    const char **list = NULL;
    size_t n = 0, capacity = 0;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const size_t length = strlen(entry->d_name);
        if (length <= 5 || strcmp(entry->d_name + length - 5, ".json")) continue;
        DL_GROW(list, n, capacity);
        list[n++] = dl_arena_format(arena, "%.*s", (int)(length - 5), entry->d_name);
    }
    closedir(dir);
    if (n) {
        qsort(list, n, sizeof *list, by_name);
        *names = memcpy(dl_arena_alloc(arena, n * sizeof *list), list, n * sizeof *list);
    }
    dl_free(list);
    return n;
}

static enum dl_status not_found(const struct dl_sought *sought, struct dl_arena *arena, struct dl_error *err)
{
    const char **names, *const bare = dl_without_json(sought->name, arena);
    if (access(dl_shipped(sought->folder, arena), F_OK))
        return dl_fail(err, DL_NOT_FOUND, sought->name,
                       "no such %s file, and there is no %s/ in %s, where dlsim's own files should be; DLSIM_HOME may "
                       "name another folder",
                       sought->what, sought->folder, dl_home(arena));
    const size_t n = dl_list_folder(sought->folder, arena, &names);
    const char *const nearest = dl_nearest(bare, names, n);
    if (nearest)
        return dl_fail(err, DL_NOT_FOUND, sought->name, "no such %s, did you mean '%s'?", sought->what, nearest);
    return dl_fail(err, DL_NOT_FOUND, sought->name, "no such %s: neither a file nor a name in %s/%s", sought->what,
                   sought->folder, sought->is_unlisted ? "" : " (see `dlsim list`)");
}

/* With the slash; "./" for a path that has none. */
static const char *folder_of(const char *path, struct dl_arena *arena)
{
    const int length = path ? (int)(dl_base_name(path) - path) : 0;
    return length ? dl_arena_format(arena, "%.*s", length, path) : "./";
}

static enum dl_status find_path(const struct dl_sought *sought, struct dl_arena *arena, const char **path,
                                struct dl_error *err)
{
    const bool is_relative = sought->file && *sought->name != '/';
    const size_t dot = is_relative && strncmp(sought->name, "./", 2) == 0 ? 2 : 0; /* the folder ends with a slash */
    *path = dl_arena_format(arena, "%s%s", is_relative ? folder_of(sought->file, arena) : "", sought->name + dot);
    if (dl_is_regular(*path)) return DL_OK;
    if (access(*path, F_OK) == 0) return dl_fail(err, DL_NOT_FOUND, *path, "is not a file");
    return dl_fail(err, DL_NOT_FOUND, *path, "no such %s file", sought->what);
}

enum dl_status dl_find_sought(const struct dl_sought *sought, struct dl_arena *arena, const char **path,
                              struct dl_error *err)
{
    static const char *const endings[] = {"", ".json"};
    if (strchr(sought->name, '/')) return find_path(sought, arena, path, err);
    const char *const folders[] = {dl_arena_format(arena, "%s/", dl_shipped(sought->folder, arena)),
                                   folder_of(sought->file, arena)};
    for (size_t f = 0; f < DL_COUNT(folders); f++)
        for (size_t e = 0; e < DL_COUNT(endings); e++) {
            *path = dl_arena_format(arena, "%s%s%s", folders[f], sought->name, endings[e]);
            if (dl_is_regular(*path)) return DL_OK;
        }
    return not_found(sought, arena, err);
}

enum dl_status dl_find_file(const char *folder, const char *what, const char *name, struct dl_arena *arena,
                            const char **path, struct dl_error *err)
{
    return dl_find_sought(&(struct dl_sought){.folder = folder, .what = what, .name = name}, arena, path, err);
}

bool dl_is_shipped(const char *path, const char *folder, struct dl_arena *arena)
{
    return strcmp(folder_of(path, arena), dl_arena_format(arena, "%s/", dl_shipped(folder, arena))) == 0;
}

/* Without links and dots, with a slash at the end. */
static const char *real_folder_of(const char *path, struct dl_arena *arena)
{
    char *const real = realpath(folder_of(path, arena), NULL);
    const char *const out = dl_arena_format(arena, "%s/", real && strcmp(real, "/") ? real : "");
    free(real);
    return out;
}

const char *dl_name_from(const char *file, const char *other, struct dl_arena *arena)
{
    const char *const from = real_folder_of(file, arena), *const to = real_folder_of(other, arena);
    size_t common = 0; /* bytes, up to and with a slash */
    for (size_t i = 0; from[i] && from[i] == to[i]; i++)
        if (from[i] == '/') common = i + 1;
    if (common == 1 && from[1]) return dl_arena_format(arena, "%s%s", to, dl_base_name(other));
    const char *up = from[common] ? "" : "./";
    for (const char *c = from + common; *c; c++)
        if (*c == '/') up = dl_arena_format(arena, "%s../", up);
    return dl_arena_format(arena, "%s%s%s", up, to + common, dl_base_name(other));
}
