#include "sim/collective/kept.h"

#include <math.h>
#include <string.h>

#include "sim/core/random.h"

struct known {
    struct dl_wish wish; /* without a group */
    const uint32_t *devices;
    uint32_t n_ranks;
    uint64_t version; /* of the condition of the links */
    bool fluid, by_message;
    uint64_t hash; /* of some of these */
    struct dl_together together;
    struct known *next; /* in its row */
};

struct known_ways {
    const uint32_t *from, *to;
    uint32_t n;
    uint64_t version, hash;
    struct dl_ways ways;
    struct known_ways *next; /* in its row */
};

enum { n_rows = 1024, most_devices = 1 << 20 }; /* with some 50 bytes each, and what algorithms plan for them */

struct dl_kept {
    struct dl_arena *arena;
    struct known *rows[n_rows];
    struct known_ways *ways[n_rows];
    size_t n, n_devices; /* of all */
};

struct dl_kept *dl_kept_new(void)
{
    struct dl_kept *const kept = dl_alloc(sizeof *kept);
    kept->arena = dl_arena_new();
    return kept;
}

void dl_kept_free(struct dl_kept *kept)
{
    if (!kept) return;
    dl_arena_free(kept->arena);
    dl_free(kept);
}

size_t dl_kept_count(const struct dl_kept *kept) { return kept->n; }

bool dl_kept_is_full(const struct dl_kept *kept) { return kept->n_devices > most_devices; }

/* ---- finding ---- */

static size_t count_devices(const struct known *k) { return (size_t)k->together.n * (k->n_ranks + k->wish.servers); }

static uint64_t hash_devices(uint64_t hash, const uint32_t *devices, size_t n)
{
    for (size_t i = 0; i < n; i++) hash = (hash ^ devices[i]) * 0x100000001b3; /* FNV-1a's prime */
    return hash;
}

static uint64_t hash_of(const struct known *k)
{
    uint64_t bits;
    memcpy(&bits, &k->wish.bytes, sizeof bits);
    const uint64_t hash = dl_mix(bits ^ dl_mix((uint64_t)k->wish.op << 32 | k->n_ranks));
    return dl_mix(hash_devices(hash, k->devices, count_devices(k)));
}

static bool is_same_wish(const struct dl_wish *a, const struct dl_wish *b)
{
    return a->op == b->op && a->bytes == b->bytes && a->chunks == b->chunks && a->n_alike == b->n_alike &&
           a->servers == b->servers && a->back_fraction == b->back_fraction &&
           dl_payload_equal(&a->payload, &b->payload) && strcmp(a->algorithm, b->algorithm) == 0 &&
           strcmp(a->protocol, b->protocol) == 0;
}

static bool is_same(const struct known *a, const struct known *b)
{
    return a->hash == b->hash && a->n_ranks == b->n_ranks && a->together.n == b->together.n &&
           a->version == b->version && a->fluid == b->fluid && a->by_message == b->by_message &&
           is_same_wish(&a->wish, &b->wish) &&
           memcmp(a->devices, b->devices, count_devices(a) * sizeof *a->devices) == 0;
}

static struct known *find(const struct dl_kept *kept, const struct known *asked)
{
    struct known *k = kept->rows[asked->hash % n_rows];
    while (k && !is_same(k, asked)) k = k->next;
    return k;
}

/* ---- choosing ---- */

/* What was asked, and what is chosen for it, in memory that stays. */
static struct known *copy(struct dl_kept *kept, const struct known *asked, const struct dl_topology *topology)
{
    struct known *const k = dl_arena_alloc(kept->arena, sizeof *k);
    const size_t n_devices = count_devices(asked), n = asked->together.n;
    uint32_t *const devices = dl_arena_alloc(kept->arena, (n_devices + 1) * sizeof *devices);
    struct dl_group *const groups = dl_arena_alloc(kept->arena, n * sizeof *groups);
    memcpy(devices, asked->devices, n_devices * sizeof *devices);
    for (size_t i = 0; i < n; i++)
        dl_group_init(&groups[i], topology, devices + i * (asked->n_ranks + asked->wish.servers), asked->n_ranks,
                      kept->arena);
    *k = *asked;
    k->devices = devices;
    k->wish.algorithm = dl_arena_string(kept->arena, asked->wish.algorithm);
    k->wish.protocol = dl_arena_string(kept->arena, asked->wish.protocol);
    k->together.groups = groups;
    return k;
}

