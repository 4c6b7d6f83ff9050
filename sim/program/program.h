/* program.h - what the ranks of one pipeline stage execute in a training step.
 *
 * A role is the set of ranks that share a program: all ranks of a stage. The program is a sequence of items (forward or
 * backward of a micro-batch through a chunk), with the messages that they need and make. Each item refers to a
 * template, because the same ops come again for every micro-batch. After the items come the collectives over gradients
 * and the optimizer. */
#ifndef DL_PROGRAM_PROGRAM_H
#define DL_PROGRAM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/core/memory.h"
#include "sim/program/comm.h"
#include "sim/program/tensors.h"

/* How a price came about; NONE: it is no kernel's. */
enum dl_ground { DL_GROUND_NONE, DL_GROUND_MEASURED, DL_GROUND_INTERPOLATED, DL_GROUND_MODELLED, DL_N_GROUNDS };
const char *dl_ground_name(enum dl_ground ground);

/* How the products of attention are counted under a causal mask, whichever of them a kernel leaves out: those that the
 * mask leaves, half of them; or all, as Megatron-LM (SC21, eq. 3; Korthikanti et al., appendix A) and PaLM (appendix B)
 * count. */
enum dl_flop_count { DL_FLOP_CAUSAL, DL_FLOP_FULL, DL_N_FLOP_COUNTS };
extern const char *const dl_flop_counts[]; /* their names; then NULL */

enum dl_instruction_kind {
    DL_DO,    /* one kernel, or other work whose time is known */
    DL_START, /* a collective begins as soon as all its ranks have come here; nobody waits */
    DL_WAIT, /* until it is done, or, for DL_EVERY_CALL, all that were started among replicas; the host does not wait */
    DL_DRAIN, /* the host goes on when the device has come here */
};

#define DL_EVERY_CALL UINT32_MAX

struct dl_instruction {
    enum dl_instruction_kind kind;
    const char *name;
    enum dl_cause cause;
    double device_s; /* on the device */
    double host_s;   /* on the host, to launch it; the host runs ahead of the device until it is drained */
    double flop;     /* that the kernel does */
    double bytes;    /* that it must move at least */
    double counted_flop[DL_N_FLOP_COUNTS];
    enum dl_kernel_class kernel;
    enum dl_ground ground; /* of device_s */
    uint32_t call;         /* DL_START, DL_WAIT: which collective of the step */
};

/* A stretch of timed work with its causes; they sum to `seconds`. */
struct dl_segment {
    double seconds;
    double network_s; /* of these, collectives and copies that are priced */
    double by_cause[DL_N_CAUSES];
    double by_ground[DL_N_GROUNDS]; /* of what devices do; waiting for the host is none of it */
    double by_class[DL_N_CLASSES];  /* of compute, recompute and optimizer */
    double flop;
    double counted_flop[DL_N_FLOP_COUNTS];
};

/* Instructions between two that others can see, as one. Host and device run side by side: with the device ready at t
 * and the host at h, the device ends at max(t + segment.seconds, h + behind_host_s) and the host at h + host_s. */
struct dl_part {
    enum dl_instruction_kind kind;
    double host_s;
    double behind_host_s;      /* DL_DO: of the device after the host began, if it was free long before */
    double behind_network_s;   /* of that, what is priced since the device last waited for the host */
    struct dl_segment segment; /* DL_DO: of the device alone */
    uint32_t call;             /* DL_START, DL_WAIT */
    size_t first, end;         /* DL_DO: its places, from the first to the one before the end */
};

/* A template as the engine goes through it. */
struct dl_parts {
    struct dl_part *items;
    size_t n, capacity;
};

/* Which collectives of ranks in lockstep are simulated on the links, where they may meet others; those that are not
 * take their alone_s, as work. */
struct dl_plan {
    const bool *calls;           /* by call; NULL: none are */
    const bool *lockstep_groups; /* stage by stage: on those, and on others only copies; NULL: on all */
};

/* The n instructions from `first` on come so many times in a row, as those of layers that are alike do. */
struct dl_repeated {
    size_t first, n, times;
    const void *of; /* whose they are; OPTIONAL */
};

/* What repeats itself is written once. A place counts every time: instruction by instruction as they are executed. */
struct dl_template {
    const struct dl_template *like; /* OPTIONAL: all that it has is that one's, which stays as long and as it is */
    struct dl_instruction *instructions;
    size_t n_instructions, capacity;
    struct dl_repeated *repeated; /* in order */
    size_t n_repeated, repeated_capacity;
    size_t length;               /* places */
    struct dl_memory_ops memory; /* in the order of the places that they come before */
    struct dl_segment total;     /* all of its work, priced, if host and device begin together */
    /* By dl_template_fuse. */
    const struct dl_comm *calls; /* of the step */
    struct dl_parts planned;     /* with the plan's calls simulated */
    struct dl_parts priced;      /* without; empty: as planned */
};

