#include "sim/report/verdict.h"

#include <stdio.h>

#include "sim/report/units.h"

enum { N_PARTS = 6, LARGEST = 2, SHOWN = 6 };

struct part {
    const char *name;
    double bytes;
};

/* The largest of a stage, in order. */
static void largest_parts(const struct dl_memory_use *m, struct part out[LARGEST])
{
    struct part parts[N_PARTS] = {{"parameters", m->parameters}, {"gradients", m->gradients},
                                  {"optimizer", m->optimizer},   {"activations", m->activations},
                                  {"buffers", m->buffers},       {"workspace", m->workspace}};
    for (int i = 0; i < LARGEST; i++) {
        int most = 0;
        for (int k = 1; k < N_PARTS; k++)
            if (parts[k].bytes > parts[most].bytes) most = k;
        out[i] = parts[most];
        parts[most].bytes = -1;
    }
}

static void print_remedies(const struct dl_remedies *remedies)
{
    char a[DL_QUANTITY];
    if (!remedies || !remedies->n) {
        puts("  nothing that was tried makes it smaller");
        return;
    }
    puts(remedies->items[0].fits ? "  it would fit with one of" : "  nothing that was tried is enough; the best is");
    for (size_t i = 0; i < remedies->n && i < SHOWN; i++)
        printf("    %s: %s\n", remedies->items[i].change, dl_format_bytes(remedies->items[i].peak, a));
    if (remedies->n > SHOWN) printf("    and %zu more (--json -)\n", remedies->n - SHOWN);
}

static void print_elsewhere(const char *where, double bytes, double memory_bytes, bool fits)
{
    char a[DL_QUANTITY], b[DL_QUANTITY];
    if (bytes == 0) return;
    printf("  %s %s", where, dl_format_bytes(bytes, a));
    if (memory_bytes > 0) printf(" of %s", dl_format_bytes(memory_bytes, b));
    puts(fits ? "" : ": DOES NOT FIT");
}

static void print_all_elsewhere(const struct dl_run_report *r)
{
    print_elsewhere("on each host wait", dl_memory_of_host(r->topology, r->job, r->memory),
                    r->topology->node.host.memory_bytes, dl_memory_fits_host(r->topology, r->job, r->memory));
    print_elsewhere(
        "weights and states outside of the devices, streamed:", dl_memory_outside(&r->job->setting, r->model),
        r->topology->weight_memory_bytes, dl_memory_fits_outside(r->topology, &r->job->setting, r->model));
}

void dl_verdict_print(const struct dl_run_report *r)
{
    const uint32_t stage = dl_run_fullest_stage(r);
    const struct dl_memory_use *const m = &r->memory[stage];
    const double left = r->device->memory_bytes - m->peak - m->beside;
    char a[DL_QUANTITY], b[DL_QUANTITY], c[DL_QUANTITY];
    print_all_elsewhere(r);
    if (left >= 0) {
        printf("  %s of a device are left (%.0f %%)", dl_format_bytes(left, a), 100 * left / r->device->memory_bytes);
        if (m->fragmentation > left)
            printf(", less than the %s that its allocator tends to waste", dl_format_bytes(m->fragmentation, b));
        puts("");
        if (!dl_run_fits(r)) print_remedies(r->remedies);
        return;
    }
    struct part largest[LARGEST];
    largest_parts(m, largest);
    printf("  DOES NOT FIT: stage %u lacks %s; %s take %s, %s %s\n", stage, dl_format_bytes(-left, a), largest[0].name,
           dl_format_bytes(largest[0].bytes, b), largest[1].name, dl_format_bytes(largest[1].bytes, c));
    print_remedies(r->remedies);
}

static json_t *remedies_json(const struct dl_remedies *remedies)
{
    json_t *const list = json_array();
    for (size_t i = 0; remedies && i < remedies->n; i++)
        json_array_append_new(list, dl_json_pack("{s:s, s:f, s:b}", "change", remedies->items[i].change, "peak",
                                                 remedies->items[i].peak, "fits", remedies->items[i].fits));
    return list;
}

json_t *dl_verdict_json(const struct dl_run_report *r)
{
    const uint32_t stage = dl_run_fullest_stage(r);
    struct part largest[LARGEST];
    largest_parts(&r->memory[stage], largest);
    json_t *const list = json_array();
    for (int i = 0; i < LARGEST; i++)
        json_array_append_new(list, dl_json_pack("{s:s, s:f}", "part", largest[i].name, "bytes", largest[i].bytes));
    return dl_json_pack("{s:s, s:I, s:f, s:f, s:f, s:o, s:o}", "text", dl_run_fits(r) ? "fits" : "does not fit",
                        "stage", (json_int_t)stage, "headroom_bytes", dl_run_headroom_bytes(r), "host_bytes",
                        dl_memory_of_host(r->topology, r->job, r->memory), "outside_bytes",
                        dl_memory_outside(&r->job->setting, r->model), "largest", list, "remedies",
                        remedies_json(r->remedies));
}
