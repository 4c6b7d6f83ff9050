#include "strategies/kept_schedules.h"

#include <string.h>

#include "strategies/sequence.h"

enum { most_kept = 8 };

/* All that the order of its items depends on, and which of them are the first or complete a gradient. */
struct key {
    const struct dl_schedule_kind *kind;
    uint32_t stages, micros, chunks, group;
    bool first_forward_differs, last_backward_differs, by_runs;
};

struct dl_kept_schedule {
    struct dl_kept_schedules *of;
    struct key key;
    struct dl_arena *arena;
    struct dl_schedule schedule;
    struct dl_program *programs; /* by stage: sequences and nothing else; NULL: not written yet */
    uint32_t n_users;
};

struct dl_kept_schedules {
    struct dl_kept_schedule *items[most_kept]; /* the oldest first */
    size_t n;
    struct key *checked; /* of all whose items are known to be right, whether they are still here or not */
    size_t n_checked, checked_capacity;
};

static void free_kept(struct dl_kept_schedule *kept)
{
    for (uint32_t i = 0; kept->programs && i < kept->schedule.stages; i++)
        dl_program_release_sequence(&kept->programs[i]);
    dl_free(kept->programs);
    dl_arena_free(kept->arena);
    dl_free(kept);
}

struct dl_kept_schedules *dl_kept_schedules_new(void) { return dl_alloc(sizeof(struct dl_kept_schedules)); }

void dl_kept_schedules_free(struct dl_kept_schedules *k)
{
    for (size_t i = 0; k && i < k->n; i++) free_kept(k->items[i]);
    if (k) dl_free(k->checked);
    dl_free(k);
}

static void remove_at(struct dl_kept_schedules *k, size_t at)
{
    memmove(&k->items[at], &k->items[at + 1], (--k->n - at) * sizeof *k->items);
}

/* Whether there is any. */
static bool make_room(struct dl_kept_schedules *k)
{
    if (k->n < most_kept) return true;
    size_t i = 0;
    while (i < k->n && k->items[i]->n_users) i++;
    if (i == k->n) return false;
    free_kept(k->items[i]);
    remove_at(k, i);
    return true;
}

static struct key key_of(const struct dl_setting *s, const struct dl_schedule_request *wish)
{
    return (struct key){.kind = dl_schedule_named(s->schedule),
                        .stages = wish->stages,
                        .micros = wish->micros,
                        .chunks = wish->chunks,
                        .group = wish->group,
                        .first_forward_differs = s->first_forward_differs,
                        .last_backward_differs = s->last_backward_differs,
                        .by_runs = dl_accumulated(s) == DL_ACCUMULATES_CHUNK};
}

/* Which items are the first or complete a gradient does not change their order. */
static bool same_order(const struct key *a, const struct key *b)
{
    return a->kind == b->kind && a->stages == b->stages && a->micros == b->micros && a->chunks == b->chunks &&
           a->group == b->group;
}

static bool equal(const struct key *a, const struct key *b)
{
    return same_order(a, b) && a->first_forward_differs == b->first_forward_differs &&
           a->last_backward_differs == b->last_backward_differs && a->by_runs == b->by_runs;
}

static struct dl_kept_schedule *find(struct dl_kept_schedules *k, const struct key *key)
{
    size_t i = k->n;
    while (i > 0 && !equal(&k->items[i - 1]->key, key)) i--;
    if (!i) return NULL;
    struct dl_kept_schedule *const found = k->items[i - 1];
    remove_at(k, i - 1);
    return k->items[k->n++] = found;
}

static struct dl_kept_schedule *make(struct dl_kept_schedules *k, const struct key *key,
                                     const struct dl_schedule_request *wish, struct dl_error *err)
{
    struct dl_kept_schedule *const kept = dl_alloc(sizeof *kept);
    kept->of = k;
    kept->key = *key;
    kept->arena = dl_arena_new();
    if (dl_schedule_make(key->kind->name, wish, kept->arena, &kept->schedule, err)) {
        free_kept(kept);
        return NULL;
    }
    return k->items[k->n++] = kept;
}

/* A limit on what is live is looked at anew each time. */
enum dl_status dl_kept_schedule_take(struct dl_kept_schedules *k, const struct dl_setting *setting,
                                     struct dl_arena *arena, struct dl_lowered *l, struct dl_error *err)
{
    const struct dl_schedule_request wish = dl_setting_schedule(setting);
    const struct key key = key_of(setting, &wish);
    l->kept = NULL;
    if (!k || !key.kind || key.kind->uses_times || wish.max_live)
        return dl_schedule_make(setting->schedule, &wish, arena, &l->schedule, err);
    struct dl_kept_schedule *kept = find(k, &key);
    if (!kept && !make_room(k)) return dl_schedule_make(setting->schedule, &wish, arena, &l->schedule, err);
    if (!kept) kept = make(k, &key, &wish, err);
    if (!kept) return err->status;
    kept->n_users++;
    l->kept = kept;
    l->schedule = kept->schedule;
    return DL_OK;
}

/* Items follow from the key, so those that are made again need no second look. */
static enum dl_status check(const struct dl_kept_schedule *kept, struct dl_error *err)
{
    struct dl_kept_schedules *const k = kept->of;
    for (size_t i = 0; i < k->n_checked; i++)
        if (same_order(&k->checked[i], &kept->key)) return DL_OK;
    if (dl_check_items(&kept->schedule, err)) return err->status;
    DL_GROW(k->checked, k->n_checked, k->checked_capacity);
    k->checked[k->n_checked++] = kept->key;
    return DL_OK;
}

static void keep_sequences(struct dl_kept_schedule *kept, struct dl_lowered *l)
{
    kept->programs = dl_alloc(kept->schedule.stages * sizeof *kept->programs);
    for (uint32_t i = 0; i < kept->schedule.stages; i++) {
        dl_program_share_sequence(&kept->programs[i], &l->programs[i]);
        kept->programs[i].shares_sequence = false;
        l->programs[i].shares_sequence = true;
    }
}

enum dl_status dl_kept_sequences_take(struct dl_lowered *l, const struct dl_setting *setting, struct dl_error *err)
{
    struct dl_kept_schedule *const kept = l->kept;
    if (!kept) return dl_write_sequences(l, setting, err);
    if (!kept->programs) {
        if (check(kept, err)) return err->status;
        dl_write_checked_sequences(l, setting);
        keep_sequences(kept, l);
        return DL_OK;
    }
    for (uint32_t i = 0; i < kept->schedule.stages; i++) dl_program_share_sequence(&l->programs[i], &kept->programs[i]);
    return DL_OK;
}

void dl_kept_schedule_give_back(struct dl_kept_schedule *kept)
{
    if (kept) kept->n_users--;
}
