/* program_print.c - the programs of a step as text. */
#include "sim/program/program_text.h"

const char *const dl_sends_names[] = {"asynchronous", "batched", "blocking", NULL};
const char *const dl_channel_names[] = {"replicas", "stages", "lockstep", NULL};
const char *const dl_item_names[] = {"forward", "backward", "weights", NULL};

/* What is printed, and the collectives of ranks in lockstep so far, by their numbers. */
struct printed {
    const struct dl_step *step;
    FILE *out;
    const struct dl_comm **in_lockstep;
    size_t n_in_lockstep, capacity;
};

static void print_number(const struct printed *p, const char *key, double value)
{
    if (value != 0) fprintf(p->out, " %s %.17g", key, value);
}

static void print_flag(const struct printed *p, const char *word, bool is_so)
{
    if (is_so) fprintf(p->out, " %s", word);
}

/* ---- ranks and collectives ---- */

static void print_digits(const struct printed *p)
{
    const struct dl_step *const s = p->step;
    for (uint32_t i = 0; i < s->ranks->n_digits; i++) {
        const struct dl_digit *const digit = &s->ranks->digits[i];
        fprintf(p->out, "digit %s values %u stride %u", digit->name, digit->n, digit->stride);
        print_flag(p, "lockstep", s->in_lockstep >> i & 1);
        print_flag(p, "replicas", s->replicas >> i & 1);
        print_flag(p, "stages", s->stages >> i & 1);
        fputc('\n', p->out);
    }
}

static void print_members(const struct printed *p, const struct dl_members *m)
{
    const char *before = " over ";
    for (uint32_t i = 0; i < p->step->ranks->n_digits; i++) {
        if (!(m->digits >> i & 1)) continue;
        fprintf(p->out, "%s%s", before, p->step->ranks->digits[i].name);
        before = ",";
    }
    if (m->is_pair) fprintf(p->out, " first %u second %u", m->pair[0], m->pair[1]);
}

static void print_comm(const struct printed *p, size_t number, const struct dl_comm *c)
{
    fprintf(p->out, "collective %zu %s channel %s", number, dl_op_name(c->op), dl_channel_names[c->channel]);
    print_members(p, &c->members);
    print_number(p, "bytes", c->bytes);
    if (c->payload.kind == DL_QUANTIZED) print_number(p, "bits", c->payload.bits);
    if (c->payload.kind == DL_TOPK) print_number(p, "ratio", c->payload.ratio);
    if (c->algorithm) fprintf(p->out, " algorithm %s", c->algorithm);
    fprintf(p->out, " cause %s", dl_cause_name(c->cause));
    print_number(p, "bundles", c->n_bundles);
    if (c->every) fprintf(p->out, " every %u turn %u", c->every, c->turn);
    fputc('\n', p->out);
}

/* Its number; it is printed before it is used. */
static size_t number_of(struct printed *p, const struct dl_comm *c)
{
    size_t i = 0;
    while (i < p->n_in_lockstep && p->in_lockstep[i] != c) i++;
    if (i < p->n_in_lockstep) return i;
    DL_GROW(p->in_lockstep, p->n_in_lockstep, p->capacity);
    p->in_lockstep[p->n_in_lockstep++] = c;
    return i;
}

static void number_comms(struct printed *p, const struct dl_template *t)
{
    for (size_t i = 0; i < t->n_instructions; i++) {
        if (t->instructions[i].collective) number_of(p, t->instructions[i].collective);
        if (t->instructions[i].in_step) number_of(p, t->instructions[i].in_step);
    }
}

static void print_comms(struct printed *p, uint32_t n_stages)
{
    for (size_t i = 0; i < p->step->n_calls; i++) print_comm(p, i, &p->step->calls[i]);
    for (uint32_t stage = 0; stage < n_stages; stage++) {
        const struct dl_program *const program = &p->step->programs[stage];
        for (uint32_t i = 0; i < program->n_chunks * DL_N_TEMPLATES; i++) number_comms(p, &program->items[i]);
        number_comms(p, &program->end);
    }
    for (size_t i = 0; i < p->n_in_lockstep; i++) print_comm(p, i, p->in_lockstep[i]);
}

/* ---- blocks ---- */

static void print_work(struct printed *p, const struct dl_instruction *i)
{
    fprintf(p->out, "work cause %s", dl_cause_name(i->cause));
    print_number(p, "device_s", i->device_s);
    print_number(p, "host_s", i->host_s);
    print_number(p, "flop", i->flop);
    print_number(p, "causal_flop", i->counted_flop[DL_FLOP_CAUSAL]);
    print_number(p, "full_flop", i->counted_flop[DL_FLOP_FULL]);
    print_number(p, "bytes", i->bytes);
    if (i->ground != DL_GROUND_NONE) fprintf(p->out, " ground %s", dl_ground_name(i->ground));
    if (i->collective) fprintf(p->out, " collective %zu", number_of(p, i->collective));
    if (i->in_step) fprintf(p->out, " played %zu", number_of(p, i->in_step));
    print_flag(p, "beside", i->is_beside);
    fprintf(p->out, " name %s\n", i->name);
}