/* Forward, backward, weight gradient; whichever of the last two completes a gradient, for the last micro-batch; and the
 * forward of the first one, where it differs. */
enum dl_item_kind { DL_ITEM_F, DL_ITEM_B, DL_ITEM_W };
enum { DL_TEMPLATE_LAST = 3, DL_TEMPLATE_FIRST = 4, DL_N_TEMPLATES = 5 };

struct dl_item {
    enum dl_item_kind kind;
    uint32_t micro, chunk; /* chunk of this stage, from 0 */
    bool with_next;        /* one step with the item after it: they start when all inputs are there and hand on when all
                              is done. B with its W: a whole backward; F with B and W: interleaved layer by layer. */
};

/* An item in the sequence of a stage, with the messages that go between items. A tag tells the messages of a receiver
 * apart; what a stage hands on to itself is one too, which needs no network. */
struct dl_sequenced {
    struct dl_item item;
    uint32_t block;       /* of the items of its program */
    uint32_t wants, from; /* the tag that it needs, from that stage; or DL_NO_TAG */
    uint32_t gives, to;   /* the tag of its result, at that stage; or DL_NO_TAG */
};
#define DL_NO_TAG UINT32_MAX

/* Each item from `first` to the one before `end` is the item a period before it, so many micro-batches later: with the
 * same block and partners, and tags that differ by as many. See repeats.h. */
struct dl_repeats {
    uint32_t first, end;
    uint32_t period; /* items; 0: nothing repeats itself */
    uint32_t micros;
};

struct dl_program {
    uint32_t stage, n_chunks;
    struct dl_template **items; /* [chunk * DL_N_TEMPLATES + kind]; the same one may be in several programs */
    struct dl_template *own;    /* those that belong to this program; NULL: to whoever made them, and they stay there */
    struct dl_memory_ops begin; /* what is there before the first step, and stays */
    struct dl_template end;     /* of the step: gradients, optimizer */
    struct dl_sequenced *sequence;
    uint32_t n_sequence, n_tags;
    /* Of the sequence, by dl_program_note_sequence and dl_repeats_note. */
    uint32_t *uses;   /* by block: how often it is there */
    uint32_t *blocks; /* that are there, in the order in which they come first */
    uint32_t n_blocks;
    struct dl_repeats repeats;
    bool shares_sequence; /* it belongs to somebody else, with all that is noted of it */
    double send_bytes;    /* of the activations that leave a chunk for another stage, of all ranks in step */
};

void dl_template_add(struct dl_template *t, const struct dl_instruction *instruction);
void dl_template_append(struct dl_template *t, const struct dl_instruction *instructions, size_t n);
/* Before that instruction, which must come after all that repeat themselves. */
void dl_template_insert(struct dl_template *t, size_t at, const struct dl_instruction *instruction);
/* The last n are those of something; and whether they still are: then they come once more. */
void dl_template_note(struct dl_template *t, size_t n, const void *of);
bool dl_template_again(struct dl_template *t, const void *of);
/* The instruction at that place, by its number; how often an instruction comes; and to write each as often, in
 * instructions of its own: first in those that are like others. */
size_t dl_template_at(const struct dl_template *t, size_t place);
size_t dl_template_times(const struct dl_template *t, size_t instruction);
void dl_template_unfold(struct dl_template *t);
/* An empty one becomes like another, with the same work and the memory of layers that are so many further. */
void dl_template_share(struct dl_template *t, const struct dl_template *other, uint32_t further);
void dl_template_release(struct dl_template *t);
static inline uint32_t dl_program_n_items(const struct dl_program *p) { return p->n_chunks * DL_N_TEMPLATES; }
/* Room for the items of its chunks, which point nowhere yet; or to empty ones of its own. */
void dl_program_make_items(struct dl_program *p);
void dl_program_make_own_items(struct dl_program *p);
static inline const struct dl_template *dl_item_block(const struct dl_program *p, const struct dl_sequenced *s)
{
    return p->items[s->block];
}
/* Once its sequence is complete. */
void dl_program_note_sequence(struct dl_program *p);
/* Take the sequence of another program, which must outlive this one, and all that is noted of it. */
void dl_program_share_sequence(struct dl_program *p, const struct dl_program *other);
void dl_program_release_sequence(struct dl_program *p);
void dl_program_release(struct dl_program *p);

#endif
