#include "sim/session/machines.h"

#include <assert.h>
#include <string.h>

/* Of all that are kept, with 32 to 48 bytes each: two of the largest machine that is shipped. */
enum { most_links = 5 << 18 };

struct kept {
    struct dl_arena *arena;
    struct dl_json doc; /* owned */
    uint32_t n_devices; /* that were asked for */
    struct dl_topology *topology;
    double *bytes_per_s;                  /* NULL: not yet asked for */
    double efficiency[DL_MAX_LINK_KINDS]; /* that these are for */
    struct dl_engine_link *links;         /* with these rates; NULL: not yet asked for */
    struct dl_kept *choices;              /* NULL: none yet */
    const void *owner_of_choices;
    size_t n_users;
};

struct dl_machines {
    struct kept **kept; /* the last was taken last */
    size_t n, capacity;
};

struct dl_machines *dl_machines_new(void) { return dl_alloc(sizeof(struct dl_machines)); }

static void forget_rates(struct kept *k)
{
    dl_free(k->bytes_per_s);
    dl_free(k->links);
    k->links = NULL;
    dl_kept_free(k->choices);
    k->choices = NULL;
}

static void free_kept(struct kept *k)
{
    dl_topology_free(k->topology);
    forget_rates(k);
    json_decref(k->doc.value);
    dl_arena_free(k->arena);
    dl_free(k);
}

void dl_machines_free(struct dl_machines *m)
{
    if (!m) return;
    for (size_t i = 0; i < m->n; i++) {
        assert(!m->kept[i]->n_users);
        free_kept(m->kept[i]);
    }
    dl_free(m->kept);
    dl_free(m);
}

static void remove_at(struct dl_machines *m, size_t i)
{
    memmove(m->kept + i, m->kept + i + 1, (m->n - i - 1) * sizeof *m->kept);
    m->n--;
}

static void add(struct dl_machines *m, struct kept *k)
{
    DL_GROW(m->kept, m->n, m->capacity);
    m->kept[m->n++] = k;
}

static size_t count_links(const struct dl_machines *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++) n += m->kept[i]->topology->n_links;
    return n;
}

static void make_room(struct dl_machines *m)
{
    for (size_t i = 0; i < m->n && count_links(m) > most_links;) {
        struct kept *const k = m->kept[i];
        if (k->n_users) {
            i++;
            continue;
        }
        remove_at(m, i);
        free_kept(k);
    }
}

static bool is_same_text(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static bool is_for(const struct kept *k, struct dl_json doc, uint32_t n_devices)
{
    return k->n_devices == n_devices && is_same_text(k->doc.where, doc.where) && is_same_text(k->doc.file, doc.file) &&
           json_equal(k->doc.value, doc.value);
}

/* It becomes the one that was taken last. */
static struct kept *find(struct dl_machines *m, struct dl_json doc, uint32_t n_devices)
{
    for (size_t i = m->n; i-- > 0;) {
        struct kept *const k = m->kept[i];
        if (!is_for(k, doc, n_devices)) continue;
        remove_at(m, i);
        add(m, k);
        return k;
    }
    return NULL;
}

static enum dl_status build(struct kept *k, struct dl_error *err)
{
    struct dl_topology *slice = NULL;
    if (dl_topology_read(k->doc, k->arena, &k->topology, err)) return err->status;
    if (k->n_devices == DL_WHOLE_MACHINE) return DL_OK;
    if (dl_topology_slice(k->topology, k->n_devices, &slice, err)) return err->status;
    if (!slice) return DL_OK;
    dl_topology_free(k->topology);
    k->topology = slice;
    return DL_OK;
}

static struct kept *make(struct dl_machines *m, struct dl_json doc, uint32_t n_devices, struct dl_error *err)
{
    struct kept *const k = dl_alloc(sizeof *k);
    k->arena = dl_arena_new();
    k->doc = (struct dl_json){.value = json_incref(doc.value),
                              .where = dl_arena_string(k->arena, doc.where),
                              .file = doc.file ? dl_arena_string(k->arena, doc.file) : NULL};
    k->n_devices = n_devices;
    if (build(k, err)) {
        free_kept(k);
        return NULL;
    }
    add(m, k);
    return k;
}

enum dl_status dl_machines_take(struct dl_machines *m, struct dl_json doc, uint32_t n_devices, struct dl_topology **out,
                                struct dl_error *err)
{
    struct kept *k = find(m, doc, n_devices);
    if (!k) k = make(m, doc, n_devices, err);
    if (!k) return err->status;
    k->n_users++;
    *out = k->topology;
    make_room(m);
    return DL_OK;
}

size_t dl_machines_count(const struct dl_machines *m) { return m->n; }

static struct kept *keeper_of(const struct dl_machines *m, const struct dl_topology *topology)
{
    size_t i = m->n;
    while (m->kept[i - 1]->topology != topology) i--;
    return m->kept[i - 1];
}

void dl_machines_give_back(struct dl_machines *m, struct dl_topology *topology)
{
    if (!topology) return;
    if (topology->condition->fraction) dl_condition_reset(topology->condition);
    keeper_of(m, topology)->n_users--;
}

double *dl_machines_rates(struct dl_machines *m, const struct dl_topology *topology,
                          const struct dl_transport *transport)
{
    struct kept *const k = keeper_of(m, topology);
    assert(k->n_users == 1);
    if (k->bytes_per_s && memcmp(k->efficiency, transport->efficiency, sizeof k->efficiency) == 0)
        return k->bytes_per_s;
    forget_rates(k);
    k->bytes_per_s = dl_transport_rates(transport, topology);
    memcpy(k->efficiency, transport->efficiency, sizeof k->efficiency);
    return k->bytes_per_s;
}

const struct dl_engine_link *dl_machines_links(struct dl_machines *m, const struct dl_topology *topology)
{
    struct kept *const k = keeper_of(m, topology);
    if (!k->links) k->links = dl_engine_links(k->bytes_per_s, topology->n_links);
    return k->links;
}

struct dl_kept *dl_machines_choices(struct dl_machines *m, const struct dl_topology *topology, const void *owner)
{
    struct kept *const k = keeper_of(m, topology);
    assert(k->n_users == 1);
    if (k->choices && k->owner_of_choices == owner && !dl_kept_is_full(k->choices)) return k->choices;
    dl_kept_free(k->choices);
    k->owner_of_choices = owner;
    return k->choices = dl_kept_new();
}
