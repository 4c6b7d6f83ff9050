#include "topologies/placement.h"

#include <gsl/gsl_randist.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/random.h"

static const char option[] = "--placement";

/* What a placement gets. */
struct asked {
    const struct dl_topology *t;
    const char *argument; /* what follows its name */
    uint64_t seed;
    uint32_t n_ranks;
};

static enum dl_status place_packed(const struct asked *a, uint32_t *device, struct dl_error *err)
{
    (void)err;
    for (uint32_t rank = 0; rank < a->n_ranks; rank++) device[rank] = rank;
    return DL_OK;
}

static enum dl_status place_even(const struct asked *a, uint32_t *device, struct dl_error *err)
{
    (void)err;
    const uint32_t n_ranks = a->n_ranks, per_node = a->t->node.n_devices, n_nodes = (n_ranks + per_node - 1) / per_node;
    const uint32_t each = n_ranks % n_nodes ? per_node : n_ranks / n_nodes;
    for (uint32_t rank = 0; rank < n_ranks; rank++) device[rank] = rank / each * per_node + rank % each;
    return DL_OK;
}

static enum dl_status place_spread(const struct asked *a, uint32_t *device, struct dl_error *err)
{
    (void)err;
    for (uint32_t rank = 0; rank < a->n_ranks; rank++) {
        const uint32_t node = rank % a->t->n_nodes, slot = rank / a->t->n_nodes;
        device[rank] = node * a->t->node.n_devices + slot;
    }
    return DL_OK;
}

static enum dl_status place_random(const struct asked *a, uint32_t *device, struct dl_error *err)
{
    (void)err;
    const uint32_t n = a->t->n_devices;
    uint32_t *const all = dl_alloc(n * sizeof *all);
    for (uint32_t i = 0; i < n; i++) all[i] = i;
    gsl_rng *const rng = dl_random_new(a->seed, "placement", 0);
    gsl_ran_shuffle(rng, all, n, sizeof *all);
    gsl_rng_free(rng);
    memcpy(device, all, a->n_ranks * sizeof *device);
    dl_free(all);
    return DL_OK;
}

/* Read a number at *text and step over it; false if there is none or it is huge. */
static bool take_number(const char **text, uint32_t *number)
{
    enum { most_digits = 10 };
    const size_t digits = strspn(*text, "0123456789");
    if (!digits || digits > most_digits) return false;
    const unsigned long long value = strtoull(*text, NULL, 10);
    *text += digits;
    *number = (uint32_t)value;
    return value <= UINT32_MAX;
}

static enum dl_status take_device(const char **text, const struct dl_topology *t, bool *taken, uint32_t *device,
                                  struct dl_error *err)
{
    const char *const start = *text;
    if (!take_number(text, device))
        return dl_fail(err, DL_SYNTAX, option, "list must hold device numbers such as list:3,1,2, got '%.40s'", start);
    if (*device >= t->n_devices)
        return dl_fail(err, DL_RANGE, option, "there is no device %u: the devices of %s are 0 to %u", *device, t->name,
                       t->n_devices - 1);
    if (taken[*device])
        return dl_fail(err, DL_RANGE, option, "device %u is listed twice: a device holds one rank", *device);
    taken[*device] = true;
    return DL_OK;
}

static enum dl_status place_list(const struct asked *a, uint32_t *device, struct dl_error *err)
{
    bool *const taken = dl_alloc(a->t->n_devices);
    uint32_t n = 0, next = 0;
    for (const char *text = a->argument;; text++) {
        if (take_device(&text, a->t, taken, &next, err)) break;
        if (n < a->n_ranks) device[n] = next;
        n++;
        if (!*text) break;
        if (*text != ',') {
            dl_fail(err, DL_SYNTAX, option, "list must separate devices by commas, got '%.40s'", text);
            break;
        }
    }
    dl_free(taken);
    if (err->status) return err->status;
    if (n != a->n_ranks)
        return dl_fail(err, DL_RANGE, option, "lists %u devices for %u ranks; list one for each", n, a->n_ranks);
    return DL_OK;
}

static const struct placement {
    const char *name;
    enum dl_status (*place)(const struct asked *a, uint32_t *device, struct dl_error *err);
    bool names_devices;     /* an argument follows its name */
    bool depends_on_number; /* where a rank goes depends on how many there are */
} placements[] = {{"packed", place_packed, false, false},
                  {"even", place_even, false, true},
                  {"spread", place_spread, false, false},
                  {"random", place_random, false, false},
                  {"list:", place_list, true, false}};

/* NULL: there is none. */
static const struct placement *find(const char *how)
{
    for (size_t i = 0; i < DL_COUNT(placements); i++) {
        const struct placement *const p = &placements[i];
        const size_t length = strlen(p->name);
        if (strncmp(how, p->name, length) == 0 && (p->names_devices || !how[length])) return p;
    }
    return NULL;
}

bool dl_placement_is_list(const char *how)
{
    const struct placement *const p = find(how);
    return p && p->names_devices;
}

enum dl_status dl_place(const struct dl_topology *t, const char *how, uint64_t seed, uint32_t n_ranks, uint32_t *device,
                        struct dl_error *err)
{
    if (n_ranks > t->n_devices)
        return dl_fail(err, DL_IMPOSSIBLE, "--devices", "%u ranks need a device each, but %s has %u devices", n_ranks,
                       t->name, t->n_devices);
    const struct placement *const p = find(how);
    if (!p)
        return dl_fail(err, DL_SYNTAX, option, "must be packed, even, spread, random or list:DEVICE,..., got '%.40s'",
                       how);
    return p->place(&(struct asked){t, how + strlen(p->name), seed, n_ranks}, device, err);
}

/* The first free devices after that of the last rank. */
static void take_free(const struct dl_topology *t, struct dl_places n, uint32_t *device)
{
    bool *const taken = dl_alloc(t->n_devices);
    for (uint32_t rank = 0; rank < n.ranks; rank++) taken[device[rank]] = true;
    uint32_t next = device[n.ranks - 1];
    for (uint32_t i = 0; i < n.servers; i++) {
        while (taken[next]) next = (next + 1) % t->n_devices;
        taken[next] = true;
        device[n.ranks + i] = next;
    }
    dl_free(taken);
}

enum dl_status dl_place_with_servers(const struct dl_topology *t, const char *how, uint64_t seed, struct dl_places n,
                                     uint32_t *device, struct dl_error *err)
{
    const uint32_t all = n.ranks + n.servers;
    const struct placement *const p = find(how);
    if (!p || !p->depends_on_number || all > t->n_devices) return dl_place(t, how, seed, all, device, err);
    if (dl_place(t, how, seed, n.ranks, device, err)) return err->status;
    take_free(t, n, device);
    return DL_OK;
}
