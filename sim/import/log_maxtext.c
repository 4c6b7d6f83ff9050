/* log_maxtext.c - logs of MaxText: lines of steps, and the configuration that it prints line by line. */
#include <math.h>
#include <string.h>

#include "sim/import/log.h"
#include "sim/import/log_text.h"

static const struct dl_log_option options[] = {
    {"max_target_length", "seq"},
    {"global_batch_size_to_train_on", "global_batch"},
    {"num_devices", "devices"},
    {"num_experts", NULL},
    {"num_experts_per_tok", NULL},
    {"vocab_size", "vocab"},
    {"base_emb_dim", NULL},
    {"emb_dim", "hidden"},
    {"base_num_decoder_layers", NULL},
    {"num_decoder_layers", "layers"},
    {"base_num_query_heads", NULL},
    {"num_query_heads", "heads"},
    {"base_num_kv_heads", NULL},
    {"num_kv_heads", "kv_heads"},
    {"base_mlp_dim", NULL},
    {"mlp_dim", "ffn"},
    {"per_device_batch_size", NULL},
    {"gradient_accumulation_steps", NULL},
    {"ici_data_parallelism", NULL},
    {"ici_fsdp_parallelism", NULL},
    {"ici_tensor_parallelism", NULL},
    {"ici_pipeline_parallelism", NULL},
    {"ici_expert_parallelism", NULL},
    {"ici_context_parallelism", NULL},
    {"ici_sequence_parallelism", NULL},
    {"dcn_data_parallelism", NULL},
    {"dcn_fsdp_parallelism", NULL},
    {"dcn_tensor_parallelism", NULL},
    {"dcn_pipeline_parallelism", NULL},
    {"remat_policy", NULL},
    {"quantization", NULL},
    {"logits_via_embedding", NULL},
    {"dtype", NULL},
};

/* ---- lines ---- */

/* "completed step: 9, seconds: 1.341, TFLOP/s/device: 257.9, Tokens/s/device: 36653.2, ..." */
static bool read_step(struct dl_log_reader *r, const char *line)
{
    const char *const at = dl_log_after(line, "completed step:");
    double number, seconds;
    if (!at || !dl_log_number_after(line, "completed step:", &number) || !dl_log_number_after(at, "seconds:", &seconds))
        return false;
    dl_log_add_step(r, (struct dl_log_step){number, DL_LOG_SECONDS, seconds, 0});
    return true;
}

/* "Config param NAME: VALUE" */
static void read_parameter(struct dl_log_reader *r, const char *at)
{
    const char *const colon = strchr(at, ':');
    if (!colon) return;
    dl_log_set(r, dl_arena_format(r->arena, "%.*s", (int)(colon - at), at),
               dl_log_until(colon + 1 + strspn(colon + 1, " "), "", r->arena));
}

static void line(struct dl_log_reader *r, const char *text)
{
    const double giga = 1e9;
    double x;
    const char *at;
    if (read_step(r, text)) return;
    if ((at = dl_log_after(text, "Config param "))) {
        dl_log_begin_again(r);
        read_parameter(r, at);
    }
    if ((at = dl_log_after(text, "Num_devices:"))) dl_log_set(r, "num_devices", dl_log_until(at, ", ", r->arena));
    if (dl_log_number_after(text, "Total memory size:", &x)) dl_log_add_peak(r, giga * x);
}

/* ---- together ---- */

/* Sizes of the base are those of the model unless it is scaled, when both are printed. */
static void say_sizes(struct dl_log_reader *r)
{
    static const struct {
        const char *scaled, *base, *key;
    } sizes[] = {{"emb_dim", "base_emb_dim", "hidden"},
                 {"num_decoder_layers", "base_num_decoder_layers", "layers"},
                 {"num_query_heads", "base_num_query_heads", "heads"},
                 {"num_kv_heads", "base_num_kv_heads", "kv_heads"},
                 {"mlp_dim", "base_mlp_dim", "ffn"}};
    for (size_t i = 0; i < DL_COUNT(sizes); i++)
        if (!dl_log_count(r, sizes[i].scaled)) dl_log_say(r, sizes[i].key, dl_log_count(r, sizes[i].base));
    if (dl_log_count(r, "emb_dim") || dl_log_count(r, "base_emb_dim")) dl_log_say_text(r, "style", "llama");
    if (dl_log_get(r, "logits_via_embedding"))
        json_object_set_new(r->log.row, "tied_embedding", json_integer(dl_log_is_true(r, "logits_via_embedding")));
    if (dl_log_count(r, "num_experts") > 1) {
        dl_log_say(r, "experts", dl_log_count(r, "num_experts"));
        dl_log_say(r, "top_k", dl_log_count(r, "num_experts_per_tok"));
    }
}

