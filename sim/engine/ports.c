#include "sim/engine/ports.h"

#include <stdbool.h>

#include "sim/core/memory.h"
#include "sim/core/random.h"

struct entry {
    struct dl_port_key key;
    struct dl_port port;
};

/* Open addressing over a table of numbers + 1; 0: free. */
struct dl_ports {
    uint32_t *table;
    size_t size; /* a power of two */
    struct entry *entries;
    size_t n, capacity;
};

struct dl_ports *dl_ports_new(void)
{
    struct dl_ports *const p = dl_alloc(sizeof *p);
    p->size = 256;
    p->table = dl_alloc(p->size * sizeof *p->table);
    return p;
}

void dl_ports_free(struct dl_ports *p)
{
    if (!p) return;
    dl_free(p->table);
    dl_free(p->entries);
    dl_free(p);
}

static bool is_same(const struct dl_port_key *a, const struct dl_port_key *b)
{
    return a->lane == b->lane && a->link == b->link && a->to == b->to;
}

static uint32_t *probe(const struct dl_ports *p, const struct dl_port_key *key)
{
    size_t i = dl_mix(dl_mix((uint64_t)key->link << 32 | key->to) ^ key->lane) & (p->size - 1);
    while (p->table[i] && !is_same(&p->entries[p->table[i] - 1].key, key)) i = (i + 1) & (p->size - 1);
    return &p->table[i];
}

static void grow(struct dl_ports *p)
{
    dl_free(p->table);
    p->size *= 2;
    p->table = dl_alloc(p->size * sizeof *p->table);
    for (size_t i = 0; i < p->n; i++) *probe(p, &p->entries[i].key) = (uint32_t)i + 1;
}

uint32_t dl_port_find(struct dl_ports *p, const struct dl_port_key *key)
{
    if (2 * p->n >= p->size) grow(p);
    uint32_t *const found = probe(p, key);
    if (!*found) {
        DL_GROW(p->entries, p->n, p->capacity);
        p->entries[p->n++] = (struct entry){*key, {0, UINT32_MAX, UINT32_MAX}};
        *found = (uint32_t)p->n;
    }
    return *found - 1;
}

struct dl_port *dl_port_at(struct dl_ports *p, uint32_t number) { return &p->entries[number].port; }
