#include "sim/report/collective_report.h"

#include <stdio.h>
#include <string.h>

#include "sim/report/bar.h"
#include "sim/report/choice_report.h"
#include "sim/report/slice_report.h"
#include "sim/report/units.h"

static double bus_bytes_per_s(const struct dl_collective_report *r)
{
    const struct dl_collective *const c = &r->choice->collective;
    return dl_bus_bytes_per_s(c->op, c->group->n, c->bytes, r->result.time_s);
}

static void print_cause(const char *name, double seconds, double total_s)
{
    char text[DL_QUANTITY];
    dl_print_bar(name, dl_format_seconds(seconds, text), total_s > 0 ? seconds / total_s : 0);
}

static void print_causes(const struct dl_collective_report *r)
{
    const struct dl_causes *const c = &r->result.causes;
    puts("  where the time goes");
    print_cause("software start", c->start_s, r->result.time_s);
    print_cause("latency", c->latency_s, r->result.time_s);
    print_cause("bandwidth", c->bandwidth_s, r->result.time_s);
    print_cause("sharing", c->sharing_s, r->result.time_s);
    print_cause("reduction", c->reduction_s, r->result.time_s);
}

static void print_heading(const struct dl_collective_report *r)
{
    const struct dl_collective *const c = &r->choice->collective;
    char bytes[DL_QUANTITY], devices[DL_QUANTITY], nodes[DL_QUANTITY];
    printf("%s of %s over %s device%s of %s (%s node%s), %s: %s", dl_op_name(c->op), dl_format_bytes(c->bytes, bytes),
           dl_format_count(c->group->n, devices), c->group->n == 1 ? "" : "s", r->topology->name,
           dl_format_count(c->group->n_nodes, nodes), c->group->n_nodes == 1 ? "" : "s", r->transport->name,
           c->algorithm->name);
    if (strcmp(r->choice->estimate.pace.protocol, r->transport->name))
        printf(", %s", r->choice->estimate.pace.protocol);
    if (c->chunks > 1) printf(", %u chunks", c->chunks);
    putchar('\n');
}

enum { CHOSEN_BY = 64 };

static const char *chosen_by(const struct dl_collective_report *r, char *text)
{
    if (r->choice->by == DL_BY_REQUEST) return "request";
    if (r->choice->by == DL_BY_LEAST_ESTIMATE) return "least estimate";
    snprintf(text, CHOSEN_BY, "%.48s tuner", r->transport->tuner);
    return text;
}

/* What decided, and what would have been better. */
static void print_choice(const struct dl_collective_report *r)
{
    const struct dl_faster *const faster = &r->choice->faster;
    char a[DL_QUANTITY], b[DL_QUANTITY], by[CHOSEN_BY];
    printf("  chosen by      %s, estimate %s", chosen_by(r, by), dl_format_seconds(r->choice->estimate.presumed_s, a));
    if (faster->algorithm)
        printf("; %s, %s is estimated at %s", faster->algorithm, faster->protocol,
               dl_format_seconds(faster->time_s, b));
    putchar('\n');
}

void dl_collective_report_text(const struct dl_collective_report *r, bool links)
{
    const struct dl_collective *const c = &r->choice->collective;
    char a[DL_QUANTITY], b[DL_QUANTITY], name[DL_LINK_NAME];
    print_heading(r);
    dl_slice_print(r->topology, c->group->n);
    print_choice(r);
    printf("  time           %s\n", dl_format_seconds(r->result.time_s, a));
    if (c->bytes > 0 && r->result.time_s > 0)
        printf("  bus bandwidth  %s (bytes / time: %s)\n", dl_format_rate(bus_bytes_per_s(r), a),
               dl_format_rate(c->bytes / r->result.time_s, b));
    if (r->links.n)
        printf("  limiting link  %s, busy %.0f %% of the time\n", dl_links_limiting(&r->links, name),
               100 * r->links.items[0].busy_s / r->result.time_s);
    if (links) dl_links_print(&r->links);
    print_causes(r);
    printf("  %s messages in %s bundles, %s fidelity, engine %s\n", dl_format_count((double)r->result.messages, a),
           dl_format_count((double)r->result.bundles, b), r->fluid ? "fluid" : "step", r->engine);
    dl_files_read_print(&r->files);
    dl_assumptions_print(&r->assumptions);
}

static json_t *causes_json(const struct dl_causes *c)
{
    return dl_json_pack("{s:f, s:f, s:f, s:f, s:f}", "start_s", c->start_s, "latency_s", c->latency_s, "bandwidth_s",
                        c->bandwidth_s, "sharing_s", c->sharing_s, "reduction_s", c->reduction_s);
}

json_t *dl_collective_report_json(const struct dl_collective_report *r)
{
    const struct dl_collective *const c = &r->choice->collective;
    const struct dl_host host = dl_host_now();
    char by[CHOSEN_BY], name[DL_LINK_NAME];
    json_t *const report = dl_json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:f, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:I, s:s?, s:f, s:o, s:s, s:s, s:I, "
        "s:o, s:o, s:o}",
        "topology", r->topology->name, "op", dl_op_name(c->op), "algorithm", c->algorithm->name, "transport",
        r->transport->name, "protocol", r->choice->estimate.pace.protocol, "bytes", c->bytes, "devices",
        (json_int_t)c->group->n, "nodes", (json_int_t)c->group->n_nodes, "chunks", (json_int_t)c->chunks, "time_s",
        r->result.time_s, "estimate_s", r->choice->estimate.presumed_s, "bus_bytes_per_s", bus_bytes_per_s(r),
        "messages", (json_int_t)r->result.messages, "bundles", (json_int_t)r->result.bundles, "limiting_link",
        dl_links_limiting(&r->links, name), "limiting_link_busy_s", r->links.items[0].busy_s, "causes",
        causes_json(&r->result.causes), "engine", r->engine, "fidelity", r->fluid ? "fluid" : "step", "events",
        (json_int_t)r->n_events, "assumptions", dl_assumptions_json(&r->assumptions), "files",
        dl_files_read_json(&r->files), "host", dl_host_json(&host));
    json_object_set_new(report, "chosen_by", json_string(chosen_by(r, by)));
    json_object_set_new(report, "faster", dl_faster_json(&r->choice->faster));
    json_object_set_new(report, "slice", dl_slice_json(r->topology));
    json_object_set_new(report, "links", dl_links_json(&r->links));
    return report;
}
