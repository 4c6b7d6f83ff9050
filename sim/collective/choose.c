#include "sim/collective/choose.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/collective/effort.h"

bool dl_is_auto(const char *name) { return strcmp(name, "auto") == 0; }

static struct dl_collective collective_of(const struct dl_wish *wish, const struct dl_algorithm *algorithm)
{
    return (struct dl_collective){.op = wish->op,
                                  .algorithm = algorithm,
                                  .group = wish->group,
                                  .bytes = wish->bytes,
                                  .back_fraction = wish->back_fraction,
                                  .chunks = wish->chunks,
                                  .servers = wish->servers,
                                  .payload = wish->payload};
}

/* As the software does, so that its pipeline can be simulated piece by piece: where there are few, smaller ones, so
 * that filling the pipeline takes an eighth of the time (NCCL, enqueue.cc, halves chunkSize while there are fewer than
 * eight times the depth). */
static enum dl_status cut_into_pieces(struct dl_collective *c, const struct dl_transport *t, struct dl_error *err)
{
    const double most = 65536, pieces_per_round = 8; /* as --chunks; as NCCL */
    double largest = 0;
    if (t->piece_bytes <= 0)
        return dl_fail(err, DL_IMPOSSIBLE, "--fidelity",
                       "transport %s does not say the piece_bytes of %s; use --fidelity fluid, or --chunks", t->name,
                       c->algorithm->name);
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++)
        largest = fmax(largest, dl_collective_block_bytes(c, lane));
    const double least = pieces_per_round * dl_count_sequential(c, 0);
    c->by_message = true;
    c->chunks = (uint32_t)fmin(fmax(ceil(largest / t->piece_bytes), least), most);
    return DL_OK;
}

static enum dl_status prepare(struct dl_collective *c, const struct dl_estimator *e, const struct dl_wish *wish,
                              struct dl_arena *arena, struct dl_error *err)
{
    if (c->algorithm->has_servers && !wish->servers)
        return dl_fail(err, DL_IMPOSSIBLE, "--devices", "%s needs 1 device more than its %u workers; ask for fewer",
                       c->algorithm->name, wish->group->n);
    if (c->algorithm->prepare && c->algorithm->prepare(c, arena, err)) return err->status;
    if ((e->by_message || e->transport->holds_ports) && c->algorithm->fold == DL_FOLD_SWITCH)
        return dl_fail(err, DL_IMPOSSIBLE, "--fidelity",
                       "%s adds in switches and has no messages from rank to rank; use --fidelity fluid",
                       c->algorithm->name);
    if (c->chunks) return DL_OK;
    c->chunks = 1;
    c->pipelined = e->transport->pipelines && c->algorithm->fold == DL_FOLD_TREE;
    return c->pipelined && e->by_message ? cut_into_pieces(c, e->transport, err) : DL_OK;
}

/* Keep the best protocol for a prepared collective, if it beats what is in `best`. */
static enum dl_status try_protocols(struct dl_estimator *e, const struct dl_wish *wish, const struct dl_collective *c,
                                    struct dl_choice *best, struct dl_error *err)
{
    for (size_t i = 0; i < e->transport->n_protocols; i++) {
        const struct dl_protocol *const p = &e->transport->protocols[i];
        struct dl_estimate estimate;
        if (!p->has_family[c->algorithm->family]) continue;
        if (!dl_is_auto(wish->protocol) && strcmp(wish->protocol, p->name)) continue;
        if (dl_estimate_up_to(e, c, p, best->estimate.presumed_s, &estimate, err)) return err->status;
        if (estimate.time_s < best->faster.time_s)
            best->faster = (struct dl_faster){c->algorithm->name, p->name, estimate.time_s};
        if (estimate.presumed_s >= best->estimate.presumed_s) continue;
        best->collective = *c;
        best->estimate = estimate;
    }
    return DL_OK;
}

/* Pricing all messages of a quadratic algorithm, on all of their links, would take longer than running a good one. What
 * folds may be all that there is. */
