/* explain_parts.h - what a formula counts before it is told: messages by their latency, the most loaded links, bytes to
 * add and to pack. Internal to explain_*.c. */
#ifndef DL_REPORT_EXPLAIN_PARTS_H
#define DL_REPORT_EXPLAIN_PARTS_H

#include "sim/report/explain_formula.h"

/* A message that is waited for. */
struct dl_alpha {
    double seconds, wire_s; /* all of it; of it, the latencies of links */
    enum dl_reach reach;
    bool is_above;     /* it is larger than the protocol's limit */
    bool is_mean;      /* of the hops that a piece meets */
    uint32_t from, to; /* devices of one of them */
    double n;
};

/* The most loaded link of some rounds. */
struct dl_loaded {
    uint32_t link;
    double bytes, n; /* of one round; how many rounds */
};

struct dl_counted {
    const struct dl_formula_of *of;
    const struct dl_collective *collective;
    const struct dl_pace *pace;
    struct dl_alpha *alphas;
    size_t n_alphas, alphas_capacity;
    struct dl_loaded *loads;
    size_t n_loads, loads_capacity;
    double sent_bytes, n_steps; /* payload of the busiest rank; steps that follow each other */
    double added_bytes, packed_bytes;
    struct dl_loaded longest; /* of the round that takes longest */
    struct dl_loaded busiest; /* of all rounds together, one chunk */
    struct dl_route route;    /* scratch */
    struct dl_error *err;
};

/* By folds. */
void dl_count_fold(struct dl_counted *x);
/* By rounds, and only latencies of these, which folds of trees have too. */
void dl_count_rounds(struct dl_counted *x);
void dl_count_latencies(struct dl_counted *x);

/* Payload of one message. */
double dl_round_payload_bytes(const struct dl_counted *x, uint32_t lane, const struct dl_round *round);
/* What a rank does each time that the round comes: it packs what it sends, unpacks and adds all that comes. */
struct dl_round_work {
    double added_bytes, packed_bytes;
};
struct dl_round_work dl_round_work(const struct dl_counted *x, uint32_t lane, const struct dl_round *round);

/* The latency of a message from rank to rank, whose route is then in x->route; false: there is no way. */
bool dl_alpha_of(struct dl_counted *x, uint32_t from, uint32_t to, double payload, const struct dl_load *load,
                 struct dl_alpha *out);
void dl_count_alpha(struct dl_counted *x, const struct dl_alpha *alpha, double n);
/* The most loaded link of a tally, whose bytes are those of n rounds; its bytes are 0 if nothing moves. */
struct dl_loaded dl_most_loaded(const struct dl_counted *x, const struct dl_tally *tally, double n);
void dl_count_load(struct dl_counted *x, const struct dl_tally *tally, double n);

/* A formula being told. */
struct dl_told_formula {
    struct dl_explanation *e;
    const struct dl_counted *x;
    struct dl_json protocol, family; /* of the transport file */
    const struct dl_protocol *figures;
    struct dl_formula_sums *sums;
};

static inline const char *number(const struct dl_told_formula *t, double x) { return dl_explain_number(t->e, x); }

static inline struct dl_json below(const struct dl_told_formula *t, struct dl_json object, const char *key)
{
    return dl_json_member(object, key, t->e->arena);
}

/* Of a table by kind of link, {"nvlink3": x, "*": y}. */
struct dl_json dl_told_entry(const struct dl_told_formula *t, struct dl_json table, const char *kind);
/* Add a term of one collective, as often as that comes; returns the seconds of all of them. */
double dl_tell_term(const struct dl_told_formula *t, const char *part, double seconds, const char *what,
                    const char *expression);
/* explain_bytes.c, after start and latency have been told. */
void dl_tell_moves(const struct dl_told_formula *t);

#endif