/* Inside slices times over them; -1, which is what is left of the devices, is 0 here. */
static double ways(const struct dl_log_reader *r, const char *axis)
{
    static const char *const networks[] = {"ici", "dcn"};
    double n = 1;
    for (size_t i = 0; i < DL_COUNT(networks); i++) {
        const char *const name = dl_arena_format(r->arena, "%s_%s_parallelism", networks[i], axis);
        if (dl_log_get(r, name)) n *= (double)dl_log_count(r, name);
    }
    return n;
}

static void say_layout(struct dl_log_reader *r)
{
    static const struct {
        const char *axis, *key;
    } axes[] = {{"tensor", "tp"}, {"pipeline", "pp"}, {"expert", "ep"}, {"context", "cp"}};
    for (size_t i = 0; i < DL_COUNT(axes); i++) dl_log_say(r, axes[i].key, ways(r, axes[i].axis));
    r->log.says_layout = dl_log_get(r, "ici_fsdp_parallelism") || dl_log_get(r, "ici_tensor_parallelism");
    if (ways(r, "fsdp") != 1) dl_log_say(r, "zero", 3);
    const int64_t devices = dl_log_count(r, "num_devices"), slices = dl_log_count(r, "dcn_data_parallelism");
    if (ways(r, "fsdp") != 1 && slices > 1 && devices)
        json_object_set_new(r->log.row, "stack",
                            json_pack("[{s:s, s:I}]", "name", "zero", "shard_ways", (json_int_t)(devices / slices)));
}

static void say_batches(struct dl_log_reader *r)
{
    const char *const text = dl_log_get(r, "per_device_batch_size"), *end;
    const int64_t devices = dl_log_count(r, "num_devices"), parts = dl_log_count(r, "gradient_accumulation_steps");
    const double cut = ways(r, "tensor") * ways(r, "pipeline") * ways(r, "context");
    double each;
    if (!text || !dl_log_number(text, &each, &end) || !(each > 0)) return;
    const double accumulated = (double)(parts ? parts : 1);
    if (devices && !dl_log_count(r, "global_batch_size_to_train_on"))
        dl_log_say(r, "global_batch", floor(each * (double)devices * accumulated + 0.5));
    dl_log_say(r, "microbatch", floor(each * (cut > 0 ? cut : 1)));
}

static void say_remaining(struct dl_log_reader *r)
{
    static const struct {
        const char *policy, *mode;
    } policies[] = {{"full", "full"}, {"minimal", "selective"}};
    const char *const policy = dl_log_get(r, "remat_policy");
    bool is_known = !policy;
    for (size_t i = 0; i < DL_COUNT(policies); i++) {
        if (!dl_log_is(r, "remat_policy", policies[i].policy)) continue;
        dl_log_say_text(r, "recompute", policies[i].mode);
        is_known = true;
    }
    if (!is_known) dl_log_leave(r, "remat_policy");
    dl_log_leave(r, "quantization");
    dl_log_say_text(r, "precision", dl_log_is(r, "dtype", "float32") ? "fp32" : "bf16");
}

static void finish(struct dl_log_reader *r)
{
    dl_log_say_options(r);
    say_sizes(r);
    say_layout(r);
    say_batches(r);
    say_remaining(r);
    r->log.software = "maxtext";
}

const struct dl_log_format dl_log_maxtext = {
    .name = "MaxText",
    .doc = "completed step: N, seconds: T, TFLOP/s/device: X, ...",
    .peak = "total memory size",
    .options = options,
    .n_options = DL_COUNT(options),
    .line = line,
    .finish = finish,
};
