#include "sim/session/own_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/collective/fold.h"
#include "sim/report/timeline.h"
#include "sim/report/units.h"

/* Peak resident memory, measured on selene and frontier from 1 to 75,264 devices and up to 3 M items: the sum is 0.84
 * to 2.2 times what was seen. tests/checks/own-memory holds it. */
static const double program_bytes = 8e6;
static const double simgrid_bytes = 25e6; /* its libraries, of a program that simulates */
static const double device_bytes = 3500;  /* a device that is simulated: its lockstep group, routes and flows */
static const double placed_bytes = 16;    /* a device that is not */
static const double item_bytes = 64 + sizeof(struct dl_sequenced); /* of a schedule, with the orders that are tried */
static const double arrived_bytes = 4;                             /* of an item, for each replica that is simulated */
static const double slice_bytes = 320;                             /* of a timeline, with its text */
/* Of a collective, on crossbars, selene and frontier with 256 to 37,632 devices: */
static const double lane_bytes = 1500;  /* of a rank: its place in the algorithm, a route, a flow */
static const double posted_bytes = 250; /* a message that waits for its turn */
static const double moving_bytes = 600; /* one that is under way, with its flow and links */
static const double folded_bytes = 70;  /* a message in the bundle of its source */

struct need {
    double program, links, devices, items; /* bytes */
};

static double total(const struct need *n) { return n->program + n->links + n->devices + n->items; }

static double whole_program(const struct dl_engine_kind *engine)
{
    return program_bytes + (engine->alone ? 0 : simgrid_bytes);
}

static bool splits_backward(const char *schedule)
{
    const struct dl_schedule_kind *const kind = dl_schedule_named(schedule);
    return kind && kind->splits_backward;
}

static double count_items(const struct dl_setting *s)
{
    const double kinds = splits_backward(s->schedule) ? 3 : 2;
    return kinds * dl_n_stages(s) * s->chunks * (double)s->micros;
}

static double schedule_bytes(const struct dl_setting *s) { return count_items(s) * item_bytes; }

/* An item is slices of its work, of waiting and of what it sends. */
static double timeline_bytes(const struct dl_setting *s, double n_replicas)
{
    const double slices_of_item = 4;
    return slice_bytes * fmin(slices_of_item * count_items(s) * n_replicas, DL_TIMELINE_SLICES);
}

static struct need estimate(const struct dl_own_run *run)
{
    const struct dl_job *const job = run->job;
    const struct dl_setting *const s = &job->setting;
    const double replicas = run->engine->alone ? 1 : dl_n_replicas(s);
    const double played = job->n_devices / dl_n_replicas(s) * replicas;
    return (struct need){.program = whole_program(run->engine),
                         .links = (double)run->topology->n_links * run->engine->link_bytes,
                         .devices = job->n_devices * placed_bytes + played * device_bytes,
                         .items = schedule_bytes(s) + replicas * count_items(s) * arrived_bytes +
                                  (run->timeline ? timeline_bytes(s, replicas) : 0)};
}

static struct need estimate_collective(const struct dl_own_collective *own)
{
    const struct dl_collective *const c = own->collective;
    const bool folds = dl_folds(c, own->fluid), is_simulated = !own->engine->alone;
    const double ranks = dl_collective_ranks(c), messages = is_simulated ? dl_count_messages(c) : 0;
    const double posted = ranks * dl_most_posted(c->group->n), moving = fmin(posted, messages);
    const double by_pair = folds ? dl_fold_kind(c) == DL_FOLD_SOURCES : c->algorithm->queue == DL_QUEUE_POSTED ? 1 : 0;
    return (struct need){
        .program = whole_program(own->engine),
        .links = (double)c->group->topology->n_links * own->engine->link_bytes,
        .devices = ranks * placed_bytes + (is_simulated && !folds ? ranks * dl_collective_lanes(c) * lane_bytes : 0),
        .items = by_pair *
                 (folds ? messages * folded_bytes : messages * posted_bytes + moving * (moving_bytes - posted_bytes))};
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

static struct advice what_helps_collective(const struct need *n, bool fluid)
{
    if (n->links > n->devices && n->links > n->items) return (struct advice){"--topo", "a smaller system"};
    return (struct advice){"--devices",
                           fluid || n->devices > n->items ? "fewer devices" : "fewer devices or --fidelity fluid"};
}

static struct advice what_helps(const struct need *n, const struct dl_setting *s, bool alone)
{
    if (n->items > n->links && n->items > n->devices) return (struct advice){s->batch_where, "a smaller global batch"};
    if (n->links > n->devices) return (struct advice){"--topo", "a smaller system"};
    return (struct advice){"--devices", alone ? "fewer devices" : "fewer devices or --engine analytic"};
}

static enum dl_status refuse(const struct need *need, struct advice advice, double may_have_bytes, struct dl_error *err)
{
    const double there = may_have_bytes > 0 ? may_have_bytes : free_bytes();
    char a[DL_QUANTITY], b[DL_QUANTITY];
    if (total(need) <= there) return DL_OK;
    return dl_fail(
        err, DL_IMPOSSIBLE, advice.where,
        "the simulation would need about %s of this computer's memory, and %s are free%s; %s would do with less",
        dl_format_bytes(total(need), a), dl_format_bytes(there, b),
        may_have_bytes > 0 ? " for each of those side by side (--jobs)" : "", advice.less);
}

enum dl_status dl_own_memory_check(const struct dl_own_run *run, double may_have_bytes, struct dl_error *err)
{
    if (check_override(err)) return err->status;
    const struct need need = estimate(run);
    return refuse(&need, what_helps(&need, &run->job->setting, run->engine->alone), may_have_bytes, err);
}

enum dl_status dl_own_memory_check_collective(const struct dl_own_collective *own, struct dl_error *err)
{
    if (check_override(err)) return err->status;
    const struct need need = estimate_collective(own);
    return refuse(&need, what_helps_collective(&need, dl_folds(own->collective, own->fluid)), 0, err);
}

bool dl_own_memory_holds(const struct dl_own_run *run, double may_have_bytes, const struct dl_job *other)
{
    const struct need need = estimate(run);
    return total(&need) + schedule_bytes(&other->setting) <= (may_have_bytes > 0 ? may_have_bytes : free_bytes());
}

double dl_own_memory_share_bytes(size_t n_runs) { return free_bytes() / (double)n_runs; }

size_t dl_own_memory_runs(const struct dl_own_run *run)
{
    const struct need need = estimate(run);
    const double runs = free_bytes() / total(&need), most = 1e6; /* no limit, whatever the machine */
    return (size_t)fmin(fmax(runs, 1), most);
}
