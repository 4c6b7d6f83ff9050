#include "sim/report/files_read.h"

#include <assert.h>
#include <stdio.h>

#include "sim/core/files.h"

void dl_files_read_add(struct dl_files_read *files, const char *what, const char *folder, struct dl_json doc,
                       struct dl_arena *arena)
{
    if (!doc.file || dl_is_shipped(doc.file, folder, arena)) return;
    assert(files->n < DL_COUNT(files->items));
    files->items[files->n++] = (struct dl_file_read){what, doc.file};
}

void dl_files_read_print(const struct dl_files_read *files)
{
    if (!files->n) return;
    printf("  read from     ");
    for (size_t i = 0; i < files->n; i++) printf("%s %s: %s", i ? "," : "", files->items[i].what, files->items[i].path);
    putchar('\n');
}

json_t *dl_files_read_json(const struct dl_files_read *files)
{
    json_t *const out = json_object();
    for (size_t i = 0; i < files->n; i++)
        json_object_set_new(out, files->items[i].what, json_string(files->items[i].path));
    return out;
}
