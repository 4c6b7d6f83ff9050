#include "topologies/placement.h"

#include <gsl/gsl_randist.h>
#include <stdlib.h>
#include <string.h>

#include "sim/core/random.h"

static const char option[] = "--placement";

static enum dl_status place_packed(const struct dl_topology *t, uint32_t n_ranks, uint32_t *device)
{
    (void)t;
    for (uint32_t rank = 0; rank < n_ranks; rank++) device[rank] = rank;
    return DL_OK;
}

static enum dl_status place_even(const struct dl_topology *t, uint32_t n_ranks, uint32_t *device)
{
    const uint32_t per_node = t->node.n_devices, n_nodes = (n_ranks + per_node - 1) / per_node;
    const uint32_t each = n_ranks % n_nodes ? per_node : n_ranks / n_nodes;
    for (uint32_t rank = 0; rank < n_ranks; rank++) device[rank] = rank / each * per_node + rank % each;
    return DL_OK;
}

static enum dl_status place_spread(const struct dl_topology *t, uint32_t n_ranks, uint32_t *device)
{
    for (uint32_t rank = 0; rank < n_ranks; rank++) {
        const uint32_t node = rank % t->n_nodes, slot = rank / t->n_nodes;
        device[rank] = node * t->node.n_devices + slot;
    }
    return DL_OK;
}

static enum dl_status place_random(const struct dl_topology *t, uint64_t seed, uint32_t n_ranks, uint32_t *device)
{
    uint32_t *const all = dl_alloc(t->n_devices * sizeof *all);
    for (uint32_t i = 0; i < t->n_devices; i++) all[i] = i;
    gsl_rng *const rng = dl_random_new(seed, "placement", 0);
    gsl_ran_shuffle(rng, all, t->n_devices, sizeof *all);
    gsl_rng_free(rng);
    memcpy(device, all, n_ranks * sizeof *device);
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

static enum dl_status place_list(const struct dl_topology *t, const char *list, uint32_t n_ranks, uint32_t *device,
                                 struct dl_error *err)
{
    bool *const taken = dl_alloc(t->n_devices);
    uint32_t n = 0, next = 0;
    for (const char *text = list;; text++) {
        if (take_device(&text, t, taken, &next, err)) break;
        if (n < n_ranks) device[n] = next;
        n++;
        if (!*text) break;
        if (*text != ',') {
            dl_fail(err, DL_SYNTAX, option, "list must separate devices by commas, got '%.40s'", text);
            break;
        }
    }
    dl_free(taken);
    if (err->status) return err->status;
    if (n != n_ranks)
        return dl_fail(err, DL_RANGE, option, "lists %u devices for %u ranks; list one for each", n, n_ranks);
    return DL_OK;
}

static const char list[] = "list:";

bool dl_placement_is_list(const char *how) { return strncmp(how, list, sizeof list - 1) == 0; }

enum dl_status dl_place(const struct dl_topology *t, const char *how, uint64_t seed, uint32_t n_ranks, uint32_t *device,
                        struct dl_error *err)
{
    if (n_ranks > t->n_devices)
        return dl_fail(err, DL_IMPOSSIBLE, "--devices", "%u ranks need a device each, but %s has %u devices", n_ranks,
                       t->name, t->n_devices);
    if (strcmp(how, "packed") == 0) return place_packed(t, n_ranks, device);
    if (strcmp(how, "even") == 0) return place_even(t, n_ranks, device);
    if (strcmp(how, "spread") == 0) return place_spread(t, n_ranks, device);
    if (strcmp(how, "random") == 0) return place_random(t, seed, n_ranks, device);
    if (dl_placement_is_list(how)) return place_list(t, how + sizeof list - 1, n_ranks, device, err);
    return dl_fail(err, DL_SYNTAX, option, "must be packed, even, spread, random or list:DEVICE,..., got '%.40s'", how);
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
    const bool depends_on_number = strcmp(how, "even") == 0;
    if (!depends_on_number || all > t->n_devices) return dl_place(t, how, seed, all, device, err);
    if (dl_place(t, how, seed, n.ranks, device, err)) return err->status;
    take_free(t, n, device);
    return DL_OK;
}
