/* program_print.c - the programs of a step as text. */
#include "sim/program/program_text.h"

const char *const dl_sends_names[] = {"asynchronous", "batched", "blocking", NULL};
const char *const dl_channel_names[] = {"replicas", "stages", "lockstep", "beside", NULL};
const char *const dl_copy_names[] = {"out", "in", "ahead", NULL};
const char *const dl_item_names[] = {"forward", "backward", "weights", NULL};

const char *const dl_taken_words[] = {"takes_none", "takes_product", "takes_attention", "takes_memory", NULL};

struct printed {
    const struct dl_step *step;
    FILE *out;
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
    print_flag(p, "drawn", m->are_drawn);
    if (m->is_pair) fprintf(p->out, " first %u second %u", m->pair[0], m->pair[1]);
}

static void print_comm(const struct printed *p, size_t number, const struct dl_comm *c)
{
    fprintf(p->out, "collective %zu %s channel %s", number, dl_op_name(c->op), dl_channel_names[c->channel]);
    print_members(p, &c->members);
    print_number(p, "bytes", c->bytes);
    print_number(p, "back_fraction", c->back_fraction);
    if (c->payload.kind == DL_QUANTIZED) print_number(p, "bits", c->payload.bits);
    if (c->payload.kind == DL_TOPK) print_number(p, "ratio", c->payload.ratio);
    print_flag(p, "packed", c->payload.has_kernels);
    if (c->algorithm) fprintf(p->out, " algorithm %s", c->algorithm);
    fprintf(p->out, " cause %s", dl_cause_name(c->cause));
    print_flag(p, "once", c->once);
    print_number(p, "alone_s", c->alone_s);
    for (int i = 0; i < DL_N_CLASSES; i++) print_number(p, dl_taken_words[i], c->taken.fraction[i]);
    print_number(p, "bundles", c->n_bundles);
    if (c->every) fprintf(p->out, " every %u turn %u", c->every, c->turn);
    print_flag(p, "simulated", p->step->plan.calls && p->step->plan.calls[number]);
    fputc('\n', p->out);
}

static void print_copy(const struct printed *p, size_t number, const struct dl_comm *c)
{
    fprintf(p->out, "copy %zu %s", number, dl_copy_names[c->channel - DL_CHANNEL_COPIES_OUT]);
    if (c->path != DL_PATH_HOST) fprintf(p->out, " path %s", dl_path_names[c->path]);
    print_number(p, "bytes", c->bytes);
    fprintf(p->out, " cause %s", dl_cause_name(c->cause));
    print_number(p, "most_bytes_per_s", c->most_bytes_per_s);
    print_number(p, "alone_s", c->alone_s);
    print_flag(p, "simulated", p->step->plan.calls && p->step->plan.calls[number]);
    fputc('\n', p->out);
}

static void print_planned(const struct printed *p, uint32_t n_lockstep_groups)
{
    const bool *const planned = p->step->plan.lockstep_groups;
    if (!planned) return;
    fputs("simulates ", p->out);
    for (uint32_t i = 0; i < n_lockstep_groups; i++) fputc(planned[i] ? '1' : '0', p->out);
    fputc('\n', p->out);
}

/* ---- blocks ---- */

static void print_work(const struct printed *p, const struct dl_instruction *i)
{
    fprintf(p->out, "work cause %s", dl_cause_name(i->cause));
    print_number(p, "device_s", i->device_s);
    print_number(p, "host_s", i->host_s);
    print_number(p, "flop", i->flop);
    print_number(p, "causal_flop", i->counted_flop[DL_FLOP_CAUSAL]);
    print_number(p, "full_flop", i->counted_flop[DL_FLOP_FULL]);
    print_number(p, "bytes", i->bytes);
    if (i->kernel != DL_CLASS_NONE) fprintf(p->out, " kernel %s", dl_class_names[i->kernel]);
    if (i->ground != DL_GROUND_NONE) fprintf(p->out, " ground %s", dl_ground_name(i->ground));
    fprintf(p->out, " name %s\n", i->name);
}

