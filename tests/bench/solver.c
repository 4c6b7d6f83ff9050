/* solver.c - prints how many flows a second each engine completes while so many are live, each replaced when it ends.
 *
 *   disjoint     every flow has a link of its own
 *   8 per uplink its own link, then one that it shares with seven others
 *   random       host to random host over leaves of 32 hosts and 16 spines, all links alike */
#define _GNU_SOURCE /* fork, pipe, alarm, clock_gettime */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sim/core/memory.h"
#include "sim/core/random.h"
#include "sim/engine/engine.h"
#include "sim/engine/flows.h"

static const double link_bytes_per_s = 25e9, mean_bytes = 1e6, latency_s = 2e-6;
static const double budget_s = 1; /* of a measurement */
enum { patience_s = 20, flows_per_look = 64, flows_per_uplink = 8, hosts_per_leaf = 32, n_spines = 16, max_path = 4 };

struct driver {
    const char *name;
    const struct dl_engine_kind *kind; /* NULL: dl_flows without SimGrid */
};

struct load {
    const struct pattern *pattern;
    struct dl_engine *engine; /* or flows */
    struct dl_flows *flows;
    gsl_rng *random;
    uint32_t n_live;
    size_t n_done;
    double begin_s, spent_s;
};

struct pattern {
    const char *name;
    size_t (*n_links)(uint32_t n_live);
    /* The path of the flow that takes this place; returns its length. */
    size_t (*path)(struct load *load, uint32_t place, uint32_t *links);
};

static size_t disjoint_links(uint32_t n_live) { return n_live; }

static size_t disjoint_path(struct load *load, uint32_t place, uint32_t *links)
{
    (void)load;
    links[0] = place;
    return 1;
}

static size_t uplink_links(uint32_t n_live) { return n_live + n_live / flows_per_uplink + 1; }

static size_t uplink_path(struct load *load, uint32_t place, uint32_t *links)
{
    links[0] = place;
    links[1] = load->n_live + place / flows_per_uplink;
    return 2;
}

static uint32_t n_leaves(uint32_t n_hosts) { return (n_hosts + hosts_per_leaf - 1) / hosts_per_leaf; }

/* Up and down at every host, up and down between every leaf and spine. */
static size_t fabric_links(uint32_t n_live) { return 2 * (n_live + n_leaves(n_live) * n_spines); }

static size_t fabric_path(struct load *load, uint32_t place, uint32_t *links)
{
    const uint32_t n = load->n_live, uplinks = n_leaves(n) * n_spines;
    const uint32_t to = (place + 1 + (uint32_t)gsl_rng_uniform_int(load->random, n - 1)) % n;
    const uint32_t spine = (uint32_t)gsl_rng_uniform_int(load->random, n_spines);
    size_t length = 0;
    links[length++] = place;
    if (place / hosts_per_leaf != to / hosts_per_leaf) {
        links[length++] = 2 * n + place / hosts_per_leaf * n_spines + spine;
        links[length++] = 2 * n + uplinks + to / hosts_per_leaf * n_spines + spine;
    }
    links[length++] = n + to;
    return length;
}

static const struct pattern patterns[] = {{"disjoint", disjoint_links, disjoint_path},
                                          {"8 per uplink", uplink_links, uplink_path},
                                          {"random", fabric_links, fabric_path}};

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void replace(void *user, uint32_t place);

static void begin(struct load *load, uint32_t place)
{
    uint32_t links[max_path];
    struct dl_hop hops[max_path];
    const size_t n_hops = load->pattern->path(load, place, links);
    for (size_t i = 0; i < n_hops; i++) hops[i] = (struct dl_hop){links[i], 1};
    const struct dl_bundle bundle = {.hops = hops,
                                     .n_hops = n_hops,
                                     .latency_s = latency_s,
                                     .bytes = mean_bytes * (0.5 + gsl_rng_uniform(load->random)),
                                     .rate_cap_bytes_per_s = INFINITY,
                                     .done = replace,
                                     .user = load,
                                     .tag = place};
    if (load->flows)
        dl_flows_start(load->flows, &bundle);
    else
        load->engine->kind->start(load->engine, &bundle);
}

/* Flows that end after the budget is spent are not replaced, so the run comes to its end. */
static void replace(void *user, uint32_t place)
{
    struct load *const load = user;
    if (load->spent_s > budget_s) return;
    if (++load->n_done % flows_per_look == 0) load->spent_s = cpu_s() - load->begin_s;
    begin(load, place);
}

static double flows_per_s(const struct driver *driver, const struct pattern *pattern, uint32_t n_live)
{
    struct load load = {.pattern = pattern, .n_live = n_live, .random = dl_random_new(1, "solver", n_live)};
    const size_t n_links = pattern->n_links(n_live);
    struct dl_engine_link *const links = dl_alloc(n_links * sizeof *links);
    for (size_t i = 0; i < n_links; i++) links[i].bandwidth_bytes_per_s = link_bytes_per_s;
    if (driver->kind)
        load.engine = driver->kind->create(links, n_links);
    else
        load.flows = dl_flows_new(links, n_links);
    load.begin_s = cpu_s();
    for (uint32_t place = 0; place < n_live; place++) begin(&load, place);
    if (driver->kind)
        driver->kind->run(load.engine);
    else
        while (load.spent_s <= budget_s && isfinite(dl_flows_next_s(load.flows))) dl_flows_advance(load.flows);
    return (double)load.n_done / load.spent_s;
}

/* In a child, as SimGrid wants it; NAN if it takes too long. */
static double measure(const struct driver *driver, const struct pattern *pattern, uint32_t n_live)
{
    int ends[2];
    double rate = NAN;
    if (pipe(ends)) return NAN;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(patience_s);
        rate = flows_per_s(driver, pattern, n_live);
        _exit(write(ends[1], &rate, sizeof rate) != sizeof rate);
    }
    close(ends[1]);
    if (read(ends[0], &rate, sizeof rate) != sizeof rate) rate = NAN;
    close(ends[0]);
    waitpid(child, NULL, 0);
    return rate;
}

static void print_rate(double rate)
{
    if (isnan(rate))
        printf(" %11s", "too slow");
    else if (rate >= 1e6)
        printf(" %10.2fM", rate / 1e6);
    else
        printf(" %10.1fk", rate / 1e3);
}

int main(void)
{
    static const uint32_t live[] = {100, 1000, 10000};
    const struct driver drivers[] = {
        {"own, alone", NULL}, {"own, in SimGrid", dl_engine_get(0)}, {"SimGrid's CM02", dl_engine_get(1)}};
    printf("flows completed per CPU second while so many are live\n%-14s %-16s", "pattern", "engine");
    for (size_t i = 0; i < DL_COUNT(live); i++) printf(" %11u", live[i]);
    putchar('\n');
    for (size_t p = 0; p < DL_COUNT(patterns); p++)
        for (size_t d = 0; d < DL_COUNT(drivers); d++) {
            printf("%-14s %-16s", patterns[p].name, drivers[d].name);
            for (size_t i = 0; i < DL_COUNT(live); i++) print_rate(measure(&drivers[d], &patterns[p], live[i]));
            putchar('\n');
        }
    return EXIT_SUCCESS;
}