static void print_instruction(struct printed *p, const struct dl_instruction *i)
{
    if (i->kind == DL_DO) {
        print_work(p, i);
        return;
    }
    const bool is_start = i->kind == DL_START;
    if (i->kind == DL_DRAIN)
        fputs("drain", p->out);
    else if (i->call == DL_EVERY_CALL)
        fputs("wait all", p->out);
    else
        fprintf(p->out, "%s %u", is_start ? "start" : "wait", i->call);
    print_number(p, "host_s", i->host_s);
    fputc('\n', p->out);
}

static void print_memory_op(const struct printed *p, const struct dl_memory_op *op)
{
    fprintf(p->out, "%s %s layer %u", op->frees ? "free" : "alloc", dl_tensor_names[op->tensor], op->layer);
    print_number(p, "bytes", op->frees ? 0 : op->bytes);
    fputc('\n', p->out);
}

static void print_template(struct printed *p, const struct dl_template *t)
{
    size_t op = 0;
    for (size_t i = 0; i <= t->n_instructions; i++) {
        for (; op < t->memory.n && t->memory.items[op].at == i; op++) print_memory_op(p, &t->memory.items[op]);
        if (i < t->n_instructions) print_instruction(p, &t->instructions[i]);
    }
    fprintf(p->out, "# = %.6e s of work\n", t->total.seconds);
}

static void print_blocks(struct printed *p, const struct dl_program *program)
{
    static const char *const kinds[DL_N_TEMPLATES] = {"forward", "backward", "weight gradient", "last gradient"};
    fputs("# before the first step\nbegin\n", p->out);
    for (size_t i = 0; i < program->begin.n; i++) print_memory_op(p, &program->begin.items[i]);
    for (uint32_t i = 0; i < program->n_chunks * DL_N_TEMPLATES; i++) {
        if (!program->items[i].n_instructions && !program->items[i].memory.n) continue;
        fprintf(p->out, "# chunk %u, %s\nblock %u\n", i / DL_N_TEMPLATES, kinds[i % DL_N_TEMPLATES], i);
        print_template(p, &program->items[i]);
    }
    fputs("# end of the step\nend\n", p->out);
    print_template(p, &program->end);
}

static void print_item(const struct printed *p, const struct dl_program *program, const struct dl_sequenced *s)
{
    fprintf(p->out, "item %s micro %u chunk %u block %zu", dl_item_names[s->item.kind], s->item.micro, s->item.chunk,
            (size_t)(s->block - program->items));
    if (s->wants != DL_NO_TAG) fprintf(p->out, " wants %u from %u", s->wants, s->from);
    if (s->gives != DL_NO_TAG) fprintf(p->out, " gives %u to %u", s->gives, s->to);
    print_flag(p, "with_next", s->item.with_next);
    fputc('\n', p->out);
}

static void print_stage(struct printed *p, const struct dl_program *program)
{
    fprintf(p->out, "stage %u chunks %u tags %u", program->stage, program->n_chunks, program->n_tags);
    print_number(p, "sends_bytes", program->send_bytes);
    fputc('\n', p->out);
    print_blocks(p, program);
    for (uint32_t i = 0; i < program->n_sequence; i++) print_item(p, program, &program->sequence[i]);
}

void dl_step_print(const struct dl_step *s, FILE *out)
{
    struct printed p = {.step = s, .out = out};
    const uint32_t n_stages = dl_ranks_count(s->ranks, s->stages);
    fputs("dlsim program 1\n", out);
    print_digits(&p);
    fprintf(out, "sends %s", dl_sends_names[s->sends]);
    print_number(&p, "host_s", s->send_host_s);
    print_number(&p, "messages", s->send_messages);
    print_flag(&p, "drains", s->drains_at_sends);
    fputc('\n', out);
    if (s->n_servers) fprintf(out, "servers %u\n", s->n_servers);
    if (s->has_barrier) fputs("barrier\n", out);
    if (s->plays) fputs("plays ", out);
    for (uint32_t i = 0; s->plays && i < n_stages * dl_ranks_count(s->ranks, s->replicas); i++)
        fputc(s->plays[i] ? '1' : '0', out);
    if (s->plays) fputc('\n', out);
    print_comms(&p, n_stages);
    for (uint32_t i = 0; i < n_stages; i++) print_stage(&p, &s->programs[i]);
    dl_free(p.in_lockstep);
}
