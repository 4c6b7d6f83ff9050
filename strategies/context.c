/* context.c - ranks that share a sequence: each has a part of its tokens, and attention brings them together.
 *
 * ring: keys and values go round, each block of them while attention works on the one before (Liu et al., Ring
 * Attention, arXiv 2310.01889); backward their gradients follow a step behind, and in the end go home. Under a causal
 * mask later tokens have more to do; zigzag gives each rank a part from the front and one from the back, so that all do
 * as much. allgather: all keys and values are fetched first (Llama 3, arXiv 2407.21783, section 3.3.2).
 * alltoall: from tokens to heads and back (DeepSpeed-Ulysses, arXiv 2309.14509). */
#include <math.h>

#include "strategies/resolver.h"
#include "strategies/strategies.h"

enum kind { RING, ALLGATHER, ALLTOALL };
static const char *const kinds[] = {"ring", "allgather", "alltoall", NULL};

struct options {
    int64_t ways, kind;
    bool zigzag;
};
static const struct options defaults = {.ways = 1, .kind = RING};
static const struct dl_field fields[] = {
    {"ways", DL_INT, offsetof(struct options, ways), 1, 65536, false, NULL, "ranks that share a sequence"},
    {"kind", DL_CHOICE, offsetof(struct options, kind), 0, 0, true, kinds,
     "how attention sees all tokens; ring if absent"},
    {"zigzag", DL_BOOL, offsetof(struct options, zigzag), 0, 0, true, NULL,
     "each rank has a part from the front of the sequence and one from its end; false if absent"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    (void)entry, (void)err;
    setting->ways[DL_AXIS_CONTEXT] = (uint32_t)((const struct options *)options)->ways;
    return DL_OK;
}

/* ---- what cannot be ---- */

static enum dl_status check(const void *options, const struct dl_check *what, struct dl_error *err)
{
    const struct options *const o = options;
    const uint32_t ways = (uint32_t)o->ways;
    const struct dl_kernel *const attention = dl_check_find_attention(what);
    if (ways == 1) return DL_OK;
    if (!attention)
        return dl_fail(err, DL_IMPOSSIBLE, what->where, "%s has no attention, so no sequence to share",
                       what->model->name);
    if (attention->kind != DL_KERNEL_ATTENTION)
        return dl_fail(err, DL_IMPOSSIBLE, what->where,
                       "needs fused attention; software %s has it unfused, one with \"attention\": \"flash\" would do",
                       what->setting->software->name);
    const bool in_halves = o->zigzag && o->kind != ALLTOALL;
    if (dl_check_ways(what, ways, attention->m / (in_halves ? 2 : 1),
                      in_halves ? "half of the tokens of a sample" : "the tokens of a sample", err))
        return err->status;
    if (o->kind != ALLTOALL) return DL_OK;
    return dl_check_ways(what, ways, attention->batch / what->model->samples / what->setting->parts.heads,
                         "the heads of a tensor rank", err);
}

/* ---- attention ---- */

struct attention {
    const struct options *o;
    const struct dl_event *ev;
    double ways;
    double query_bytes, key_bytes; /* of the tokens of a rank, in its heads; of keys and values together */
};

/* A rank has at least one head of keys, and after an all-to-all every rank of the group has. */
static struct attention measure(const struct options *o, const struct dl_event *ev, const struct dl_setting *s)
{
    const struct dl_kernel *const k = &ev->kernel;
    const double ways = (double)o->ways;
    const double samples = s->microbatch * s->parts.heads / s->parts.inside;
    const double own_heads = k->batch / s->microbatch / s->parts.heads;
    const double own_key_heads = fmax(own_heads * k->kv_share, o->kind == ALLTOALL ? ways : 1);
    const double a_head = samples * k->m / ways * k->k * dl_precision_bytes(s->precision);
    return (struct attention){
        .o = o, .ev = ev, .ways = ways, .query_bytes = own_heads * a_head, .key_bytes = 2 * own_key_heads * a_head};
}

static enum dl_status communicate(const struct attention *a, enum dl_op op, double bytes, struct dl_stack *below,
                                  struct dl_error *err)
{
    const struct dl_event collective = {.kind = DL_EV_COLLECTIVE,
                                        .pass = a->ev->pass,
                                        .cause = DL_CAUSE_CONTEXT,
                                        .layer = a->ev->layer,
                                        .op = op,
                                        .members.digits = DL_ALONG_CONTEXT,
                                        .bytes = bytes};
    return dl_emit(below, &collective, err);
}

/* In step i a rank works on the keys of the i-th before it. Causal: on its own only half is needed; on others all or
 * nothing, the ways - i later ranks all; in zigzag on half of each. */
static struct dl_event ring_block(const struct attention *a, uint32_t i)
{
    struct dl_event block = *a->ev;
    block.kernel.m /= a->ways;
    block.kernel.n /= a->ways;
    if (!a->ev->kernel.causal || i == 0) return block;
    block.kernel.causal = false;
    if (a->o->zigzag)
        block.kernel.n /= 2;
    else
        block.mean_work = (a->ways - i) / a->ways;
    return block;
}

static enum dl_status ring(const struct attention *a, struct dl_stack *below, struct dl_error *err)
{
    const uint32_t ways = (uint32_t)a->o->ways;
    const bool backward = a->ev->pass == DL_BACKWARD;
    for (uint32_t i = 0; i < ways; i++) {
        struct dl_event block = ring_block(a, i);
        block.op = DL_SENDRECV;
        block.members.digits = DL_ALONG_CONTEXT;
        block.beside = DL_CAUSE_CONTEXT;
        block.bytes = (i + 1 < ways ? a->key_bytes : 0) + (backward && i > 0 ? a->key_bytes : 0);
        if (dl_emit(below, &block, err)) return err->status;
    }
    return backward ? communicate(a, DL_SENDRECV, a->key_bytes, below, err) : DL_OK;
}

/* Of a causal mask the last rank needs 1 - 1 / (2 ways) of its scores, the mean rank half of them. */
static enum dl_status allgather(const struct attention *a, struct dl_stack *below, struct dl_error *err)
{
    struct dl_event part = *a->ev;
    part.kernel.m /= a->ways;
    if (a->ev->kernel.causal && !a->o->zigzag) {
        part.kernel.causal = false;
        part.kernel.n *= 1 - 0.5 / a->ways;
        part.mean_work = 0.5 / (1 - 0.5 / a->ways);
    }
    if (communicate(a, DL_ALLGATHER, a->ways * a->key_bytes, below, err) || dl_emit(below, &part, err))
        return err->status;
    if (a->ev->pass != DL_BACKWARD) return DL_OK;
    return communicate(a, DL_REDUCESCATTER, a->ways * a->key_bytes, below, err);
}

static const struct dl_layout by_tokens = {.cut[DL_TOKEN] = DL_ALONG_CONTEXT};
static const struct dl_layout by_heads = {.cut[DL_INNER] = DL_ALONG_CONTEXT};

/* Of tensors with so many bytes on each rank. */
static enum dl_status hand_over(const struct attention *a, const struct dl_layout *has, const struct dl_layout *needs,
                                double bytes, struct dl_stack *below, struct dl_error *err)
{
    struct dl_move moves[DL_MOST_MOVES];
    const size_t n = dl_resolve(&dl_stack_setting(below)->ranks, has, needs, a->ways * bytes, moves);
    for (size_t i = 0; i < n; i++)
        if (communicate(a, moves[i].op, moves[i].elements, below, err)) return err->status;
    return DL_OK;
}

/* Queries, keys and values go, what attention makes of them comes back; backward the other way round. Selective
 * recomputation has kept what came. */
static enum dl_status alltoall(const struct attention *a, const struct dl_setting *s, struct dl_stack *below,
                               struct dl_error *err)
{
    const bool backward = a->ev->pass == DL_BACKWARD;
    const double three = a->query_bytes + a->key_bytes, one = a->query_bytes;
    struct dl_event part = *a->ev;
    part.kernel.batch /= a->ways;
    if (a->ev->pass == DL_RECOMPUTE && s->recompute == DL_RECOMPUTE_SELECTIVE) return dl_emit(below, &part, err);
    if (hand_over(a, &by_tokens, &by_heads, backward ? one : three, below, err) || dl_emit(below, &part, err))
        return err->status;
    return hand_over(a, &by_heads, &by_tokens, backward ? three : one, below, err);
}

static enum dl_status attend(const struct options *o, const struct dl_event *ev, struct dl_stack *below,
                             struct dl_error *err)
{
    const struct dl_setting *const s = dl_stack_setting(below);
    const struct attention a = measure(o, ev, s);
    if (o->kind == ALLTOALL) return alltoall(&a, s, below, err);
    return o->kind == RING ? ring(&a, below, err) : allgather(&a, below, err);
}

/* ---- everything else: fewer tokens ---- */

static void cut_tokens(struct dl_event *ev, double ways)
{
    const bool of_weights = ev->pass == DL_BACKWARD && ev->gradient == DL_GRADIENT_WEIGHT;
    *(ev->kernel.kind == DL_KERNEL_MEMORY ? &ev->kernel.elements : of_weights ? &ev->kernel.k : &ev->kernel.m) /= ways;
}

static enum dl_status rewrite(const void *options, const struct dl_event *ev, struct dl_stack *below,
                              struct dl_error *err)
{
    const struct options *const o = options;
    if (o->ways == 1) return dl_emit(below, ev, err);
    if (ev->kind == DL_EV_COMPUTE && ev->kernel.kind == DL_KERNEL_ATTENTION) return attend(o, ev, below, err);
    struct dl_event mine = *ev;
    if (ev->kind == DL_EV_COMPUTE) cut_tokens(&mine, (double)o->ways);
    mine.elements /= (double)o->ways;
    mine.enters /= (double)o->ways;
    mine.leaves /= (double)o->ways;
    mine.inside_bytes /= (double)o->ways;
    mine.outside_bytes /= (double)o->ways;
    return dl_emit(below, &mine, err);
}

const struct dl_strategy dl_strategy_context = {
    .name = "context",
    .doc = "sequences divided over `ways` ranks, which exchange keys and values",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .claim = claim,
    .check = check,
    .rewrite = rewrite,
};