static bool is_too_large(const struct dl_collective *c, const struct dl_wish *wish, struct dl_error *err)
{
    const double most = 2e7;
    struct dl_round round;
    double rounds = 0, links = 1;
    if (c->algorithm->fold == DL_FOLD_RING || c->algorithm->fold == DL_FOLD_SWITCH) return false;
    for (uint32_t k = 0; c->algorithm->round(c, 0, k, &round) && rounds * c->group->n <= most; k++) rounds++;
    const double messages = rounds * c->group->n * dl_collective_lanes(c);
    const bool has_no_other = c->op == DL_ALLTOALL && c->algorithm->fold == DL_FOLD_SOURCES;
    if (messages > most || has_no_other || c->algorithm->fold == DL_FOLD_TREE) return messages > most;
    return dl_count_links(c, &links, err) || messages * links * fmax(wish->n_alike, 1) > most;
}

static enum dl_status try_all(struct dl_estimator *e, const struct dl_wish *wish, struct dl_arena *arena,
                              struct dl_choice *out, struct dl_error *err)
{
    for (size_t i = 0; i < dl_algorithm_count(); i++) {
        const struct dl_algorithm *const a = dl_algorithm_get(i);
        if (a->op != wish->op || !a->automatic || !dl_transport_has(e->transport, dl_op_name(a->op), a->name)) continue;
        struct dl_collective c = collective_of(wish, a);
        struct dl_error not_this_one = {0};
        if (prepare(&c, e, wish, arena, &not_this_one) || is_too_large(&c, wish, &not_this_one)) continue;
        if (try_protocols(e, wish, &c, out, err)) return err->status;
    }
    return DL_OK;
}

/* Plans of large groups are large: of all that are tried only the best one's is kept. */
static enum dl_status choose_freely(struct dl_estimator *e, const struct dl_wish *wish, struct dl_arena *arena,
                                    struct dl_choice *out, struct dl_error *err)
{
    const uint32_t large = 64;
    if (wish->group->n < large) return try_all(e, wish, arena, out, err);
    struct dl_arena *const tried = dl_arena_new();
    try_all(e, wish, tried, out, err);
    dl_arena_free(tried);
    if (err->status || !out->collective.algorithm) return err->status;
    out->collective = collective_of(wish, out->collective.algorithm);
    return prepare(&out->collective, e, wish, arena, err);
}

static bool has_protocol(const struct dl_estimator *e, const struct dl_wish *wish, enum dl_family family)
{
    for (size_t i = 0; i < e->transport->n_protocols; i++) {
        const struct dl_protocol *const p = &e->transport->protocols[i];
        if (p->has_family[family] && (dl_is_auto(wish->protocol) || strcmp(wish->protocol, p->name) == 0)) return true;
    }
    return false;
}

size_t dl_possible_algorithms(const struct dl_estimator *e, const struct dl_wish *wish, struct dl_arena *arena,
                              const struct dl_algorithm **out)
{
    size_t n = 0;
    for (size_t i = 0; i < dl_algorithm_count(); i++) {
        const struct dl_algorithm *const a = dl_algorithm_get(i);
        struct dl_collective c = collective_of(wish, a);
        struct dl_error not_this_one = {0};
        if (a->op != wish->op || !dl_transport_has(e->transport, dl_op_name(a->op), a->name) ||
            !has_protocol(e, wish, a->family))
            continue;
        if (!prepare(&c, e, wish, arena, &not_this_one) && !is_too_large(&c, wish, &not_this_one)) out[n++] = a;
    }
    return n;
}

static enum dl_status no_protocol(const struct dl_estimator *e, const struct dl_wish *wish, struct dl_error *err)
{
    char all[128] = "";
    for (size_t i = 0; i < e->transport->n_protocols; i++) {
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", e->transport->protocols[i].name);
    }
    if (dl_is_auto(wish->protocol) && e->by_message)
        return dl_fail(
            err, DL_IMPOSSIBLE, "--fidelity",
            "transport %s has nothing for %s by '%s' that goes message by message here; use --fidelity fluid",
            e->transport->name, dl_op_name(wish->op), wish->algorithm);
    if (dl_is_auto(wish->protocol))
        return dl_fail(err, DL_IMPOSSIBLE, "--algo", "transport %s cannot do %s by '%s' here", e->transport->name,
                       dl_op_name(wish->op), wish->algorithm);
    return dl_fail(err, DL_NOT_FOUND, "--protocol", "transport %s has no protocol '%.60s' for this; it has %s",
                   e->transport->name, wish->protocol, all);
}

