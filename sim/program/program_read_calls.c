/* program_read_calls.c - collectives and copies of a program's text. */
#include <string.h>

#include "sim/program/program_reader.h"

static dl_digits digits_of(struct dl_program_reader *r, const char *list)
{
    const struct dl_ranks *const ranks = &r->out->ranks;
    dl_digits digits = 0;
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, ",");
        uint32_t i = 0;
        while (i < ranks->n_digits && (strlen(ranks->digits[i].name) != n || strncmp(ranks->digits[i].name, at, n)))
            i++;
        if (i == ranks->n_digits) return dl_refuse_words(&r->w, "there is no digit '%.60s'", at), 0;
        digits |= 1u << i;
        at += n + (at[n] == ',');
    }
    return digits;
}

static struct dl_members members_of(struct dl_program_reader *r, enum dl_channel channel)
{
    const struct dl_step *const step = &r->out->step;
    struct dl_members m = {.digits = digits_of(r, dl_required_word(&r->w, "over")),
                           .is_pair = channel == DL_CHANNEL_STAGES,
                           .are_drawn = dl_has_word(&r->w, "drawn")};
    const uint32_t n_stages = dl_ranks_count(&r->out->ranks, step->stages);
    if (m.is_pair ? m.digits != step->stages : (m.digits & ~(step->in_lockstep | step->replicas)) != 0)
        dl_refuse_words(&r->w, "its digits do not belong to its channel");
    if (m.are_drawn && (channel != DL_CHANNEL_REPLICAS || (m.digits & ~step->replicas) ||
                        dl_ranks_count(&r->out->ranks, m.digits) % 2))
        dl_refuse_words(&r->w, "pairs are drawn of an even number of replicas");
    if (!m.is_pair || r->w.err->status) return m;
    m.pair[0] = dl_whole_after(&r->w, "first", n_stages);
    m.pair[1] = dl_whole_after(&r->w, "second", n_stages);
    if (m.pair[0] >= m.pair[1]) dl_refuse_words(&r->w, "the first stage must be before the second");
    return m;
}

static struct dl_payload payload_of(struct dl_program_reader *r)
{
    const double bits = dl_number_after(&r->w, "bits"), ratio = dl_number_after(&r->w, "ratio");
    const bool has_kernels = (bits > 0 || ratio > 0) && dl_has_word(&r->w, "packed");
    if (bits > 0) return (struct dl_payload){.kind = DL_QUANTIZED, .bits = bits, .has_kernels = has_kernels};
    if (ratio > 0) return (struct dl_payload){.kind = DL_TOPK, .ratio = ratio, .has_kernels = has_kernels};
    return (struct dl_payload){.kind = DL_DENSE};
}

/* In which iterations it takes place. */
static void read_turns(struct dl_program_reader *r, struct dl_comm *comm)
{
    const char *const every = dl_word_after(&r->w, "every");
    if (!every) return;
    comm->every = dl_whole_word(&r->w, every, UINT32_MAX);
    if (!comm->every) dl_refuse_words(&r->w, "'every' must be at least 1");
    comm->turn = dl_whole_after(&r->w, "turn", comm->every);
    if (comm->channel != DL_CHANNEL_REPLICAS) dl_refuse_words(&r->w, "only collectives of replicas take turns");
}

/* What only those of ranks in lockstep have; returns whether it is simulated. */
static bool read_lockstep(struct dl_program_reader *r, struct dl_comm *comm)
{
    comm->once = dl_has_word(&r->w, "once");
    comm->alone_s = dl_number_after(&r->w, "alone_s");
    for (int i = DL_CLASS_NONE + 1; i < DL_N_CLASSES; i++)
        comm->taken.fraction[i] = dl_fraction_after(&r->w, dl_taken_words[i]);
    comm->n_bundles = dl_number_after(&r->w, "bundles");
    return !comm->once && dl_has_word(&r->w, "simulated");
}

static void add_call(struct dl_program_reader *r, const struct dl_comm *comm, bool is_simulated)
{
    struct dl_read_step *const out = r->out;
    size_t n = out->n_calls;
    if (dl_whole_word(&r->w, dl_second_word(&r->w), UINT32_MAX) != n)
        dl_refuse_words(&r->w, "'%.60s' is not the next number", r->w.words[1]);
    if (r->w.err->status) return;
    out->is_simulated = n < r->calls_capacity
                            ? out->is_simulated
                            : dl_grow(out->is_simulated, n, &r->calls_capacity, sizeof *out->is_simulated);
    out->is_simulated[n] = is_simulated;
    DL_GROW(out->calls, out->n_calls, out->calls_capacity);
    out->calls[out->n_calls++] = *comm;
}

/* The word after the number; "": it is not there. */
static const char *third_word(struct dl_program_reader *r, const char *missing)
{
    if (r->w.n_words < 3) return dl_refuse_words(&r->w, "needs its number and %s", missing), "";
    r->w.used[2] = true;
    return r->w.words[2];
}

void dl_read_collective(struct dl_program_reader *r)
{
    const char *const operation = third_word(r, "operation");
    if (r->w.err->status) return;
    const enum dl_op op = dl_op_named(operation);
    if (op == DL_N_OPS) dl_refuse_words(&r->w, "there is no operation '%.60s'", operation);
    const enum dl_channel channel =
        (enum dl_channel)dl_word_choice(&r->w, dl_required_word(&r->w, "channel"), dl_channel_names);
    const char *const algorithm = dl_word_after(&r->w, "algorithm");
    struct dl_comm comm = {.op = op,
                           .channel = channel,
                           .members = members_of(r, channel),
                           .bytes = dl_number_after(&r->w, "bytes"),
                           .back_fraction = dl_number_after(&r->w, "back_fraction"),
                           .payload = payload_of(r),
                           .algorithm = algorithm ? dl_arena_string(r->arena, algorithm) : NULL,
                           .cause = dl_read_cause(r)};
    if (comm.back_fraction > (op == DL_HALO)) dl_refuse_words(&r->w, "'back_fraction' is of halos, and at most 1");
    bool is_simulated = false;
    if (dl_comm_may_be_priced(&comm)) is_simulated = read_lockstep(r, &comm);
    read_turns(r, &comm);
    add_call(r, &comm, is_simulated);
}

void dl_read_copy(struct dl_program_reader *r)
{
    const char *const way = third_word(r, "whether it goes out or in");
    if (r->w.err->status) return;
    const char *const path = dl_word_after(&r->w, "path");
    const struct dl_comm comm = {.op = DL_COPY,
                                 .path = path ? (enum dl_path)dl_word_choice(&r->w, path, dl_path_names) : DL_PATH_HOST,
                                 .channel =
                                     DL_CHANNEL_COPIES_OUT + (enum dl_channel)dl_word_choice(&r->w, way, dl_copy_names),
                                 .bytes = dl_number_after(&r->w, "bytes"),
                                 .cause = dl_read_cause(r),
                                 .most_bytes_per_s = dl_number_after(&r->w, "most_bytes_per_s"),
                                 .alone_s = dl_number_after(&r->w, "alone_s")};
    add_call(r, &comm, dl_has_word(&r->w, "simulated"));
}
