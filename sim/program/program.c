#include "sim/program/program.h"

#include <math.h>

const char *dl_cause_name(enum dl_cause cause)
{
    static const char *const names[DL_N_CAUSES] = {
        [DL_CAUSE_COMPUTE] = "compute",   [DL_CAUSE_RECOMPUTE] = "recompute", [DL_CAUSE_OPTIMIZER] = "optimizer",
        [DL_CAUSE_TENSOR] = "tensor",     [DL_CAUSE_SEQUENCE] = "sequence",   [DL_CAUSE_EXPERT] = "expert",
        [DL_CAUSE_PIPELINE] = "pipeline", [DL_CAUSE_DATA] = "data",           [DL_CAUSE_HOST] = "host",
        [DL_CAUSE_BUBBLE] = "bubble",
    };
    return names[cause];
}

void dl_template_add(struct dl_template *t, const struct dl_instruction *op)
{
    DL_GROW(t->ops, t->n_ops, t->capacity);
    t->ops[t->n_ops++] = *op;
}

void dl_template_fuse(struct dl_template *t)
{
    struct dl_segment s = {0};
    double launched_s = 0;
    for (size_t i = 0; i < t->n_ops; i++) {
        const struct dl_instruction *const op = &t->ops[i];
        launched_s += op->host_s;
        const double wait_s = fmax(launched_s - s.seconds, 0);
        s.by_cause[DL_CAUSE_HOST] += wait_s;
        s.by_cause[op->cause] += op->device_s;
        s.seconds += wait_s + op->device_s;
        s.flop += op->flop;
        s.measured_s += op->measured_s;
    }
    t->fused = s;
}

void dl_program_release(struct dl_program *p)
{
    dl_free(p->items);
    dl_free(p->optimizer.ops);
    *p = (struct dl_program){0};
}

static void print_template(const struct dl_template *t, FILE *out)
{
    for (size_t i = 0; i < t->n_ops; i++)
        fprintf(out, "    %-24s %-10s device %.6e s  host %.6e s  flop %.6e\n", t->ops[i].name,
                dl_cause_name(t->ops[i].cause), t->ops[i].device_s, t->ops[i].host_s, t->ops[i].flop);
    fprintf(out, "    = %.6e s\n", t->fused.seconds);
}

void dl_program_print(const struct dl_program *p, FILE *out)
{
    static const char *const kinds[DL_N_ITEM_KINDS] = {"forward", "backward", "weight gradient"};
    static const char *const calls[] = {"allreduce", "reducescatter", "allgather"};
    fprintf(out, "stage %u: sends %.17g bytes\n", p->stage, p->send_bytes);
    for (uint32_t i = 0; i < p->n_chunks * DL_N_ITEM_KINDS; i++) {
        if (!p->items[i].n_ops) continue;
        fprintf(out, "  chunk %u, %s\n", i / DL_N_ITEM_KINDS, kinds[i % DL_N_ITEM_KINDS]);
        print_template(&p->items[i], out);
    }
    for (size_t i = 0; i < p->n_calls; i++)
        fprintf(out, "  %s of %.17g bytes over the data axis%s\n", calls[p->calls[i].op], p->calls[i].bytes,
                p->calls[i].after_optimizer ? ", after the optimizer" : "");
    fputs("  optimizer\n", out);
    print_template(&p->optimizer, out);
}
