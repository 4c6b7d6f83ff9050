/* log_torchtitan.c - logs of torchtitan: lines of steps with tokens a second and device, the mesh, the model, and the
 * configuration if it is printed. */
#include <math.h>
#include <string.h>

#include "sim/import/log.h"
#include "sim/import/log_text.h"

static const double gib = 1073741824;

static const struct dl_log_option options[] = {
    {"seq_len", "seq"},
    {"global_batch_size", "global_batch"},
    {"pipeline_parallel_degree", "pp"},
    {"context_parallel_degree", "cp"},
    {"tensor_parallel_degree", "tp"},
    {"expert_parallel_degree", "ep"},
    {"data_parallel_replicate_degree", NULL},
    {"data_parallel_shard_degree", NULL},
    {"pipeline_parallel_schedule", NULL},
    {"pipeline_parallel_microbatch_size", NULL},
    {"local_batch_size", NULL},
    {"batch_size", NULL},
    {"activation_checkpoint", NULL}, /* its mode */
    {"dim", "hidden"},
    {"n_layers", "layers"},
    {"n_heads", "heads"},
    {"n_kv_heads", "kv_heads"},
    {"vocab_size", "vocab"},
    {"multiple_of", NULL},
    {"ffn_dim_multiplier", NULL},
    {"converters", NULL},
};

/* ---- the mesh ---- */

/* What meshes call their axes. */
static const struct {
    const char *axis, *name;
} axes[] = {{"pp", "pipeline_parallel_degree"},
            {"dp_replicate", "data_parallel_replicate_degree"},
            {"dp_shard", "data_parallel_shard_degree"},
            {"dp", "data_parallel_shard_degree"},
            {"cp", "context_parallel_degree"},
            {"tp", "tensor_parallel_degree"},
            {"ep", "expert_parallel_degree"}};

static void set_axis(struct dl_log_reader *r, const char *axis, const char *ways)
{
    for (size_t i = 0; i < DL_COUNT(axes); i++)
        if (strcmp(axes[i].axis, axis) == 0) dl_log_set(r, axes[i].name, ways);
}

/* "Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]": the n-th way is of the n-th name. */
static void read_lists(struct dl_log_reader *r, const char *name)
{
    const char *const names_end = strchr(name, ']'), *way = names_end ? strchr(names_end, '[') : NULL;
    while (way && (name = strpbrk(name, "'\"")) && name < names_end) {
        const char *const axis = dl_log_until(name + 1, "'\"]", r->arena);
        way += 1 + strspn(way + 1, " ");
        set_axis(r, axis, dl_log_until(way, ",]", r->arena));
        name += strlen(axis) + 2; /* and its quotes */
        way = strchr(way, ',');
    }
}

/* "Building device mesh with parallelism: pp=1, dp_replicate=1, dp_shard=8, cp=1, tp=1, ep=1, etp=1" */
static void read_assignments(struct dl_log_reader *r, const char *at)
{
    for (const char *equals; (equals = strchr(at, '=')); at = equals + 1) {
        const char *name = equals;
        while (name > at && name[-1] != ' ' && name[-1] != ',') name--;
        set_axis(r, dl_arena_format(r->arena, "%.*s", (int)(equals - name), name),
                 dl_log_until(equals + 1, ", )", r->arena));
    }
}

/* ---- the model and the configuration ---- */

/* "Building llama3 8B with TransformerModelArgs(..., dim=4096, n_layers=32, ...)" */
static void read_model(struct dl_log_reader *r, const char *at)
{
    for (const char *equals; (equals = strchr(at, '=')); at = equals + 1) {
        const char *name = equals;
        while (name > at && name[-1] != ' ' && name[-1] != '(' && name[-1] != ',') name--;
        dl_log_set(r, dl_arena_format(r->arena, "%.*s", (int)(equals - name), name),
                   dl_log_until(equals + 1, ",) ", r->arena));
    }
}

/* The value of a name in a dictionary, as Python ('name': 8) or JSON ("name": 8) prints it; NULL: it is not there. */
static const char *find_entry(const char *line, const char *name)
{
    const char quotes[] = "'\"";
    const size_t length = strlen(name);
    for (const char *at = line; (at = strstr(at, name)); at += length) {
        const bool is_name = at > line && strchr(quotes, at[-1]) && at[length] == at[-1] && at[length + 1] == ':';
        if (is_name) return at + length + 2 + strspn(at + length + 2, " ");
    }
    return NULL;
}

static void read_configuration(struct dl_log_reader *r, const char *line)
{
    if (!strpbrk(line, "'\"")) return;
    for (size_t i = 0; i < DL_COUNT(options); i++) {
        const char *at = find_entry(line, options[i].name);
        if (!at || *at == '{' || *at == '-') continue; /* -1 is what is left, which the mesh tells */
        if (*at == '"' || *at == '\'') at++;
        dl_log_set(r, options[i].name, dl_log_until(at, *at == '[' ? "}\"'" : ",}\"'", r->arena));
    }
}

/* "Training starts at step 1, with local batch size 1, global batch size 8, ..., sequence length 8192, ..." */
static void read_start(struct dl_log_reader *r, const char *line)
{
    static const struct {
        const char *mark, *name;
    } sizes[] = {{"local batch size", "local_batch_size"},
                 {"global batch size", "global_batch_size"},
                 {"sequence length", "seq_len"}};
    for (size_t i = 0; i < DL_COUNT(sizes); i++) {
        const char *const at = dl_log_after(line, sizes[i].mark);
        if (at) dl_log_set(r, sizes[i].name, dl_log_until(at, ", ", r->arena));
    }
}

