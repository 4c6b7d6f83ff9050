#include "sim/app/own_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/units.h"

/* Peak resident memory, measured on selene and frontier from 1 to 75,264 devices and up to 1 M items: the sum is 0.84
 * to 2.2 times what was seen. */
static const double program_bytes = 33e6;                /* with SimGrid's library */
static const double device_bytes = 3500;                 /* a device that is played: its crew, routes and flows */
static const double placed_bytes = 16;                   /* a device that is not */
static const double item_bytes = 32, greedy_bytes = 450; /* of a schedule; where its order is searched for */

struct need {
    double links, devices, items; /* bytes */
};

static double total(const struct need *n) { return program_bytes + n->links + n->devices + n->items; }

static bool splits_backward(const char *schedule)
{
    for (size_t i = 0; i < dl_schedule_count(); i++)
        if (strcmp(dl_schedule_get(i)->name, schedule) == 0) return dl_schedule_get(i)->splits_backward;
    return false;
}

static struct need estimate(const struct dl_topology *t, const struct dl_job *job, const struct dl_engine_kind *engine)
{
    const struct dl_setting *const s = &job->setting;
    const double played = job->n_devices / (engine->alone ? s->ways[DL_AXIS_DATA] : 1);
    const bool splits = splits_backward(s->schedule);
    const double kinds = splits ? 3 : 2, items = kinds * s->ways[DL_AXIS_PIPELINE] * s->chunks * (double)s->micros;
    return (struct need){.links = (double)t->n_links * engine->link_bytes,
                         .devices = job->n_devices * placed_bytes + played * device_bytes,
                         .items = items * (splits ? greedy_bytes : item_bytes)};
}

/* ---- what there is ---- */

/* A number at the start of a file, or the number after a word in it; infinite if there is none. */
static double number_in(const char *path, const char *word)
{
    FILE *const file = fopen(path, "r");
    char line[200];
    double found = INFINITY;
    while (file && isinf(found) && fgets(line, sizeof line, file)) {
        const size_t skip = strlen(word);
        char *end = line;
        if (strncmp(line, word, skip) == 0) found = strtod(line + skip, &end);
        if (end <= line + skip) found = INFINITY; /* "max" */
    }
    if (file) fclose(file);
    return found;
}

static const char override[] = "DLSIM_MEMORY_BYTES";

/* What the kernel could give, and what the limits of this container leave. */
static double free_bytes(void)
{
    const char *const asked = getenv(override);
    if (asked) return strtod(asked, NULL);
    const double kibi = 1024;
    const double limit = number_in("/sys/fs/cgroup/memory.max", "");
    const double used = number_in("/sys/fs/cgroup/memory.current", "");
    const double cached =
        number_in("/sys/fs/cgroup/memory.stat", "inactive_file "); /* in `used`, and given up at need */
    const double of_machine = kibi * number_in("/proc/meminfo", "MemAvailable:");
    return fmin(of_machine, isinf(limit) || isinf(used) || isinf(cached) ? INFINITY : limit - used + cached);
}

static enum dl_status check_override(struct dl_error *err)
{
    const char *const asked = getenv(override);
    char *end = NULL;
    if (!asked || (strtod(asked, &end) > 0 && !*end)) return DL_OK;
    return dl_fail(err, DL_SYNTAX, override, "must be a number of bytes, got '%.60s'", asked);
}

struct advice {
    const char *where, *less;
};

static struct advice what_helps(const struct need *n, const struct dl_setting *s, bool alone)
{
    if (n->items > n->links && n->items > n->devices) return (struct advice){s->batch_where, "a smaller global batch"};
    if (n->links > n->devices) return (struct advice){"--topo", "a smaller system"};
    return (struct advice){"--devices", alone ? "fewer devices" : "fewer devices or --engine analytic"};
}

enum dl_status dl_own_memory_check(const struct dl_topology *t, const struct dl_job *job,
                                   const struct dl_engine_kind *engine, double may_have_bytes, struct dl_error *err)
{
    if (check_override(err)) return err->status;
    const struct need need = estimate(t, job, engine);
    const double there = may_have_bytes > 0 ? may_have_bytes : free_bytes();
    if (total(&need) <= there) return DL_OK;
    const struct advice advice = what_helps(&need, &job->setting, engine->alone);
    char a[DL_QUANTITY], b[DL_QUANTITY];
    return dl_fail(
        err, DL_IMPOSSIBLE, advice.where,
        "the simulation would need about %s of this computer's memory, and %s are free%s; %s would do with less",
        dl_format_bytes(total(&need), a), dl_format_bytes(there, b),
        may_have_bytes > 0 ? " for each of those side by side (--jobs)" : "", advice.less);
}

double dl_own_memory_share_bytes(size_t n_runs) { return free_bytes() / (double)n_runs; }

size_t dl_own_memory_runs(const struct dl_topology *t, const struct dl_job *job, const struct dl_engine_kind *engine)
{
    const struct need need = estimate(t, job, engine);
    const double runs = free_bytes() / total(&need), most = 1e6; /* no limit, whatever the machine */
    return (size_t)fmin(fmax(runs, 1), most);
}
