#include "sim/app/export_megatron.h"

#include <stdio.h>

#include "sim/import/megatron_export.h"
#include "sim/session/inputs.h"
#include "strategies/job.h"
#include "workloads/workload.h"

/* Both documents, as a run would take them. */
static enum dl_status load(const struct dl_export_training *what, struct dl_megatron_export *x, struct dl_error *err)
{
    struct dl_job job;
    struct dl_model model;
    const struct dl_want strategy = {DL_STRATEGIES, "strategy", {.name = what->strategy}, "strategy", NULL};
    if (dl_load_document(&strategy, what->set, x->arena, &x->strategy, err) ||
        dl_job_read(x->strategy, what->devices, x->arena, &job, err))
        return err->status;
    const struct dl_want workload = {DL_WORKLOADS, "workload",
                                     dl_given_or((struct dl_input){.name = what->workload}, x->strategy, job.workload),
                                     "workload", dl_place_of_name(what->workload, x->strategy, "workload", x->arena)};
    x->devices = job.n_devices;
    if (dl_load_document(&workload, what->set, x->arena, &x->workload, err) ||
        dl_workload_read(x->workload, job.setting.microbatch,
                         dl_job_model_code(&job, (struct dl_model_code){.attention = "flash"}), x->arena, &model, err))
        return err->status;
    return dl_job_check(&job, &model, x->arena, err);
}

enum dl_status dl_export_megatron(const struct dl_export_training *what, struct dl_error *err)
{
    struct dl_megatron_export x = {.arena = dl_arena_new()};
    if (!load(what, &x, err) && !dl_megatron_export(&x, err)) dl_megatron_export_print(&x, stdout);
    dl_megatron_export_release(&x);
    json_decref(x.strategy.value);
    json_decref(x.workload.value);
    dl_arena_free(x.arena);
    return err->status;
}
