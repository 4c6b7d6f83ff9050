#include "sim/report/links_report.h"

#include <math.h>
#include <stdio.h>

#include "sim/report/units.h"

static double bytes_of(const struct dl_links *links, size_t i)
{
    return links->items[i].bytes * (links->told_s / links->simulated_s);
}

/* Where steps overlap, what was begun of the one after the last is on the links too. */
static double busy_share_of(const struct dl_links *links, size_t i)
{
    return fmin(links->items[i].busy_s / links->simulated_s, 1);
}

static const char *name_of(const struct dl_links *links, size_t i, char name[DL_LINK_NAME])
{
    dl_topology_link_name(links->topology, links->items[i].link, name, DL_LINK_NAME);
    return name;
}

const char *dl_links_limiting(const struct dl_links *links, char name[DL_LINK_NAME])
{
    return links->n ? name_of(links, 0, name) : NULL;
}

void dl_links_print(const struct dl_links *links)
{
    char name[DL_LINK_NAME], bytes[DL_QUANTITY];
    if (!(links->simulated_s > 0) || !links->n) return;
    puts("  links with the highest load: busy, bytes on the wire");
    for (size_t i = 0; i < links->n; i++)
        printf("    %5.1f %%  %8s  %s\n", 100 * busy_share_of(links, i), dl_format_bytes(bytes_of(links, i), bytes),
               name_of(links, i, name));
}

json_t *dl_links_json(const struct dl_links *links)
{
    char name[DL_LINK_NAME];
    if (!(links->simulated_s > 0)) return json_null();
    json_t *const list = json_array();
    for (size_t i = 0; i < links->n; i++)
        json_array_append_new(list, dl_json_pack("{s:s, s:f, s:f}", "name", name_of(links, i, name), "bytes",
                                                 bytes_of(links, i), "busy_share", busy_share_of(links, i)));
    return list;
}