/* "Applied selective activation checkpointing to the model" */
static void read_recomputation(struct dl_log_reader *r, const char *line)
{
    const char *const at = dl_log_after(line, "Applied ");
    if (at) dl_log_set(r, "activation_checkpoint", dl_log_until(at, " ", r->arena));
}

/* ---- lines ---- */

/* "step:  4  loss:  7.6  ...  memory: 66.91GiB(37.51%)  tps: 10,050  tflops: ..."; tps was wps once. */
static bool read_step(struct dl_log_reader *r, const char *line)
{
    double number, rate, memory;
    const char *const at = dl_log_after(line, "step:");
    if (!at || !dl_log_number_after(line, "step:", &number)) return false;
    if (!dl_log_number_after(at, " tps:", &rate) && !dl_log_number_after(at, " wps:", &rate)) return false;
    dl_log_add_step(r, (struct dl_log_step){number, DL_LOG_TOKENS_PER_DEVICE_S, rate, 0});
    if (dl_log_number_after(at, "memory:", &memory)) dl_log_add_peak(r, gib * memory);
    return true;
}

static void line(struct dl_log_reader *r, const char *text)
{
    const char *at;
    if (read_step(r, text)) return;
    if (dl_log_after(text, "Starting job:") || dl_log_after(text, "device mesh with ")) dl_log_begin_again(r);
    if (r->log.n_steps) return;
    if (dl_log_after(text, "Training starts at step")) read_start(r, text);
    if ((at = dl_log_after(text, "device mesh with ["))) read_lists(r, at);
    if ((at = dl_log_after(text, "mesh with parallelism:"))) read_assignments(r, at);
    if ((at = dl_log_after(text, "ModelArgs("))) read_model(r, at);
    if (dl_log_after(text, "activation checkpointing to the model")) read_recomputation(r, text);
    read_configuration(r, text);
}

/* ---- together ---- */

static double ways(const struct dl_log_reader *r, const char *name)
{
    const int64_t n = dl_log_count(r, name);
    return n ? (double)n : 1;
}

/* Two thirds of four times the width, times a factor, rounded up: Llama's rule. */
static void say_ffn(struct dl_log_reader *r)
{
    const char *const text = dl_log_get(r, "ffn_dim_multiplier"), *end;
    const int64_t dim = dl_log_count(r, "dim"), multiple = dl_log_count(r, "multiple_of");
    double factor = 1;
    if (!dim || !multiple) return;
    if (text && !dl_log_number(text, &factor, &end)) return;
    const double inner = floor(factor * (double)(8 * dim / 3));
    dl_log_say(r, "ffn", ceil(inner / (double)multiple) * (double)multiple);
}

/* Without pipelining all samples of a rank go at once; with it, as many as it says. */
static void say_batches(struct dl_log_reader *r, double dp)
{
    const int64_t old = dl_log_count(r, "batch_size"), local = dl_log_count(r, "local_batch_size"),
                  samples = local ? local : old, micro = dl_log_count(r, "pipeline_parallel_microbatch_size");
    if (!samples) return;
    if (ways(r, "pipeline_parallel_degree") == 1)
        dl_log_say(r, "microbatch", (double)samples);
    else
        dl_log_say(r, "microbatch", (double)micro);
    if (dp > 0 && !dl_log_count(r, "global_batch_size")) dl_log_say(r, "global_batch", (double)samples * dp);
}

static void say_layout(struct dl_log_reader *r)
{
    const double shards = (double)dl_log_count(r, "data_parallel_shard_degree"),
                 copies = ways(r, "data_parallel_replicate_degree"), dp = shards * copies;
    r->log.says_layout = shards > 0;
    if (dp > 0) {
        dl_log_say(r, "dp", dp);
        dl_log_say(r, "devices",
                   dp * ways(r, "pipeline_parallel_degree") * ways(r, "context_parallel_degree") *
                       ways(r, "tensor_parallel_degree"));
    }
    if (shards > 1) dl_log_say(r, "zero", 3);
    if (shards > 1 && copies > 1)
        json_object_set_new(r->log.row, "stack",
                            json_pack("[{s:s, s:I}]", "name", "zero", "shard_ways", (json_int_t)shards));
    dl_log_say(r, "sp", ways(r, "tensor_parallel_degree") > 1);
    say_batches(r, dp);
}

static void say_schedule(struct dl_log_reader *r)
{
    static const struct {
        const char *theirs, *ours;
    } schedules[] = {{"1F1B", "1f1b"}, {"GPipe", "gpipe"}, {"ZBVZeroBubble", "zbv"}};
    if (ways(r, "pipeline_parallel_degree") == 1) return;
    for (size_t i = 0; i < DL_COUNT(schedules); i++)
        if (dl_log_is(r, "pipeline_parallel_schedule", schedules[i].theirs)) {
            dl_log_say_text(r, "schedule", schedules[i].ours);
            return;
        }
    dl_log_leave(r, "pipeline_parallel_schedule");
}

static void finish(struct dl_log_reader *r)
{
    dl_log_say_options(r);
    say_layout(r);
    say_schedule(r);
    say_ffn(r);
    if (dl_log_count(r, "dim")) dl_log_say_text(r, "style", "llama");
    dl_log_say_text(r, "recompute", dl_log_get(r, "activation_checkpoint"));
    dl_log_say_text(r, "precision", "bf16");
    if (!dl_log_is(r, "converters", "[]")) dl_log_leave(r, "converters");
    r->log.software = "torchtitan";
}

const struct dl_log_format dl_log_torchtitan = {
    .name = "torchtitan",
    .doc = "step: N  loss: X  memory: GiB(...)  tps: T  ...",
    .peak = "reserved",
    .options = options,
    .n_options = DL_COUNT(options),
    .line = line,
    .finish = finish,
};
