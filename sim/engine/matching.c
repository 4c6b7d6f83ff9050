#include "sim/engine/matching.h"

#include "sim/core/memory.h"
#include "sim/core/random.h"

enum { none = 0xffffffffu };

/* Entries stay once made: their number is that of pairs that ever met out of order. */
struct entry {
    uint64_t key;
    uint32_t waiting;     /* receives */
    uint32_t first, last; /* early messages */
    bool used;
};

struct early {
    struct dl_wire_message message;
    uint32_t next;
};

struct dl_matching {
    struct entry *table; /* open addressing, size a power of two */
    size_t size, n_used;
    struct early *early;
    size_t n_early, early_capacity;
    uint32_t free_early;
};

struct dl_matching *dl_matching_new(void)
{
    struct dl_matching *const m = dl_alloc(sizeof *m);
    m->size = 256;
    m->table = dl_alloc(m->size * sizeof *m->table);
    m->free_early = none;
    return m;
}

void dl_matching_free(struct dl_matching *m)
{
    if (!m) return;
    dl_free(m->table);
    dl_free(m->early);
    dl_free(m);
}

static struct entry *probe(const struct dl_matching *m, uint64_t key)
{
    size_t i = dl_mix(key) & (m->size - 1);
    while (m->table[i].used && m->table[i].key != key) i = (i + 1) & (m->size - 1);
    return &m->table[i];
}

static void grow(struct dl_matching *m)
{
    struct entry *const old = m->table;
    const size_t old_size = m->size;
    m->size *= 2;
    m->table = dl_alloc(m->size * sizeof *m->table);
    for (size_t i = 0; i < old_size; i++)
        if (old[i].used) *probe(m, old[i].key) = old[i];
    dl_free(old);
}

static struct entry *find(struct dl_matching *m, uint32_t lane, uint32_t sender)
{
    if (2 * m->n_used >= m->size) grow(m);
    const uint64_t key = (uint64_t)lane << 32 | sender;
    struct entry *const e = probe(m, key);
    if (!e->used) {
        *e = (struct entry){.key = key, .first = none, .last = none, .used = true};
        m->n_used++;
    }
    return e;
}

bool dl_matching_receive(struct dl_matching *m, uint32_t lane, uint32_t sender, struct dl_wire_message *message)
{
    struct entry *const e = find(m, lane, sender);
    if (e->first == none) {
        e->waiting++;
        return false;
    }
    const uint32_t id = e->first;
    *message = m->early[id].message;
    e->first = m->early[id].next;
    if (e->first == none) e->last = none;
    m->early[id].next = m->free_early;
    m->free_early = id;
    return true;
}

static uint32_t keep(struct dl_matching *m, const struct dl_wire_message *message)
{
    uint32_t id = m->free_early;
    if (id == none) {
        DL_GROW(m->early, m->n_early, m->early_capacity);
        id = (uint32_t)m->n_early++;
    } else {
        m->free_early = m->early[id].next;
    }
    m->early[id] = (struct early){.message = *message, .next = none};
    return id;
}

bool dl_matching_deliver(struct dl_matching *m, uint32_t lane, const struct dl_wire_message *message)
{
    struct entry *const e = find(m, lane, message->sender);
    if (e->waiting) {
        e->waiting--;
        return true;
    }
    const uint32_t id = keep(m, message);
    if (e->last == none)
        e->first = id;
    else
        m->early[e->last].next = id;
    e->last = id;
    return false;
}
