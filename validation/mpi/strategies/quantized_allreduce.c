/* quantized_allreduce.c - gradients sent with fewer bits, or only the largest of them.
 *
 *   qsgd     `bits` bits a value, rounded at random so that the mean is right (Alistarh et al., NeurIPS 2017)
 *   one_bit  signs; what they lose is added the next time (Seide et al. 2014; Tang et al., ICML 2021)
 *   top_k    the largest of the values; the rest is added the next time (SparCML, Renggli et al., SC19)
 *
 * The first two send each member its part of everyone's values, packed; it adds them, packs the sum, and all gather
 * these. Both packings lose, and with one_bit both remember. The third gathers what everyone picked. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "strategies/choices.h"
#include "validation/mpi/packing.h"
#include "validation/mpi/train.h"

static const double default_bits = 8, default_ratio = 0.01;

/* ---- packed parts ---- */

static size_t packed_bytes_of(const struct dl_train *t, size_t n, int part, int parts)
{
    return dl_packed_bytes(dl_part_of(n, (size_t)part, (size_t)parts).n, t->lossy_bits);
}

/* What goes out is packed from values plus the error of last time, if that is kept. */
static void pack(const struct dl_train *t, dl_real *values, dl_real *error, size_t n, char *out)
{
    for (size_t i = 0; i < n && error; i++) values[i] += error[i];
    if (error) memcpy(error, values, n * sizeof *error);
    dl_pack(values, n, t->lossy_bits, t->lossy_random, out);
    if (!error) return;
    dl_real *const sent = dl_alloc((n + 1) * sizeof *sent);
    dl_unpack_add(out, n, t->lossy_bits, sent);
    for (size_t i = 0; i < n; i++) error[i] -= sent[i];
    dl_free(sent);
}

struct packets {
    char *out, *in;
    void **at;
    size_t *bytes, *offset;
};

static struct packets packets_new(const struct dl_train *t, size_t n, const struct dl_team *team)
{
    const size_t members = (size_t)team->n;
    struct packets p = {.at = dl_alloc(2 * members * sizeof(void *)), .bytes = dl_alloc(3 * members * sizeof(size_t))};
    size_t all = 0;
    p.offset = p.bytes + 2 * members;
    for (int i = 0; i < team->n; i++) {
        p.offset[i] = all;
        p.bytes[i] = packed_bytes_of(t, n, i, team->n);
        p.bytes[members + (size_t)i] = packed_bytes_of(t, n, team->rank, team->n);
        all += p.bytes[i];
    }
    p.out = dl_alloc(all);
    p.in = dl_alloc(p.bytes[members] * members);
    for (size_t i = 0; i < members; i++) {
        p.at[i] = p.out + p.offset[i];
        p.at[members + i] = p.in + i * p.bytes[members];
    }
    return p;
}

static void packets_free(struct packets *p)
{
    dl_free(p->out);
    dl_free(p->in);
    dl_free(p->at);
    dl_free(p->bytes);
}

/* Error of this rank's values first, then that of the sum of its own part. */
static void sum_packed(struct dl_train *t, struct dl_bucket *b, const struct dl_team *team)
{
    const size_t members = (size_t)team->n, me = (size_t)team->rank;
    const struct dl_range own = dl_part_of(b->n, me, members);
    struct packets p = packets_new(t, b->n, team);
    for (size_t i = 0; i < members; i++) {
        const struct dl_range part = dl_part_of(b->n, i, members);
        pack(t, b->gradients + part.from, b->error ? b->error + part.from : NULL, part.n, p.at[i]);
    }
    dl_pairwise_alltoall(team, &(struct dl_pairwise){p.at, p.at + members, p.bytes, p.bytes + members});
    dl_real *const sum = dl_alloc((own.n + 1) * sizeof *sum);
    for (size_t i = 0; i < members; i++) dl_unpack_add(p.at[members + i], own.n, t->lossy_bits, sum);
    pack(t, sum, b->error ? b->error + b->n : NULL, own.n, p.at[me]);
    dl_ring_gather_bytes(team, p.out, p.bytes, p.offset);
    memset(b->gradients, 0, b->n * sizeof *b->gradients);
    for (size_t i = 0; i < members; i++) {
        const struct dl_range part = dl_part_of(b->n, i, members);
        dl_unpack_add(p.at[i], part.n, t->lossy_bits, b->gradients + part.from);
    }
    dl_free(sum);
    packets_free(&p);
}

/* ---- the largest ---- */

struct pick {
    uint32_t at;
    float value;
};

static int larger_first(const void *a, const void *b)
{
    const struct pick *const x = a, *const y = b;
    const float p = fabsf(x->value), q = fabsf(y->value);
    if (p != q) return p > q ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static void sum_largest(struct dl_train *t, struct dl_bucket *b, const struct dl_team *team)
{
    const size_t members = (size_t)team->n, n = (size_t)ceil((double)b->n * t->lossy_ratio);
    struct pick *const mine = dl_alloc(b->n * sizeof *mine), *const all = dl_alloc(members * n * sizeof *all);
    size_t *const bytes = dl_alloc(2 * members * sizeof *bytes);
    for (size_t i = 0; i < b->n; i++) {
        b->error[i] += b->gradients[i];
        mine[i] = (struct pick){(uint32_t)i, (float)b->error[i]};
    }
    qsort(mine, b->n, sizeof *mine, larger_first);
    for (size_t i = 0; i < n; i++) b->error[mine[i].at] -= (dl_real)mine[i].value;
    memcpy(all + (size_t)team->rank * n, mine, n * sizeof *mine);
    for (size_t i = 0; i < members; i++) {
        bytes[i] = n * sizeof *all;
        bytes[members + i] = i * bytes[i];
    }
    dl_ring_gather_bytes(team, all, bytes, bytes + members);
    memset(b->gradients, 0, b->n * sizeof *b->gradients);
    for (size_t i = 0; i < members * n; i++) b->gradients[all[i].at] += (dl_real)all[i].value;
    dl_free(mine);
    dl_free(all);
    dl_free(bytes);
}

/* ---- the strategy ---- */

static enum dl_status begin(struct dl_train *t, const struct dl_stack *level, struct dl_error *err)
{
    const double method = dl_option_number(level, "method"), bits = dl_option_number(level, "bits");
    const double ratio = dl_option_number(level, "ratio");
    if (t->s->zero_stage)
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "is not trained beside zero; leave one of them out");
    if (method == DL_LOSSY_QSGD && (bits == 1 || bits > 16))
        return dl_fail(err, DL_IMPOSSIBLE, level->where, "'bits' must be 2 to 16 to be trained, got %g", bits);
    if (dl_check_buckets(t, level, err)) return err->status;
    t->lossy_bits = method == DL_LOSSY_ONE_BIT ? 1 : (unsigned)(bits > 0 ? bits : default_bits);
    t->lossy_ratio = ratio > 0 ? ratio : default_ratio;
    t->exchange = method == DL_LOSSY_TOP_K ? sum_largest : sum_packed;
    t->keeps_error = method != DL_LOSSY_QSGD;
    return DL_OK;
}

static void prepare(struct dl_train *t)
{
    t->lossy_random = dl_random_new(t->options->seed, "rounding", (uint64_t)t->rank);
    for (size_t i = 0; i < t->n_buckets && t->keeps_error; i++) {
        struct dl_bucket *const b = &t->buckets[i];
        b->error = dl_alloc((2 * b->n + 1) * sizeof *b->error); /* of its own values, and of a part of the sums */
    }
}

const struct dl_real_strategy dl_real_quantized_allreduce = {
    .name = "quantized_allreduce", .begin = begin, .prepare = prepare};
