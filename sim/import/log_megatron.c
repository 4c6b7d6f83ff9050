/* log_megatron.c - logs of Megatron-LM and programs made from it: the block of arguments, lines of iterations, timers,
 * memory. */
#include <ctype.h>
#include <string.h>

#include "sim/import/log_megatron.h"
#include "sim/import/log_text.h"

struct state {
    bool in_timers; /* lines of "NAME ....: (MIN, MAX)" follow */
};

static const double ms = 1e-3, mib = 1048576;

/* What is told of the run, and what a strategy of the command line must agree with. */
static const struct dl_log_option options[] = {
    {"world_size", "devices"},
    {"tensor_model_parallel_size", "tp"},
    {"pipeline_model_parallel_size", "pp"},
    {"context_parallel_size", "cp"},
    {"expert_model_parallel_size", "ep"},
    {"data_parallel_size", "dp"},
    {"virtual_pipeline_model_parallel_size", "vpp"},
    {"global_batch_size", "global_batch"},
    {"micro_batch_size", "microbatch"},
    {"seq_length", "seq"},
    {"num_layers", "layers"},
    {"hidden_size", "hidden"},
    {"num_attention_heads", "heads"},
};

/* ---- arguments ---- */

/* "  NAME ..... VALUE", whatever a launcher puts in front of it. */
static bool read_argument(struct dl_log_reader *r, const char *line)
{
    const char *const dots = strstr(line, " ..");
    if (!dots) return false;
    const char *const value = dots + 1 + strspn(dots + 1, ".");
    const char *name = dots;
    while (name > line && (isalnum((unsigned char)name[-1]) || name[-1] == '_')) name--;
    if (*value != ' ' || name == dots) return false;
    dl_log_set(r, dl_arena_format(r->arena, "%.*s", (int)(dots - name), name),
               dl_log_until(value + strspn(value, " "), "", r->arena));
    return true;
}

/* "using world size: 64, data-parallel size: 8, ...": before the arguments, and all that old versions say. */
static void read_world(struct dl_log_reader *r, const char *line)
{
    static const struct {
        const char *mark, *name;
    } sizes[] = {{"using world size:", "world_size"},
                 {"data-parallel size:", "data_parallel_size"},
                 {"data-parallel-size:", "data_parallel_size"},
                 {", context-parallel size:", "context_parallel_size"},
                 {"tensor-model-parallel size:", "tensor_model_parallel_size"},
                 {"pipeline-model-parallel size:", "pipeline_model_parallel_size"}};
    dl_log_begin_again(r);
    for (size_t i = 0; i < DL_COUNT(sizes); i++) {
        const char *const text = dl_log_after(line, sizes[i].mark);
        if (text) dl_log_set(r, sizes[i].name, dl_log_until(text, ", ", r->arena));
    }
}

/* ---- steps ---- */

/* "iteration 10/ 100 | ... | elapsed time per iteration (ms): 1234.5 | ... | global batch size: 128 | ..." */
static bool read_iteration(struct dl_log_reader *r, const char *line)
{
    const char *const at = dl_log_after(line, "iteration ");
    double number, elapsed, batch = 0;
    if (!at || !dl_log_number_after(line, "iteration ", &number)) return false;
    const bool in_s = dl_log_number_after(at, "elapsed time per iteration (s):", &elapsed);
    if (!in_s && !dl_log_number_after(at, "elapsed time per iteration (ms):", &elapsed)) return false;
    dl_log_number_after(at, "global batch size:", &batch);
    dl_log_add_step(r, (struct dl_log_step){number, DL_LOG_SECONDS, in_s ? elapsed : ms * elapsed, batch});
    return true;
}

/* ---- timers and memory ---- */

/* "NAME .....: (MIN, MAX)" or "NAME .....: MAX": the slowest rank. */
static bool read_timer(struct dl_log_reader *r, const char *line)
{
    const char *name = line + strspn(line, " ");
    const size_t length = strcspn(name, " ");
    const char *const value = dl_log_after(name, ".: ");
    const char *const low_and_high = value && *value == '(' ? strchr(value, ',') : NULL;
    const char *end;
    double x;
    if (!value || !dl_log_number(low_and_high ? low_and_high + 1 + strspn(low_and_high + 1, " ") : value, &x, &end))
        return false;
    dl_log_add_timer(r, name, length, ms * x);
    return true;
}

/* "time (ms) | NAME: X | NAME: X" of old versions. */
static void read_timers_of_line(struct dl_log_reader *r, const char *at)
{
    while (at && *at == '|') {
        at += 1 + strspn(at + 1, " ");
        const size_t length = strcspn(at, ":|");
        const char *end;
        double x;
        if (at[length] != ':' || !dl_log_number(at + length + 1 + strspn(at + length + 1, " "), &x, &end)) return;
        dl_log_add_timer(r, at, length, ms * x);
        at = strchr(end, '|');
    }
}

static void line(struct dl_log_reader *r, const char *text)
{
    struct state *const s = r->state;
    double x;
    const char *at;
    if (s->in_timers && read_timer(r, text)) return;
    s->in_timers = false;
    if (read_iteration(r, text)) return;
    if ((at = dl_log_after(text, "time (ms) ")) && r->log.n_steps) read_timers_of_line(r, at);
    if (dl_log_after(text, "time across ranks (ms):")) s->in_timers = r->log.n_steps > 0;
    if (dl_log_after(text, "memory (MB)") && dl_log_number_after(text, "max allocated:", &x))
        dl_log_add_peak(r, mib * x);
    if (dl_log_after(text, "using world size:")) read_world(r, text);
    if (dl_log_after(text, "--- arguments ---")) dl_log_begin_again(r);
    if ((at = dl_log_after(text, "dummy tokens (new size:")))
        dl_log_set(r, "padded_vocab_size", dl_log_until(at, ")", r->arena));
    if (!r->log.n_steps) read_argument(r, text);
}

/* ---- together ---- */

/* Versions are told apart by the arguments that they have; what flags change is known of the newest. */
static void find_software(struct dl_log_reader *r)
{
    r->log.software = "megatron-core";
    if (dl_log_get(r, "transformer_impl") || !dl_log_get(r, "num_layers")) return;
    r->log.software = dl_log_get(r, "sequence_parallel") ? "megatron-2022" : "megatron-2021";
    json_decref(r->log.own_software);
    r->log.own_software = NULL;
}

static void finish(struct dl_log_reader *r)
{
    const double batch = dl_log_batch(&r->log); /* that of a ramp comes from its steps */
    char text[32];
    snprintf(text, sizeof text, "%.17g", batch);
    if (batch > 0) dl_log_set(r, "global_batch_size", text);
    dl_log_say_options(r);
    if (dl_log_count(r, "num_layers")) dl_megatron_import(r);
    find_software(r);
}

const struct dl_log_format dl_log_megatron = {
    .name = "Megatron-LM",
    .doc = "iteration N/ TOTAL | ... | elapsed time per iteration (ms): T | ... |",
    .peak = "max allocated",
    .state_size = sizeof(struct state),
    .options = options,
    .n_options = DL_COUNT(options),
    .keeps_all = true,
    .line = line,
    .finish = finish,
};