static enum dl_status choose(struct dl_estimator *e, struct known *k, struct dl_error *err)
{
    struct dl_choice *const choices = dl_arena_alloc(e->kept->arena, k->together.n * sizeof *choices);
    for (uint32_t i = 0; i < k->together.n && !err->status; i++) {
        struct dl_wish wish = k->wish;
        wish.group = &k->together.groups[i];
        dl_choose(e, &wish, e->kept->arena, &choices[i], err);
    }
    k->together.choices = choices;
    return err->status ? err->status : dl_choices_together_s(e, choices, k->together.n, &k->together.time_s, err);
}

static void add(struct dl_kept *kept, struct known *k)
{
    struct known **const row = &kept->rows[k->hash % n_rows];
    k->next = *row;
    *row = k;
    kept->n++;
    kept->n_devices += count_devices(k);
}

const struct dl_together *dl_choose_together(struct dl_estimator *e, const struct dl_wish *wish,
                                             const uint32_t *devices, uint32_t n_ranks, uint32_t n_groups,
                                             struct dl_error *err)
{
    struct known asked = {.wish = *wish,
                          .devices = devices,
                          .n_ranks = n_ranks,
                          .version = e->topology->condition->version,
                          .fluid = e->fluid,
                          .by_message = e->by_message,
                          .together.n = n_groups};
    asked.wish.group = NULL;
    asked.hash = hash_of(&asked);
    if (!e->kept) e->kept = dl_kept_new();
    struct known *k = find(e->kept, &asked);
    if (k) {
        for (uint32_t i = 0; i < n_groups; i++) dl_note_choice(e, &k->together.choices[i]);
        return &k->together;
    }
    k = copy(e->kept, &asked, e->topology);
    if (choose(e, k, err)) return NULL;
    add(e->kept, k);
    return &k->together;
}

/* ---- ways ---- */

static bool has_same_ways(const struct known_ways *a, const struct known_ways *b)
{
    return a->hash == b->hash && a->n == b->n && a->version == b->version &&
           memcmp(a->from, b->from, a->n * sizeof *a->from) == 0 && memcmp(a->to, b->to, a->n * sizeof *a->to) == 0;
}

/* Add up the routes of all pairs. */
static enum dl_status add_routes(const struct dl_topology *topology, struct known_ways *k, struct dl_tally *tally,
                                 struct dl_error *err)
{
    struct dl_route route = {0};
    dl_tally_clear(tally);
    for (int reach = 0; reach < DL_N_REACHES; reach++) k->ways.latency_s[reach] = -1;
    for (uint32_t i = 0; i < k->n; i++) {
        if (dl_topology_route(topology, k->from[i], k->to[i], 0, NULL, &route, err)) break;
        for (size_t h = 0; h < route.n_hops; h++) dl_tally_add(tally, route.hops[h].link, route.hops[h].weight);
        double *const longest_s = &k->ways.latency_s[route.reach];
        *longest_s = fmax(*longest_s, route.latency_s);
    }
    dl_route_release(&route);
    return err->status;
}

static struct known_ways *add_ways(struct dl_kept *kept, const struct known_ways *asked, const struct dl_tally *tally)
{
    struct known_ways *const k = dl_arena_alloc(kept->arena, sizeof *k);
    const size_t bytes = asked->n * sizeof *asked->from;
    uint32_t *const devices = dl_arena_alloc(kept->arena, 2 * bytes);
    struct dl_hop *const hops = dl_arena_alloc(kept->arena, tally->n_touched * sizeof *hops);
    struct known_ways **const row = &kept->ways[asked->hash % n_rows];
    memcpy(devices, asked->from, bytes);
    memcpy(devices + asked->n, asked->to, bytes);
    for (size_t i = 0; i < tally->n_touched; i++) hops[i] = tally->touched[i];
    *k = *asked;
    k->from = devices;
    k->to = devices + asked->n;
    k->ways.hops = hops;
    k->ways.n_hops = tally->n_touched;
    k->next = *row;
    *row = k;
    kept->n_devices += 2 * (size_t)asked->n;
    return k;
}

const struct dl_ways *dl_find_ways(struct dl_estimator *e, const uint32_t *from, const uint32_t *to, uint32_t n,
                                   struct dl_error *err)
{
    struct known_ways asked = {.from = from, .to = to, .n = n, .version = e->topology->condition->version};
    asked.hash = dl_mix(hash_devices(hash_devices(n, from, n), to, n));
    if (!e->kept) e->kept = dl_kept_new();
    const struct known_ways *k = e->kept->ways[asked.hash % n_rows];
    while (k && !has_same_ways(k, &asked)) k = k->next;
    if (k) return &k->ways;
    return add_routes(e->topology, &asked, &e->all, err) ? NULL : &add_ways(e->kept, &asked, &e->all)->ways;
}
