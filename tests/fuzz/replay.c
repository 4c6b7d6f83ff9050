/* replay.c - the fuzz target over every file of a folder: what the fuzzer found once stays found. */
#define _POSIX_C_SOURCE 200809L
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "sim/core/files.h"
#include "tests/fuzz/target.h"

enum { max_bytes = 1 << 20 };

static enum dl_status replay(const char *path, struct dl_error *err)
{
    char *text = NULL;
    size_t bytes = 0;
    if (dl_read_file(path, max_bytes, &text, &bytes, err)) return err->status;
    printf("%s\n", path); /* before, so that a crash tells its file */
    fflush(stdout);
    LLVMFuzzerTestOneInput((const uint8_t *)text, bytes);
    dl_free(text);
    return DL_OK;
}

int main(int argc, char **argv)
{
    DIR *const dir = argc == 2 ? opendir(argv[1]) : NULL;
    if (!dir) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    size_t n = 0;
    for (const struct dirent *entry; (entry = readdir(dir)) && !err.status;)
        if (entry->d_name[0] != '.') n += !replay(dl_arena_format(arena, "%s/%s", argv[1], entry->d_name), &err);
    closedir(dir);
    dl_arena_free(arena);
    if (err.status) fprintf(stderr, "%s\n", err.text);
    printf("%zu inputs\n", n);
    return n && !err.status ? EXIT_SUCCESS : EXIT_FAILURE;
}
