#include "sim/core/planned.h"

#include <assert.h>
#include <string.h>

#include "sim/core/output.h"

enum { most_outputs = 8 }; /* more than any command has options for */
static struct {
    const char *path, *option;
} planned[most_outputs];
static size_t n_planned;

enum dl_status dl_plan_output(const char *path, const char *option, struct dl_error *err)
{
    const char *const wrong = dl_why_not_written(path), *const name = strcmp(path, "-") ? path : "standard output";
    if (wrong) return dl_fail(err, DL_NOT_FOUND, name, "cannot be written: %s", wrong);
    for (size_t i = 0; i < n_planned; i++)
        if (dl_is_same_file(planned[i].path, path))
            return dl_fail(err, DL_IMPOSSIBLE, NULL, "--%s: goes to '%.200s', as --%s does; write them to two files",
                           option, path, planned[i].option);
    assert(n_planned < most_outputs);
    planned[n_planned].path = path;
    planned[n_planned++].option = option;
    return DL_OK;
}

enum dl_status dl_refuse_planned(const char *path, struct dl_error *err)
{
    for (size_t i = 0; i < n_planned; i++)
        if (dl_is_same_file(planned[i].path, path))
            return dl_fail(err, DL_IMPOSSIBLE, path, "is an input, and --%s would replace it; write to another file",
                           planned[i].option);
    return DL_OK;
}
