/* import.c - the table of formats, which of them a file has, and the check of what it became. */
#include <stdlib.h>
#include <string.h>

#include "sim/import/formats.h"
#include "strategies/job.h"
#include "workloads/workload.h"

#define ENTRY(name) &dl_import_##name,
static const struct dl_import_format *const formats[] = {DL_IMPORT_FORMATS(ENTRY)};
#undef ENTRY

#define NAME(name) #name,
const char *const dl_import_format_names[] = {DL_IMPORT_FORMATS(NAME) NULL};
#undef NAME

size_t dl_import_format_count(void) { return DL_COUNT(formats); }

const struct dl_import_format *dl_import_format_get(size_t index) { return formats[index]; }

void dl_imported_release(struct dl_imported *imported)
{
    json_decref(imported->workload);
    json_decref(imported->strategy);
    json_decref(imported->software);
    dl_free(imported->left_out);
    *imported = (struct dl_imported){0};
}

void dl_leave_out(struct dl_imported *out, struct dl_left_out left, struct dl_arena *arena)
{
    DL_GROW(out->left_out, out->n_left_out, out->capacity);
    left.value = left.value ? dl_arena_string(arena, left.value) : "";
    out->left_out[out->n_left_out++] = left;
}

const char *dl_shown_value(const json_t *value, struct dl_arena *arena)
{
    enum { longest = 60 };
    char *const text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(15));
    const char *const shown =
        dl_arena_format(arena, "%.*s%s", longest, text ? text : "", text && strlen(text) > longest ? "..." : "");
    free(text);
    return shown;
}

static enum dl_status find_format(const struct dl_foreign *file, const struct dl_import_format **format,
                                  struct dl_error *err)
{
    char all[DL_HINT];
    for (size_t i = 0; i < DL_COUNT(formats); i++)
        if (file->format ? strcmp(file->format, formats[i]->name) == 0
                         : formats[i]->recognises(file->text, file->bytes)) {
            *format = formats[i];
            return DL_OK;
        }
    return dl_fail(err, DL_NOT_FOUND, file->where, "is of no format that can be recognised; say --format %s",
                   dl_joined(dl_import_format_names, DL_COUNT(formats), all));
}

static const struct dl_model_code any_code = {.attention = "flash"};

/* What a reader made must be what dlsim reads. Its parameters are counted without copies that ranks hold. */
static enum dl_status check_workload(struct dl_json doc, double microbatch, struct dl_arena *arena,
                                     struct dl_imported *out, struct dl_error *err)
{
    struct dl_model model;
    if (dl_workload_read(doc, microbatch, any_code, arena, &model, err)) return err->status;
    out->parameters = dl_model_parameters(&model);
    return DL_OK;
}

/* It may be for any workload. */
static enum dl_status check_strategy(const struct dl_foreign *file, struct dl_arena *arena,
                                     const struct dl_imported *out, struct dl_job *job, struct dl_error *err)
{
    json_t *const whole = json_copy(out->strategy);
    if (!json_object_get(whole, "workload")) json_object_set_new(whole, "workload", json_string("any"));
    const struct dl_json doc = {whole, dl_arena_format(arena, "%s as a strategy", file->where), NULL};
    dl_job_read(doc, 0, arena, job, err);
    json_decref(whole);
    return err->status;
}

static enum dl_status check_both(const struct dl_job *job, struct dl_json workload, struct dl_arena *arena,
                                 struct dl_error *err)
{
    struct dl_model model;
    if (dl_workload_read(workload, job->setting.microbatch, dl_job_model_code(job, any_code), arena, &model, err))
        return err->status;
    return dl_job_check(job, &model, arena, err);
}

static enum dl_status check_made(const struct dl_foreign *file, struct dl_arena *arena, struct dl_imported *out,
                                 struct dl_error *err)
{
    struct dl_job job = {.setting.microbatch = 1};
    const struct dl_json workload = {out->workload, dl_arena_format(arena, "%s as a workload", file->where), NULL};
    if (out->strategy && check_strategy(file, arena, out, &job, err)) return err->status;
    if (out->workload && check_workload(workload, job.setting.microbatch, arena, out, err)) return err->status;
    return out->strategy && out->workload ? check_both(&job, workload, arena, err) : DL_OK;
}

enum dl_status dl_import(const struct dl_foreign *file, struct dl_arena *arena, struct dl_imported *out,
                         const struct dl_import_format **format, struct dl_error *err)
{
    *out = (struct dl_imported){0};
    if (memchr(file->text, '\0', file->bytes))
        return dl_fail(err, DL_SYNTAX, file->where, "is no text: it has bytes that are zero");
    if (find_format(file, format, err) || (*format)->read(file->text, file->where, arena, out, err)) return err->status;
    return check_made(file, arena, out, err);
}