static void print_instruction(const struct printed *p, const struct dl_instruction *i)
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

static void print_memory_op(const struct printed *p, const struct dl_memory_ops *ops, size_t i)
{
    const struct dl_memory_op *const op = &ops->items[i];
    fprintf(p->out, "%s %s layer %u", op->frees ? "free" : "alloc", dl_tensor_names[op->tensor],
            dl_memory_layer(ops, i));
    print_number(p, "bytes", op->frees ? 0 : op->bytes);
    fputc('\n', p->out);
}

static void print_template(const struct printed *p, const struct dl_template *t)
{
    const struct dl_repeated *repeated = t->repeated, *const end = t->repeated + t->n_repeated;
    size_t op = 0, more = 0; /* places than instructions so far */
    for (size_t i = 0; i <= t->length; i++) {
        for (; op < t->memory.n && t->memory.items[op].at == i; op++) print_memory_op(p, &t->memory, op);
        for (; repeated < end && repeated->first + more == i; repeated++) {
            more += repeated->n * (repeated->times - 1);
            if (repeated->times > 1) fprintf(p->out, "repeated %zu instructions %zu\n", repeated->times, repeated->n);
        }
        if (i < t->length) print_instruction(p, &t->instructions[dl_template_at(t, i)]);
    }
    fprintf(p->out, "# = %.6e s of work\n", t->total.seconds);
}

static void print_blocks(const struct printed *p, const struct dl_program *program)
{
    static const char *const kinds[DL_N_TEMPLATES] = {"forward", "backward", "weight gradient", "last gradient",
                                                      "first forward"};
    fputs("# before the first step\nbegin\n", p->out);
    for (size_t i = 0; i < program->begin.n; i++) print_memory_op(p, &program->begin, i);
    for (uint32_t i = 0; i < program->n_chunks * DL_N_TEMPLATES; i++) {
        if (!program->items[i]->n_instructions && !program->items[i]->memory.n) continue;
        fprintf(p->out, "# chunk %u, %s\nblock %u\n", i / DL_N_TEMPLATES, kinds[i % DL_N_TEMPLATES], i);
        print_template(p, program->items[i]);
    }
    fputs("# end of the step\nend\n", p->out);
    print_template(p, &program->end);
}

static void print_item(const struct printed *p, const struct dl_sequenced *s)
{
    fprintf(p->out, "item %s micro %u chunk %u block %u", dl_item_names[s->item.kind], s->item.micro, s->item.chunk,
            s->block);
    if (s->wants != DL_NO_TAG) fprintf(p->out, " wants %u from %u", s->wants, s->from);
    if (s->gives != DL_NO_TAG) fprintf(p->out, " gives %u to %u", s->gives, s->to);
    print_flag(p, "with_next", s->item.with_next);
    fputc('\n', p->out);
}

static void print_stage(const struct printed *p, const struct dl_program *program)
{
    fprintf(p->out, "stage %u chunks %u tags %u", program->stage, program->n_chunks, program->n_tags);
    print_number(p, "sends_bytes", program->send_bytes);
    fputc('\n', p->out);
    print_blocks(p, program);
    for (uint32_t i = 0; i < program->n_sequence; i++) print_item(p, &program->sequence[i]);
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
    print_flag(&p, "receives_drain", s->drains_at_receives && !s->drains_at_sends);
    fputc('\n', out);
    if (s->n_servers) fprintf(out, "servers %u\n", s->n_servers);
    if (s->has_barrier) fputs("barrier\n", out);
    print_planned(&p, n_stages * dl_ranks_count(s->ranks, s->replicas));
    for (size_t i = 0; i < s->n_calls; i++) (s->calls[i].op == DL_COPY ? print_copy : print_comm)(&p, i, &s->calls[i]);
    for (uint32_t i = 0; i < n_stages; i++) print_stage(&p, &s->programs[i]);
}
