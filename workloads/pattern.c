/* pattern.c - transformers whose layers are written down one by one, as hybrids of attention and state spaces are: a
 * letter each, with a norm before and a residual around it (Nemotron-H, arXiv 2504.03624, section 2.1). */
#include <string.h>

#include "workloads/transformer.h"
#include "workloads/workloads.h"

static const struct letter {
    char name;
    void (*lay)(struct dl_block *block);
} letters[] = {{'M', dl_block_mixer}, {'*', dl_block_attention}, {'-', dl_block_feed_forward}, {'E', dl_block_experts}};

static const struct letter *find_letter(char name)
{
    for (size_t i = 0; i < DL_COUNT(letters); i++)
        if (letters[i].name == name) return &letters[i];
    return NULL;
}

bool dl_pattern_has(const struct dl_transformer *o, char name) { return o->pattern && strchr(o->pattern, name); }

/* Keys that are for layers of one of the letters only; what predicts further tokens attends as these do. */
static enum dl_status check_idle_keys(const struct dl_transformer *o, const struct dl_build *build,
                                      struct dl_error *err)
{
    static const struct {
        const char *key, *letters;
    } idle[] = {{"heads", "*"},   {"kv_heads", "*"}, {"head_size", "*"},         {"kv_rank", "*"},    {"window", "*"},
                {"qk_norm", "*"}, {"qkv_bias", "*"}, {"attention_dropout", "*"}, {"mtp_layers", "*"}, {"ffn", "-E"}};
    for (size_t i = 0; i < DL_COUNT(idle); i++)
        if (json_object_get(build->doc.value, idle[i].key) && !strpbrk(o->pattern, idle[i].letters))
            return dl_refuse(build, idle[i].key, err, "means nothing without the letter %s in 'pattern'",
                             idle[i].letters[1] ? "- or E" : idle[i].letters);
    return DL_OK;
}

/* Keys that the letters of a pattern need. */
static enum dl_status check_keys(const struct dl_transformer *o, const struct dl_build *build, struct dl_error *err)
{
    const struct {
        char letter;
        const char *key;
        int64_t value;
    } needed[] = {{'M', "state_heads", o->state_heads},
                  {'M', "state_head_size", o->state_head_size},
                  {'M', "state_size", o->state_size},
                  {'E', "experts", o->experts}};
    for (size_t i = 0; i < DL_COUNT(needed); i++) {
        const bool has_letter = dl_pattern_has(o, needed[i].letter);
        if (has_letter && !needed[i].value)
            return dl_refuse(build, "pattern", err, "has the letter %c, which needs the key '%s'", needed[i].letter,
                             needed[i].key);
        if (!has_letter && needed[i].value)
            return dl_refuse(build, needed[i].key, err, "means nothing without the letter %c in 'pattern'",
                             needed[i].letter);
    }
    return DL_OK;
}

int64_t dl_pattern_chunk(const struct dl_transformer *o)
{
    const int64_t absent = 128; /* Megatron-Core, ssm/mamba_mixer.py */
    if (o->state_chunk) return o->state_chunk;
    return o->seq < absent ? o->seq : absent;
}

static enum dl_status check_chunk(const struct dl_transformer *o, const struct dl_build *build, struct dl_error *err)
{
    const int64_t chunk = dl_pattern_chunk(o);
    if (!dl_pattern_has(o, 'M') || o->seq % chunk == 0) return DL_OK;
    return dl_refuse(build, o->state_chunk ? "state_chunk" : "seq", err,
                     o->state_chunk ? "must divide seq, %lld, got %lld"
                                    : "is %lld, which chunks of %lld tokens do not divide; give state_chunk",
                     (long long)o->seq, (long long)chunk);
}

enum dl_status dl_pattern_check(const struct dl_transformer *o, const struct dl_build *build, struct dl_error *err)
{
    if (!o->pattern) return DL_OK;
    static const char *const others[] = {
        "dense_layers", "moe_every", "full_attention_every", "parallel_norms", "post_norms", "layer_scale", "patch"};
    for (size_t i = 0; i < DL_COUNT(others); i++)
        if (json_object_get(build->doc.value, others[i]))
            return dl_refuse(build, others[i], err,
                             "means nothing beside 'pattern', whose letters say what layers are");
    for (const char *at = o->pattern; *at; at++)
        if (!find_letter(*at))
            return dl_refuse(build, "pattern", err,
                             "letters must be M (state space), * (attention), - (feed-forward) or E (experts), got "
                             "'%.1s' at place %d",
                             at, (int)(at - o->pattern) + 1);
    if ((int64_t)strlen(o->pattern) != o->layers)
        return dl_refuse(build, "pattern", err, "must have a letter for each of the layers, %lld, got %zu",
                         (long long)o->layers, strlen(o->pattern));
    if (check_keys(o, build, err) || check_idle_keys(o, build, err)) return err->status;
    if (o->state_groups && o->state_heads % o->state_groups)
        return dl_refuse(build, "state_groups", err, "must divide state_heads, %lld, got %lld",
                         (long long)o->state_heads, (long long)o->state_groups);
    return check_chunk(o, build, err);
}

/* Layers with the same letter are the same one. */
void dl_pattern_lay(struct dl_block *b, struct dl_layer *out, struct dl_arena *arena)
{
    struct dl_layer made[DL_COUNT(letters)];
    bool is_made[DL_COUNT(letters)] = {false};
    b->in_windows = b->o->window > 0 && b->o->window < b->o->seq;
    for (int64_t i = 0; i < b->o->layers; i++) {
        const size_t letter = (size_t)(find_letter(b->o->pattern[i]) - letters);
        if (!is_made[letter]) {
            dl_block_begin(b, &made[letter], "block");
            letters[letter].lay(b);
            dl_block_end(b, arena);
        }
        is_made[letter] = true;
        out[i] = made[letter];
    }
    b->in_windows = false;
}
