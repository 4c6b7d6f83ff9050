#include "sim/draw/run_page.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/draw/page.h"
#include "sim/report/memory_curve.h"

/* ---- memory ---- */

/* Where it changes: from that moment on so many bytes. */
static json_t *curve_json(uint32_t stage, const struct dl_memory_curve *c, double from_s)
{
    json_t *const times = json_array(), *const bytes = json_array();
    for (size_t i = 0; i < c->n; i++) {
        if (i && c->spans[i].use.peak == c->spans[i - 1].use.peak) continue;
        json_array_append_new(times, dl_json_real(c->spans[i].from_s - from_s));
        json_array_append_new(bytes, dl_json_real(c->spans[i].use.peak));
    }
    return dl_json_pack("{s:I, s:o, s:o}", "stage", (json_int_t)stage, "time_s", times, "bytes", bytes);
}

static json_t *memory_json(const struct dl_timeline *t, const struct dl_time_axis *step)
{
    const uint32_t n_stages = t->request.setting->ways[DL_AXIS_PIPELINE];
    struct dl_memory_curve *const curves = dl_memory_curves(t, step->from_s, step->to_s);
    json_t *const list = json_array();
    for (uint32_t i = 0; i < n_stages; i++) json_array_append_new(list, curve_json(i, &curves[i], step->from_s));
    dl_memory_curves_free(curves, n_stages);
    return list;
}

/* ---- links ---- */

static int busiest_first(const void *a, const void *b)
{
    const struct dl_link_load *const x = a, *const y = b;
    if (x->busy_s != y->busy_s) return x->busy_s > y->busy_s ? -1 : 1;
    return x->link < y->link ? -1 : x->link > y->link;
}

static json_t *link_json(const struct dl_machine_load *load, const struct dl_link_load *link)
{
    char name[DL_LINK_NAME];
    dl_topology_link_name(load->topology, link->link, name, sizeof name);
    return dl_json_pack("{s:s, s:f, s:f}", "name", name, "bytes", link->bytes, "busy_share",
                        fmin(link->busy_s / load->seconds, 1));
}

/* The busiest links; none if loads are not known. */
static json_t *machine_json(const struct dl_machine_load *load)
{
    enum { most_links = 1500 }; /* more lines would hide each other */
    const size_t n_known = load->unknown || !(load->seconds > 0) ? 0 : load->n_links;
    const size_t n = n_known < most_links ? n_known : most_links;
    struct dl_link_load *const links = dl_alloc((n_known + 1) * sizeof *links);
    json_t *const list = json_array();
    if (n_known) memcpy(links, load->links, n_known * sizeof *links);
    qsort(links, n_known, sizeof *links, busiest_first);
    for (size_t i = 0; i < n; i++) json_array_append_new(list, link_json(load, &links[i]));
    dl_free(links);
    return dl_json_pack("{s:I, s:I, s:s?, s:o}", "devices_per_node", (json_int_t)load->topology->node.n_devices,
                        "links_left_out", (json_int_t)(n_known - n), "unknown", load->unknown, "links", list);
}

/* ---- sources ---- */

/* "OLCF user guide" of "published: OLCF user guide". */
static void add_fact(void *user, const struct dl_fact *f)
{
    const char *const space = f->stated ? strchr(f->text, ' ') : NULL;
    json_array_append_new(user, dl_json_pack("{s:s, s:f, s:s, s:s}", "where", f->where, "value", f->value, "grade",
                                             dl_grade_name(f->grade), "source", space ? space + 1 : "not said"));
}

static json_t *sources_json(const struct dl_run_page *p)
{
    json_t *const list = json_array();
    for (size_t i = 0; i < p->n_docs; i++)
        if (p->docs[i].value) dl_json_facts(p->docs[i], p->arena, add_fact, list);
    return list;
}

enum dl_status dl_run_page_write(const char *path, const struct dl_run_page *page, struct dl_error *err)
{
    const struct dl_run_picture *const p = &page->picture;
    const struct dl_time_axis step = dl_time_axis_of(&p->report->result);
    return dl_page_write(path,
                         dl_json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "view", "run", "answer", page->answer,
                                      "timeline", dl_page_timeline(p->timeline, &step), "memory",
                                      memory_json(p->timeline, &step), "machine", machine_json(&p->load), "sources",
                                      sources_json(page)),
                         err);
}
