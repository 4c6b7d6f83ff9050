/* cpu.c - one core, plain memory, OpenBLAS with one thread. */
#define _POSIX_C_SOURCE 200809L
#include "kernels/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static const struct dl_routine *const tables[] = {
    dl_cpu_gemms,
    dl_cpu_gemm_gelus,
    dl_cpu_grouped_gemms,
    dl_cpu_attentions,
    dl_cpu_convolutions,
    dl_cpu_norms,
    dl_cpu_batchnorms,
    dl_cpu_rows,
    dl_cpu_elements,
    dl_cpu_pools,
    dl_cpu_optimizers,
    dl_cpu_compressions,
    NULL,
};

static const char *open_core(void)
{
    openblas_set_num_threads(1);
    return NULL;
}

/* The first two words of "OpenBLAS 0.3.21 DYNAMIC_ARCH ...". */
static const char *blas_version(void)
{
    static char version[64];
    const char *const config = openblas_get_config();
    const char *const space = strchr(config, ' ');
    const size_t length = space ? (size_t)(space - config) + 1 + strcspn(space + 1, " ") : strlen(config);
    snprintf(version, sizeof version, "%.*s", (int)length, config);
    return version;
}

static const char *library(const struct dl_routine *r)
{
    return strcmp(r->way, "plain") == 0 ? "dlsim" : blas_version();
}

/* The value of a line "key : value", or "". */
static void read_cpuinfo(const char *key, char *value, size_t size)
{
    FILE *const file = fopen("/proc/cpuinfo", "r");
    char line[512];
    *value = 0;
    while (file && !*value && fgets(line, sizeof line, file)) {
        const char *const colon = strchr(line, ':');
        if (!colon || strncmp(line, key, strlen(key))) continue;
        const char *const begin = colon + 1 + strspn(colon + 1, " \t");
        snprintf(value, size, "%.*s", (int)strcspn(begin, "\n"), begin);
    }
    if (file) fclose(file);
}

/* The largest cache that core 0 sees, by what Linux tells. */
static double last_cache_bytes(void)
{
    const double kibi = 1024, mebi = 1024 * 1024;
    double largest = 0;
    for (int i = 0; i < 8; i++) {
        char path[80], unit = 0;
        double size = 0;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        FILE *const file = fopen(path, "r");
        if (!file) break;
        if (fscanf(file, "%lf%c", &size, &unit) < 1) size = 0;
        fclose(file);
        size *= unit == 'K' ? kibi : unit == 'M' ? mebi : 1;
        if (size > largest) largest = size;
    }
    return largest;
}

/* Of this thread: what others do on a shared machine does not count. */
static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Additions that wait for each other take a cycle each, if what is added is not known beforehand; the fastest of a few
 * runs was not interrupted. */
static double clock_hz(void)
{
    enum { runs = 10, loops = 1000000, additions = 8 };
    double best_s = 1;
    for (int run = 0; run < runs; run++) {
        uint64_t x = 0, step = 1;
        __asm__ volatile("" : "+r"(step));
        const double begin_s = now_s();
        for (int i = 0; i < loops; i++)
            for (int j = 0; j < additions; j++) {
                x += step;
                __asm__ volatile("" : "+r"(x));
            }
        const double took_s = now_s() - begin_s;
        if (took_s < best_s) best_s = took_s;
    }
    return (double)loops * additions / best_s;
}

static void describe(struct dl_device_facts *facts)
{
    struct utsname system;
    uname(&system);
    read_cpuinfo("model name", facts->name, sizeof facts->name - 32);
    if (!*facts->name) snprintf(facts->name, sizeof facts->name, "%s %s", system.machine, openblas_get_corename());
    strcat(facts->name, ", one core");
    snprintf(facts->versions, sizeof facts->versions, "%s (%s), %s %s, gcc %s", blas_version(), openblas_get_corename(),
             system.sysname, system.release, __VERSION__);
    facts->memory_bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    facts->last_cache_bytes = last_cache_bytes();
    facts->clock_hz = clock_hz();
}

/* Aligned to a cache line, as OpenBLAS and frameworks do. */
static void *alloc(size_t bytes)
{
    enum { line = 64 };
    void *const memory = aligned_alloc(line, (bytes / line + 1) * line);
    if (memory) return memory;
    fprintf(stderr, "dlsim-profile: no memory for %zu bytes\n", bytes);
    exit(3);
}

static void copy(void *to, const void *from, size_t bytes) { memcpy(to, from, bytes); }

static void repeat(void *memory, size_t period_bytes, size_t bytes)
{
    char *const to = memory;
    for (size_t done = period_bytes; done < bytes; done *= 2)
        memcpy(to + done, to, bytes - done < done ? bytes - done : done);
}

static double began_s;
static void start(void) { began_s = now_s(); }
static double stop(void) { return now_s() - began_s; }

/* A call that the compiler cannot see through. */
static void nothing(void) { __asm__ volatile("" ::: "memory"); }

const struct dl_backend dl_backend_cpu = {
    .name = "cpu",
    .doc = "one core with OpenBLAS",
    .tables = tables,
    .most_flop = 2e10,
    .most_bytes = 1e9,
    .open = open_core,
    .describe = describe,
    .library = library,
    .alloc = alloc,
    .free = free,
    .upload = copy,
    .download = copy,
    .repeat = repeat,
    .start = start,
    .stop = stop,
    .launch_nothing = nothing,
};
