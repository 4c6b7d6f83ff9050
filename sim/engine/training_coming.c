/* training_coming.c - what the next events need is fetched while those before them happen.
 *
 * Between two events of a lockstep group come those of thousands of others, each of which reads some kilobytes: more
 * than caches keep. Waiting for the memory would be a third of the time of a large machine's step. */
#include "sim/engine/training_parts.h"

/* The part ends, then the next item begins if its input is there. Of an alarm that is outdated nothing else is read. */
static void fetch_for_part(const struct lockstep_group *c, uint32_t alarm, size_t n_before)
{
    if (n_before == 3) dl_fetch(&c->work, sizeof c->work);
    if (n_before == 3 || alarm != c->work.alarm) return;
    if (n_before == 2) dl_fetch(c, sizeof *c);
    if (n_before == 2 || c->item + 1 >= program_of(c->training, c)->n_sequence) return;
    const struct dl_sequenced *const next = &program_of(c->training, c)->sequence[c->item + 1];
    if (n_before == 1) dl_fetch(next, sizeof *next);
    if (n_before == 0 && next->wants != DL_NO_TAG) dl_fetch(&c->arrived[next->wants], sizeof *c->arrived);
}

static void fetch_for_message(const struct dl_training *t, uint32_t id, size_t n_before)
{
    const struct message *const p = &t->messages[id];
    const struct lockstep_group *const from = &t->lockstep_groups[p->sender];
    const struct lockstep_group *const to = &t->lockstep_groups[p->receiver];
    if (n_before == 3) dl_fetch(p, sizeof *p);
    if (n_before == 2) {
        dl_fetch(to, sizeof *to);
        dl_fetch(from, sizeof *from);
    }
    if (n_before == 1) dl_fetch(&to->arrived[p->tag], sizeof *to->arrived);
}

void dl_training_coming(dl_event_fn done, void *user, uint32_t tag, size_t n_before)
{
    if (done == dl_training_part_ends) fetch_for_part(user, tag, n_before);
    if (done == dl_training_message_arrives) fetch_for_message(user, tag, n_before);
}
