#include "sim/draw/run_page.h"

#include <string.h>

#include "sim/draw/page.h"

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
    return dl_page_write(path,
                         dl_json_pack("{s:s, s:o, s:o, s:o}", "view", "run", "answer", page->answer, "timeline",
                                      dl_page_timeline(page), "sources", sources_json(page)),
                         err);
}
