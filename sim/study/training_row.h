/* training_row.h - a measured training step: where and how it ran, and the seconds that it took.
 *
 * Rows come from a CSV file whose columns are the fields below, or from a JSON file (schema dlsim/steps/1) with the
 * same keys in a list of "rows". A row becomes the documents of a session; nothing in this step depends on what was
 * measured. Of two configurations of which only their ratio or difference is published, each is a row, the second
 * right after the first. */
#ifndef DL_STUDY_TRAINING_ROW_H
#define DL_STUDY_TRAINING_ROW_H

#include "sim/report/validation.h"
#include "sim/session/session.h"

/* What a row does not say of a transformer beside its sizes. As GPT: the defaults of a workload file. As Llama: gated,
 * RMSNorm, rotary positions, no biases, no dropout, embedding not tied. By sizes, which a row then assumes: Llama's if
 * it has fewer heads of keys than of queries, or an ffn that is not four times hidden. */
enum dl_row_style { DL_STYLE_BY_SIZES, DL_STYLE_GPT, DL_STYLE_LLAMA };

/* How layers were dealt to stages: the first two as dlsim does it. */
enum dl_stage_rule { DL_STAGES_EVEN, DL_STAGES_UNEVEN, DL_STAGES_COUNT_ENDS, DL_STAGES_BY_WEIGHTS };

/* The device of which a job told its reserved bytes: of its fullest stage, or its rank 0, of the first. */
enum dl_reserved_on { DL_RESERVED_ON_FULLEST, DL_RESERVED_ON_FIRST_STAGE };

/* What a job measured of its own network before it trained: an all-gather and an all-reduce of so many bytes over all
 * its n devices, and their bus bandwidths, (n - 1) / n and 2 (n - 1) / n of the bytes over the time. 0: not measured.
 */
struct dl_tested_network {
    double bytes, allgather_bytes_per_s, allreduce_bytes_per_s;
};

/* 0 or NULL where the source says nothing and the field may be empty. */
struct dl_training_row {
    const char *where; /* "rows.csv:12" */
    const char *file;  /* its path: names of files are relative to it; NULL: none */
    const char *id, *topo, *model, *software, *source;
    const char *schedule, *recompute, *precision, *attention;
    int64_t stage_rule;   /* enum dl_stage_rule */
    const char *strategy; /* NULL, or a file that says all of how the step ran */
    /* Documents that were made in memory, in place of the files of these names; NULL: the files. */
    const char *strategy_text, *workload_text, *software_text;
    const char *workload; /* NULL, or a file in place of the sizes of a transformer */
    const char *optimizer;
    int64_t wide_first_blocks, wide_last_blocks;
    int64_t style; /* enum dl_row_style: what the sizes leave open of a transformer */
    /* Entries of a strategy file: more options of those that the columns stand for, or others beside them. */
    struct dl_json stack;
    const char *stack_text; /* NULL: none */
    const char *assumed;    /* columns that the source does not state */
    const char *note;       /* why what is predicted may differ; NULL: nothing to say */
    int64_t devices, layers, hidden, ffn, heads, kv_heads, seq, vocab, experts, top_k, expert_ffn;
    int64_t global_batch, microbatch, tp, pp, dp, cp, ep, vpp, sp, zero;
    enum dl_quantity quantity; /* of a pair: of the row that ends it */
    bool begins_pair;
    double step_s;          /* or what `quantity` says; 0: not published */
    double tokens_per_s;    /* of a device: what step_s is made of where a source says this; 0: it does not */
    double samples_per_s;   /* the same, of all devices */
    double mfu, hfu;        /* published shares of peak, without and with what is recomputed; 0: not */
    double reserved_bytes;  /* what the allocator held at most; 0: not published */
    int64_t reserved_on;    /* enum dl_reserved_on */
    int64_t attention_flop; /* enum dl_flop_count: how these count attention */
    int64_t ran;            /* enum dl_row_end */
    int64_t tied_embedding; /* -1: as the style says */
    struct dl_tested_network tested;
};

struct dl_training_rows {
    struct dl_training_row *items;
    size_t n, capacity;
    struct dl_no_rows left_out; /* lines of tables that are no rows */
};

/* Add the rows of a text of CSV, or of a document; `path` is that of the file. Release with dl_training_rows_release.
 */
enum dl_status dl_training_rows_parse(const char *text, size_t bytes, const char *path, struct dl_arena *arena,
                                      struct dl_training_rows *rows, struct dl_error *err);
enum dl_status dl_training_rows_add(struct dl_json doc, struct dl_arena *arena, struct dl_training_rows *rows,
                                    struct dl_error *err);
void dl_training_rows_release(struct dl_training_rows *rows);
/* Add the rows of a shipped table (a name without a dot or a slash), or of a file: JSON if its name ends so, else CSV.
 */
enum dl_status dl_training_rows_read(const char *name, struct dl_arena *arena, struct dl_training_rows *rows,
                                     struct dl_error *err);
/* Add the rows of every shipped file of published training steps. */
enum dl_status dl_training_rows_published(struct dl_arena *arena, struct dl_training_rows *rows, struct dl_error *err);

/* A file that the row names. */
struct dl_input dl_row_input(const struct dl_training_row *row, const char *name);
/* What to run, with this micro-batch (which a row that names a strategy does not need); the texts live in the arena. */
enum dl_status dl_training_row_request(const struct dl_training_row *row, int64_t microbatch, struct dl_arena *arena,
                                       struct dl_session_request *out, struct dl_error *err);

/* Add the overrides that make dlsim's machine as good as the one that the job measured, if it did: see row_network.c.
 */
enum dl_status dl_row_network(const struct dl_training_row *row, struct dl_arena *arena, struct dl_session_request *out,
                              struct dl_error *err);

/* Samples of a step of one replica; 0: a strategy file says it, or the row's numbers do not go together. */
int64_t dl_training_row_batch(const struct dl_training_row *row);

#endif
