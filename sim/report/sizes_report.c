#include "sim/report/sizes_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/report/host.h"
#include "sim/report/units.h"

enum { SIZE_WIDTH = 9, LEAST_WIDTH = 10, MOST_COLUMNS = 8 };

static const struct dl_size_cell *cell_of(const struct dl_sizes *s, size_t size, size_t algorithm)
{
    return &s->cells[size * s->n_algorithms + algorithm];
}

size_t dl_sizes_fastest(const struct dl_sizes *s, size_t which)
{
    size_t fastest = 0;
    for (size_t i = 1; i < s->n_algorithms; i++)
        if (cell_of(s, which, i)->time_s < cell_of(s, which, fastest)->time_s) fastest = i;
    return fastest;
}

/* How many times as long as the fastest it takes, in the size where that is least. */
static double nearest_ratio(const struct dl_sizes *s, size_t algorithm)
{
    double least = INFINITY;
    for (size_t i = 0; i < s->n_bytes; i++)
        least = fmin(least, cell_of(s, i, algorithm)->time_s / cell_of(s, i, dl_sizes_fastest(s, i))->time_s);
    return least;
}

/* Few enough for a line: those that come nearest to the fastest. */
static bool is_shown(const struct dl_sizes *s, size_t algorithm)
{
    const double own = nearest_ratio(s, algorithm);
    size_t n_nearer = 0;
    for (size_t i = 0; i < s->n_algorithms; i++) {
        const double other = nearest_ratio(s, i);
        n_nearer += other < own || (other == own && i < algorithm);
    }
    return n_nearer < MOST_COLUMNS;
}

static int width_of(const char *name)
{
    const int length = (int)strlen(name);
    return length > LEAST_WIDTH ? length : LEAST_WIDTH;
}

static void print_heading(const struct dl_sizes *s)
{
    char devices[DL_QUANTITY], nodes[DL_QUANTITY];
    const struct dl_group *const g = s->group;
    printf("%s over %s device%s of %s (%s node%s), %s: the fastest of each size has a *, engine %s\n",
           dl_op_name(s->op), dl_format_count(g->n, devices), g->n == 1 ? "" : "s", s->topology->name,
           dl_format_count(g->n_nodes, nodes), g->n_nodes == 1 ? "" : "s", s->transport->name, s->engine);
    printf("  %*s", SIZE_WIDTH, "size");
    for (size_t i = 0; i < s->n_algorithms; i++)
        if (is_shown(s, i)) printf("  %*s ", width_of(s->algorithms[i]), s->algorithms[i]);
    puts("  auto takes");
}

static void print_size(const struct dl_sizes *s, size_t which)
{
    char text[DL_QUANTITY];
    const size_t fastest = dl_sizes_fastest(s, which);
    printf("  %*s", SIZE_WIDTH, dl_format_bytes(s->bytes[which], text));
    for (size_t i = 0; i < s->n_algorithms; i++) {
        const double time_s = cell_of(s, which, i)->time_s;
        if (!is_shown(s, i)) continue;
        printf("  %*s%c", width_of(s->algorithms[i]), isfinite(time_s) ? dl_format_seconds(time_s, text) : "-",
               i == fastest && isfinite(time_s) ? '*' : ' ');
    }
    printf("  %s\n", s->automatic[which] ? s->automatic[which] : "-");
}

static void print_crossover(const struct dl_sizes *s, const struct dl_crossover *c)
{
    char low[DL_QUANTITY], high[DL_QUANTITY];
    if (c->low_bytes == c->high_bytes)
        printf("  from %s on", dl_format_bytes(c->low_bytes, low));
    else
        printf("  between %s and %s", dl_format_bytes(c->low_bytes, low), dl_format_bytes(c->high_bytes, high));
    printf(" %s is faster than %s\n", s->algorithms[c->to], s->algorithms[c->from]);
}

static void print_others(const struct dl_sizes *s)
{
    if (s->n_algorithms <= MOST_COLUMNS) return;
    printf("  slower in all sizes, and only in JSON or by --algo:");
    for (size_t i = 0, n = 0; i < s->n_algorithms; i++)
        if (!is_shown(s, i)) printf("%s %s", n++ ? "," : "", s->algorithms[i]);
    putchar('\n');
}

void dl_sizes_report_text(const struct dl_sizes *s)
{
    print_heading(s);
    for (size_t i = 0; i < s->n_bytes; i++) print_size(s, i);
    if (!s->n_crossovers && s->n_algorithms > 1)
        printf("  %s is the fastest of all sizes\n", s->algorithms[dl_sizes_fastest(s, 0)]);
    for (size_t i = 0; i < s->n_crossovers; i++) print_crossover(s, &s->crossovers[i]);
    print_others(s);
    dl_files_read_print(&s->files);
    dl_assumptions_print(&s->assumptions);
}

static json_t *times_json(const struct dl_sizes *s, size_t which)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < s->n_algorithms; i++) {
        const struct dl_size_cell *const cell = cell_of(s, which, i);
        const bool is_known = isfinite(cell->time_s);
        json_array_append_new(list, dl_json_pack("{s:s, s:s?, s:o}", "algorithm", s->algorithms[i], "protocol",
                                                 is_known ? cell->protocol : NULL, "time_s",
                                                 is_known ? dl_json_real(cell->time_s) : json_null()));
    }
    return list;
}

static json_t *sizes_json(const struct dl_sizes *s)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < s->n_bytes; i++)
        json_array_append_new(list, dl_json_pack("{s:f, s:s, s:s?, s:o}", "bytes", s->bytes[i], "fastest",
                                                 s->algorithms[dl_sizes_fastest(s, i)], "auto", s->automatic[i],
                                                 "times", times_json(s, i)));
    return list;
}

static json_t *crossovers_json(const struct dl_sizes *s)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < s->n_crossovers; i++) {
        const struct dl_crossover *const c = &s->crossovers[i];
        json_array_append_new(list,
                              dl_json_pack("{s:f, s:f, s:s, s:s}", "bytes_low", c->low_bytes, "bytes_high",
                                           c->high_bytes, "from", s->algorithms[c->from], "to", s->algorithms[c->to]));
    }
    return list;
}

json_t *dl_sizes_report_json(const struct dl_sizes *s)
{
    const struct dl_host host = dl_host_now();
    return dl_json_pack("{s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "topology", s->topology->name,
                        "op", dl_op_name(s->op), "transport", s->transport->name, "devices", (json_int_t)s->group->n,
                        "nodes", (json_int_t)s->group->n_nodes, "engine", s->engine, "fidelity", s->fidelity, "sizes",
                        sizes_json(s), "crossovers", crossovers_json(s), "assumptions",
                        dl_assumptions_json(&s->assumptions), "files", dl_files_read_json(&s->files), "host",
                        dl_host_json(&host));
}
