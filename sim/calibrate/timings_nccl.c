/* timings_nccl.c - tables of nccl-tests and rccl-tests: "all_reduce_perf", "all_gather_perf", ...
 *
 *     # Collective test starting: all_reduce_perf
 *     #  Rank  0 Group  0 Pid  1946 on node-a device  0 [0000:0f:00] NVIDIA A100-SXM4-80GB
 *     #       size     count  type  redop  root    time  algbw  busbw  #wrong    time  algbw  busbw  #wrong
 *     #        (B)  (elements)                    (us) (GB/s) (GB/s)            (us) (GB/s) (GB/s)
 *            8192      2048 float    sum    -1   21.30   0.38   0.67       0   20.90   0.39   0.69       0
 *
 * Times out of place and in place are two rows of the same bytes. Old versions say no program, and leave cells before
 * the first time empty, so that columns are counted from the right. */
#include <stdlib.h>
#include <string.h>

#include "sim/calibrate/timings_formats.h"

static const struct {
    const char *program;
    enum dl_op op;
} programs[] = {
    {"all_reduce_perf", DL_ALLREDUCE}, {"all_gather_perf", DL_ALLGATHER}, {"reduce_scatter_perf", DL_REDUCESCATTER},
    {"alltoall_perf", DL_ALLTOALL},    {"broadcast_perf", DL_BROADCAST},  {"reduce_perf", DL_REDUCE},
    {"gather_perf", DL_GATHER},        {"scatter_perf", DL_SCATTER},      {"sendrecv_perf", DL_SENDRECV},
};

struct reading {
    struct dl_timings *t;
    struct dl_arena *arena;
    struct dl_lines lines;
    size_t from_right[2]; /* of the columns "time"; 0: there is none */
    const char **hosts;
    size_t n_hosts, hosts_capacity;
    size_t ranks_capacity, slots_capacity;
    uint32_t *host, *slot; /* by rank, as long as they grow */
};

static bool is_header(const struct dl_timing_words *w)
{
    return w->n && w->items[0][0] == '#' && dl_words_have(w, "size") && dl_words_have(w, "count") &&
           dl_words_have(w, "time") && dl_words_have(w, "busbw");
}

static bool is_nccl(const char *text)
{
    struct dl_arena *const arena = dl_arena_new();
    struct dl_lines lines = {.rest = text};
    struct dl_timing_words words;
    bool found = false;
    while (!found && dl_lines_next(&lines, arena, &words)) found = is_header(&words);
    dl_arena_free(arena);
    return found;
}

static void read_header(struct reading *r, const struct dl_timing_words *w)
{
    size_t n = 0;
    memset(r->from_right, 0, sizeof r->from_right);
    for (size_t i = 0; i < w->n && n < DL_COUNT(r->from_right); i++)
        if (strcmp(w->items[i], "time") == 0) r->from_right[n++] = w->n - i;
}

/* The name stands in the head, or in a command line that was kept; a path may be before it, "_mpi" behind. */
static enum dl_status read_program(struct reading *r, const struct dl_timing_words *w, struct dl_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        const char *const slash = strrchr(w->items[i], '/'), *const name = slash ? slash + 1 : w->items[i];
        for (size_t p = 0; p < DL_COUNT(programs); p++) {
            if (strncmp(name, programs[p].program, strlen(programs[p].program))) continue;
            if (r->t->op != DL_N_OPS && r->t->op != programs[p].op)
                return dl_fail(err, DL_IMPOSSIBLE, dl_lines_place(&r->lines, r->t, r->arena),
                               "begins a second table, of %s; give each a file of its own", programs[p].program);
            r->t->op = programs[p].op;
        }
    }
    return DL_OK;
}

static uint32_t host_of(struct reading *r, const char *name)
{
    for (size_t i = 0; i < r->n_hosts; i++)
        if (strcmp(r->hosts[i], name) == 0) return (uint32_t)i;
    DL_GROW(r->hosts, r->n_hosts, r->hosts_capacity);
    r->hosts[r->n_hosts++] = name;
    return (uint32_t)r->n_hosts - 1;
}

