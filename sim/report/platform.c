#include "sim/report/platform.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/report/units.h"

/* n squared routes: more would be gigabytes of XML. */
enum { max_devices = 2048 };

static enum dl_status check_size(uint32_t n_devices, struct dl_error *err)
{
    if (n_devices <= max_devices) return DL_OK;
    return dl_fail(err, DL_RANGE, "--devices", "the routes of %u devices are too many to write out; ask for at most %d",
                   n_devices, max_devices);
}

static enum dl_status check_unsplit(const struct dl_route *route, struct dl_error *err)
{
    for (size_t i = 0; i < route->n_hops; i++)
        if (route->hops[i].weight != floor(route->hops[i].weight))
            return dl_fail(
                err, DL_IMPOSSIBLE, "--format",
                "simgrid has no routes that split over paths, as this network's routing does (a torus splits "
                "where both ways round are equally long); use static routing or odd dimensions");
    return DL_OK;
}

/* Links that some route uses; the others would only make the file long. What cannot be written is found here, before
 * the first line is out. */
static enum dl_status mark_used(const struct dl_topology *t, uint32_t n, bool may_split, bool *used,
                                struct dl_error *err)
{
    struct dl_route route = {0};
    for (uint32_t from = 0; from < n && !err->status; from++)
        for (uint32_t to = 0; to < n && !err->status; to++) {
            if (from == to || dl_topology_route(t, from, to, 0, NULL, &route, err)) continue;
            if (!may_split && check_unsplit(&route, err)) continue;
            for (size_t i = 0; i < route.n_hops; i++) used[route.hops[i].link] = true;
        }
    dl_route_release(&route);
    return err->status;
}

static enum dl_status write_route(const struct dl_topology *t, uint32_t from, uint32_t to, struct dl_route *route,
                                  struct dl_error *err)
{
    if (dl_topology_route(t, from, to, 0, NULL, route, err)) return err->status;
    printf("    <route src=\"device%u\" dst=\"device%u\" symmetrical=\"NO\">", from, to);
    for (size_t i = 0; i < route->n_hops; i++)
        for (double w = 0; w < route->hops[i].weight; w++) printf("<link_ctn id=\"%u\"/>", route->hops[i].link);
    puts("</route>");
    return DL_OK;
}

static void write_links(const struct dl_topology *t, const double *bytes_per_s, const bool *used)
{
    char name[160];
    for (uint32_t i = 0; i < t->n_links; i++) {
        if (!used[i]) continue;
        dl_topology_link_name(t, i, name, sizeof name);
        for (char *c = name; *c; c++)
            if (*c == '-' && c[1] == '-') *c = '~'; /* two hyphens would end the comment */
        printf("    <link id=\"%u\" bandwidth=\"%.17gBps\" latency=\"%.17gs\"/> <!-- %s -->\n", i, bytes_per_s[i],
               t->links[i].latency_s, name);
    }
}

/* SimGrid's routes do not depend on load. */
static void tell_fixed_routes(const struct dl_topology *t)
{
    static const char text[] = "routes by load; written are its routes when idle, the minimal ones";
    printf("  <!-- The machine %s -->\n", text);
    fprintf(stderr, "dlsim: %s %s\n", t->name, text);
}

enum dl_status dl_platform_write_simgrid(const struct dl_topology *t, const double *bytes_per_s, uint32_t n_devices,
                                         struct dl_error *err)
{
    if (check_size(n_devices, err)) return err->status;
    bool *const used = dl_alloc(t->n_links * sizeof *used);
    struct dl_route route = {0};
    if (!mark_used(t, n_devices, false, used, err)) {
        puts("<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
             "<platform version=\"4.1\">");
        if (dl_network_reads_load(&t->network)) tell_fixed_routes(t);
        puts("  <zone id=\"machine\" routing=\"Full\">");
        for (uint32_t i = 0; i < n_devices; i++) printf("    <host id=\"device%u\" speed=\"1Gf\"/>\n", i);
        write_links(t, bytes_per_s, used);
        for (uint32_t from = 0; from < n_devices && !err->status; from++)
            for (uint32_t to = 0; to < n_devices && !err->status; to++)
                if (from != to) write_route(t, from, to, &route, err);
        puts("  </zone>\n</platform>");
    }
    dl_route_release(&route);
    dl_free(used);
    return err->status;
}

/* Inside of the quotes of graphviz. */
static void put_escaped(const char *text, const char *end)
{
    for (; text < end; text++) {
        if (*text == '"' || *text == '\\') putchar('\\');
        putchar(*text);
    }
}

static void put_vertex(const char *place, size_t place_length, const char *name, const char *end)
{
    putchar('"');
    put_escaped(place, place + place_length);
    if (place_length) putchar(' ');
    put_escaped(name, end);
    putchar('"');
}

/* Link names are "PLACE: A -> B" or "A -> B": the ends are the vertices of the picture. */
static void write_edge(const char *name, double bytes_per_s)
{
    char rate[DL_QUANTITY];
    const char *arrow = name;
    while (*arrow && !(arrow[0] == ' ' && arrow[1] == '-' && arrow[2] == '>')) arrow++;
    if (!*arrow) return;
    const char *colon = name;
    while (colon < arrow && *colon != ':') colon++;
    const size_t place = colon < arrow ? (size_t)(colon - name) : 0;
    const char *const from = place ? colon + 2 : name;
    fputs("  ", stdout);
    put_vertex(name, place, from, arrow);
    fputs(" -> ", stdout);
    put_vertex(name, place, arrow + strlen(" -> "), name + strlen(name));
    printf(" [label=\"%s GB/s\", id=\"", dl_format_number(bytes_per_s * 1e-9, rate));
    put_escaped(name, name + strlen(name));
    puts("\"];");
}

enum dl_status dl_platform_write_dot(const struct dl_topology *t, uint32_t n_devices, struct dl_error *err)
{
    if (check_size(n_devices, err)) return err->status;
    bool *const used = dl_alloc(t->n_links * sizeof *used);
    if (!mark_used(t, n_devices, true, used, err)) {
        fputs("digraph \"", stdout);
        put_escaped(t->name, t->name + strlen(t->name));
        puts("\" {\n  node [shape=box];");
        for (uint32_t i = 0; i < t->n_links; i++) {
            char name[160];
            if (!used[i]) continue;
            dl_topology_link_name(t, i, name, sizeof name);
            write_edge(name, t->links[i].bandwidth_bytes_per_s);
        }
        puts("}");
    }
    dl_free(used);
    return err->status;
}
