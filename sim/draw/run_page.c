#include "sim/draw/run_page.h"

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
    const uint32_t n_stages = dl_timeline_stages(t);
    struct dl_memory_curve *const curves = dl_memory_curves(t, step->from_s, step->to_s);
    json_t *const list = json_array();
    for (uint32_t i = 0; i < n_stages; i++) json_array_append_new(list, curve_json(i, &curves[i], step->from_s));
    dl_memory_curves_free(curves, n_stages);
    return list;
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
                                      memory_json(p->timeline, &step), "machine", dl_page_machine(&p->load), "sources",
                                      sources_json(page)),
                         err);
}