static const char *word_after(const struct dl_timing_words *w, const char *word)
{
    for (size_t i = 0; i + 1 < w->n; i++)
        if (strcmp(w->items[i], word) == 0) return w->items[i + 1];
    return NULL;
}

/* "# Rank 0 Group 0 Pid 1946 on node-a device 0 [...] NVIDIA ...". Ranks come in order. */
static enum dl_status read_rank(struct reading *r, const struct dl_timing_words *w, struct dl_error *err)
{
    const char *const host = word_after(w, "on");
    double rank, device;
    if (w->n < 3 || strcmp(w->items[0], "#") || strcmp(w->items[1], "Rank")) return DL_OK;
    if (!host || !dl_is_number(w->items[2], &rank) || !word_after(w, "device") ||
        !dl_is_number(word_after(w, "device"), &device) || !(device >= 0 && device < UINT16_MAX))
        return DL_OK;
    if (rank != r->t->n_ranks)
        return dl_fail(err, DL_IMPOSSIBLE, dl_lines_place(&r->lines, r->t, r->arena),
                       "rank %u was expected, not %.15g: all ranks of one run, each once", r->t->n_ranks, rank);
    DL_GROW(r->host, r->t->n_ranks, r->ranks_capacity);
    DL_GROW(r->slot, r->t->n_ranks, r->slots_capacity);
    r->host[r->t->n_ranks] = host_of(r, host);
    r->slot[r->t->n_ranks++] = (uint32_t)device;
    return DL_OK;
}

/* Rows begin with a whole number; what the libraries print between them does not. */
static bool is_row(const struct reading *r, const struct dl_timing_words *w)
{
    return r->from_right[0] && w->n && strspn(w->items[0], "0123456789") == strlen(w->items[0]);
}

static enum dl_status read_row(struct reading *r, const struct dl_timing_words *w, struct dl_error *err)
{
    const double s_per_us = 1e-6;
    const char *const where = dl_lines_place(&r->lines, r->t, r->arena);
    const size_t least_before = 2; /* size and count */
    const double bytes = strtod(w->items[0], NULL);
    double us;
    if (w->n < r->from_right[0] + least_before)
        return dl_fail(err, DL_SYNTAX, where, "has %zu cells; the head of the table has more", w->n);
    for (size_t i = 0; i < DL_COUNT(r->from_right) && r->from_right[i]; i++) {
        const char *const cell = w->items[w->n - r->from_right[i]];
        if (strcmp(cell, "N/A") == 0) continue;
        if (!dl_is_number(cell, &us)) return dl_fail(err, DL_SYNTAX, where, "'%.40s' is no time", cell);
        if (dl_timings_add(r->t, (struct dl_timing){bytes, us * s_per_us}, where, err)) return err->status;
    }
    return DL_OK;
}

static enum dl_status read_line(struct reading *r, const struct dl_timing_words *w, struct dl_error *err)
{
    if (is_header(w)) {
        read_header(r, w);
        return DL_OK;
    }
    if (is_row(r, w)) return read_row(r, w, err);
    return read_program(r, w, err) || read_rank(r, w, err) ? err->status : DL_OK;
}

static void keep_ranks(struct reading *r)
{
    const size_t bytes = r->t->n_ranks * sizeof *r->host;
    if (!bytes) return;
    r->t->host = memcpy(dl_arena_alloc(r->arena, bytes), r->host, bytes);
    r->t->slot = memcpy(dl_arena_alloc(r->arena, bytes), r->slot, bytes);
}

static enum dl_status read_nccl(const char *text, struct dl_arena *arena, struct dl_timings *t, struct dl_error *err)
{
    struct reading r = {.t = t, .arena = arena, .lines = {.rest = text}};
    struct dl_timing_words words;
    while (!err->status && dl_lines_next(&r.lines, arena, &words)) read_line(&r, &words, err);
    keep_ranks(&r);
    dl_free(r.host);
    dl_free(r.slot);
    dl_free(r.hosts);
    return err->status;
}

const struct dl_timings_format dl_timings_nccl = {.name = "nccl-tests", .is = is_nccl, .read = read_nccl};