/* The fastest is worth telling only if the one chosen is another that takes longer. */
static void judge_faster(struct dl_choice *out)
{
    const double worth_telling = 1.01;
    if (out->estimate.time_s <= worth_telling * out->faster.time_s) out->faster = (struct dl_faster){0};
}

void dl_note_choice(struct dl_estimator *e, const struct dl_choice *choice)
{
    struct dl_tuner_note *const note = &e->note;
    const double lost_s = choice->estimate.time_s - choice->faster.time_s;
    if (!choice->faster.algorithm) return;
    if (note->faster.algorithm && note->time_s - note->faster.time_s >= lost_s) return;
    *note = (struct dl_tuner_note){.op = dl_op_name(choice->collective.op),
                                   .algorithm = choice->collective.algorithm->name,
                                   .protocol = choice->estimate.pace.protocol,
                                   .n_ranks = choice->collective.group->n,
                                   .bytes = choice->collective.bytes,
                                   .time_s = choice->estimate.time_s,
                                   .faster = choice->faster};
}

enum dl_status dl_choose(struct dl_estimator *e, const struct dl_wish *wish, struct dl_arena *arena,
                         struct dl_choice *out, struct dl_error *err)
{
    *out = (struct dl_choice){.estimate = {.presumed_s = INFINITY}, .faster = {.time_s = INFINITY}};
    if (e->fluid && e->transport->holds_ports)
        return dl_fail(err, DL_IMPOSSIBLE, "--fidelity",
                       "transport %s holds ports message by message (port_busy); use --fidelity step",
                       e->transport->name);
    if (dl_is_auto(wish->algorithm)) {
        out->by = e->transport->tuner ? DL_BY_TUNER : DL_BY_LEAST_ESTIMATE;
        choose_freely(e, wish, arena, out, err);
    } else {
        struct dl_collective c = collective_of(wish, NULL);
        if (dl_algorithm_find(wish->op, wish->algorithm, &c.algorithm, err) || prepare(&c, e, wish, arena, err))
            return err->status;
        try_protocols(e, wish, &c, out, err);
    }
    if (!err->status && !out->collective.algorithm) return no_protocol(e, wish, err);
    if (err->status) return err->status;
    judge_faster(out);
    dl_note_choice(e, out);
    return DL_OK;
}

/* Add all bytes of a collective to those of the links; how long it needs them by itself. */
static double book(struct dl_estimator *e, const struct dl_choice *choice, struct dl_error *err)
{
    const struct dl_collective *const c = &choice->collective;
    dl_tally_clear(&e->lane);
    for (uint32_t lane = 0; lane < dl_collective_lanes(c); lane++)
        for (uint32_t which = 0; which < dl_fold_count(c, lane) && !err->status; which++) {
            struct dl_fold fold;
            const struct dl_fold_of of = {lane, which, &e->all};
            dl_fold_lane(c, of, &choice->estimate.pace, &e->round, &fold, err);
            dl_fold_book(&fold, &e->lane);
            dl_fold_book(&fold, &e->all);
            dl_fold_release(&fold);
        }
    return dl_tally_seconds(&e->lane, e->bytes_per_s);
}

enum dl_status dl_choices_together_s(struct dl_estimator *e, const struct dl_choice *choices, uint32_t n, double *out,
                                     struct dl_error *err)
{
    double *const alone_s = dl_alloc(n * sizeof *alone_s);
    dl_tally_clear(&e->all);
    for (uint32_t i = 0; i < n && n > 1 && !err->status; i++) alone_s[i] = book(e, &choices[i], err);
    const double all_s = dl_tally_seconds(&e->all, e->bytes_per_s);
    *out = 0;
    for (uint32_t i = 0; i < n; i++)
        *out = fmax(*out, dl_estimate_crowded_s(&choices[i].estimate, alone_s[i] > 0 ? all_s / alone_s[i] : 1));
    dl_free(alone_s);
    return err->status;
}
