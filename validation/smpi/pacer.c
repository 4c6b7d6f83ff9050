/* pacer.c - computing takes simulated time: what dlsim's own programs, of the same files, say.
 *
 * A template of dlsim's is a list of kernels and exchanges. The trainer's exchanges are those of the template, in the
 * same order; where they are not, this tells. */
#include "validation/mpi/pacer.h"

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <stdio.h>

#include "sim/program/segments.h"
#include "sim/session/session.h"
#include "validation/mpi/train.h"

struct dl_pacer {
    struct dl_session session;
    const struct dl_train *train;
    const struct dl_template *at;
    size_t next;              /* place in it */
    size_t unknown, left_out; /* exchanges that the trainer alone has, or dlsim alone */
};

static const double start_s = 1; /* after all that happens before */

enum dl_status dl_pacer_new(struct dl_train *t, struct dl_error *err)
{
    const struct dl_train_options *const o = t->options;
    if (!o->topo) return dl_fail(err, DL_KEY, "--topo", "is missing: the machine whose devices compute");
    struct dl_pacer *const p = dl_alloc(sizeof *p);
    t->timeline.pacer = p;
    p->train = t;
    if (dl_session_open(&p->session, &(struct dl_session_request){.topo = {o->topo, NULL},
                                                                  .strategy = {o->strategy, NULL},
                                                                  .workload = {o->workload, NULL},
                                                                  .transport = "ideal",
                                                                  .devices = o->devices,
                                                                  .set = o->set}))
        return dl_fail(err, p->session.err.status, NULL, "%s", p->session.err.text);
    t->schedule = p->session.lowered.schedule; /* its order may depend on what things cost */
    return DL_OK;
}

void dl_pacer_start(struct dl_pacer *p)
{
    (void)p;
    sg_actor_sleep_for(start_s - simgrid_get_clock());
}

/* ---- templates ---- */

static bool completes_gradients(const struct dl_pacer *p, const struct dl_item *item)
{
    const struct dl_schedule *const s = &p->train->schedule;
    const uint32_t stage = p->train->at[DL_AXIS_PIPELINE];
    if (!p->train->s->last_backward_differs || item->kind != (s->splits_backward ? DL_ITEM_W : DL_ITEM_B)) return false;
    for (const struct dl_item *later = item + 1; later < s->items[stage] + s->n_items[stage]; later++)
        if (later->kind == item->kind && later->chunk == item->chunk) return false;
    return true;
}

static bool comes_first(const struct dl_pacer *p, const struct dl_item *item)
{
    const struct dl_schedule *const s = &p->train->schedule;
    const uint32_t stage = p->train->at[DL_AXIS_PIPELINE];
    return p->train->s->first_forward_differs &&
           dl_schedule_is_first_forward(s, stage, (uint32_t)(item - s->items[stage]));
}

void dl_pacer_begin(struct dl_pacer *p, const struct dl_item *item)
{
    const struct dl_program *const program = &p->session.lowered.programs[p->train->at[DL_AXIS_PIPELINE]];
    p->next = 0;
    p->at = &program->end;
    if (!item) return;
    const int kind = completes_gradients(p, item) ? DL_TEMPLATE_LAST
                     : comes_first(p, item)       ? DL_TEMPLATE_FIRST
                                                  : (int)item->kind;
    p->at = program->items[item->chunk * DL_N_TEMPLATES + kind];
}

/* ---- instructions ---- */

static const struct dl_instruction *instruction_at(const struct dl_pacer *p, size_t place)
{
    return &p->at->instructions[dl_template_at(p->at, place)];
}

/* Only prices of kernels have a ground. */
static bool is_kernel(const struct dl_instruction *i) { return i->kind == DL_DO && i->ground != DL_GROUND_NONE; }

static bool goes_in_step(enum dl_cause cause)
{
    return cause == DL_CAUSE_TENSOR || cause == DL_CAUSE_SEQUENCE || cause == DL_CAUSE_EXPERT;
}

/* An exchange of ranks in lockstep is where it is waited for. */
static bool is_sought(const struct dl_pacer *p, const struct dl_instruction *i, enum dl_instruction_kind kind,
                      enum dl_cause cause)
{
    const struct dl_comm *const calls = p->session.lowered.calls;
    if (dl_may_be_priced(i, calls)) return kind == DL_DO && i->kind == DL_WAIT && calls[i->call].cause == cause;
    return !is_kernel(i) && i->kind == kind && (kind != DL_DO || i->cause == cause);
}

/* Kernels before the place `end` take their time; exchanges among them were not made. */
static void spend_until(struct dl_pacer *p, size_t end)
{
    double seconds = 0;
    for (; p->next < end; p->next++) {
        const struct dl_instruction *const i = instruction_at(p, p->next);
        if (is_kernel(i))
            seconds += i->device_s;
        else if ((i->kind == DL_WAIT) == dl_may_be_priced(i, p->session.lowered.calls))
            p->left_out++;
    }
    if (seconds > 0) sg_actor_sleep_for(seconds);
}

void dl_pacer_reach(struct dl_pacer *p, enum dl_instruction_kind kind, enum dl_cause cause)
{
    if (!p || !p->at || (kind == DL_DO && !goes_in_step(cause))) return;
    size_t i = p->next;
    while (i < p->at->length && !is_sought(p, instruction_at(p, i), kind, cause)) i++;
    if (i == p->at->length) {
        p->unknown += kind != DL_WAIT;
        return;
    }
    spend_until(p, i);
    p->next++;
}

void dl_pacer_end(struct dl_pacer *p)
{
    spend_until(p, p->at->length);
    p->at = NULL;
}

void dl_pacer_free(struct dl_pacer *p)
{
    if (!p) return;
    if (p->unknown || p->left_out)
        fprintf(stderr, "dlsim-train: rank %d: %zu exchanges are the trainer's alone, %zu dlsim's alone\n",
                p->train->rank, p->unknown, p->left_out);
    dl_session_close(&p->session);
    dl_free(p);
}
