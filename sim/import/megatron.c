/* megatron.c - an argument list or a launch script of Megatron-LM, as a workload, a strategy and its software. */
#include <string.h>

#include "sim/import/formats.h"
#include "sim/import/megatron.h"

static const char *const marks[] = {"--num-layers", "--tensor-model-parallel-size", "--micro-batch-size",
                                    "--hidden-size", NULL};

static bool recognises(const char *text, size_t bytes)
{
    (void)bytes;
    for (const char *const *mark = marks; *mark; mark++)
        if (strstr(text, *mark)) return true;
    return false;
}

static enum dl_status read_launch(struct dl_megatron_reading *r, const struct dl_launch *launch, struct dl_error *err)
{
    dl_megatron_read_launcher(r, launch);
    if (dl_megatron_read_flags(r, &launch->arguments, err)) return err->status;
    const size_t told = err->n_told;
    if (dl_megatron_settle_encoder(r, err) && !dl_go_on(err)) return err->status;
    if (dl_megatron_strategy(r, err) && !dl_go_on(err))
        return err->status; /* it bounds ways, which pad the vocabulary */
    if (dl_megatron_workload(r, err) && !dl_go_on(err)) return err->status;
    r->out->software = dl_megatron_software(r, err);
    return dl_stop_if_told(err, told);
}

static enum dl_status read(const char *text, const char *where, struct dl_arena *arena, struct dl_imported *out,
                           struct dl_error *err)
{
    struct dl_megatron m = dl_megatron_defaults;
    struct dl_megatron_reading r = {.m = &m, .where = where, .arena = arena, .out = out};
    struct dl_launch launch = {0};
    out->what = "flags of Megatron-LM";
    if (dl_launch_read(text, strlen(text), where, marks, arena, &launch, err) == DL_OK) read_launch(&r, &launch, err);
    dl_launch_free(&launch);
    return err->status;
}

const struct dl_import_format dl_import_megatron = {
    .name = "megatron",
    .doc = "flags or a launch script of Megatron-LM, as a workload and a strategy",
    .recognises = recognises,
    .read = read,
};
