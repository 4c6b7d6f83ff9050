/* transformer_options.h - a transformer's workload file as far as it is trained. */
#ifndef DL_MPI_TRANSFORMER_OPTIONS_H
#define DL_MPI_TRANSFORMER_OPTIONS_H

#include "sim/core/json.h"

struct dl_transformer_options {
    size_t hidden, ffn, heads, head_size, seq, vocab;
    size_t experts, top_k, expert_ffn, dense_layers, moe_every; /* experts 0: none */
    bool gelu, bias, causal, learned_positions, embedding_norm, final_norm;
};

/* Refuses what is not trained; `tensor`: matrices are cut over tensor ranks. */
enum dl_status dl_transformer_options_read(struct dl_json doc, bool tensor, struct dl_arena *arena,
                                           struct dl_transformer_options *out, struct dl_error *err);

#endif
