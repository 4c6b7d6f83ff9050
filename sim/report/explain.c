#include "sim/report/explain.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void dl_explanation_init(struct dl_explanation *e, struct dl_arena *arena)
{
    *e = (struct dl_explanation){.arena = arena};
}

void dl_explanation_release(struct dl_explanation *e)
{
    void *const blocks[] = {e->facts, e->terms, e->cited, e->figures, e->sums};
    for (size_t i = 0; i < DL_COUNT(blocks); i++) dl_free(blocks[i]);
}

const char *dl_explain_number(const struct dl_explanation *e, double x)
{
    return dl_arena_format(e->arena, "%.12g", x);
}

void dl_explain_term(struct dl_explanation *e, const char *part, double seconds, const char *what,
                     const char *expression)
{
    DL_GROW(e->terms, e->n_terms, e->terms_capacity);
    e->terms[e->n_terms++] = (struct dl_term){part, what, expression, seconds, e->n_cited, 0};
}

void dl_explain_sum(struct dl_explanation *e, enum dl_sum_from from, double seconds, const char *what)
{
    const size_t last = e->n_sums ? e->sums[e->n_sums - 1].end_term : 0;
    DL_GROW(e->sums, e->n_sums, e->sums_capacity);
    e->sums[e->n_sums++] = (struct dl_sum){what, seconds, from == DL_SUM_ALL ? 0 : last, e->n_terms};
}

double dl_explained_s(const struct dl_explanation *e, const char *part)
{
    double sum = 0;
    for (size_t i = 0; i < e->n_terms; i++)
        if (strcmp(e->terms[i].part, part) == 0) sum += e->terms[i].seconds;
    return sum;
}

/* ---- figures ---- */

static void keep_fact(void *user, const struct dl_fact *fact)
{
    struct dl_explanation *const e = user;
    DL_GROW(e->facts, e->n_facts, e->facts_capacity);
    e->facts[e->n_facts++] = *fact;
}

void dl_explain_read(struct dl_explanation *e, struct dl_json doc) { dl_json_facts(doc, e->arena, keep_fact, e); }

static size_t figure_of(struct dl_explanation *e, const struct dl_fact *fact)
{
    for (size_t i = 0; i < e->n_figures; i++)
        if (e->figures[i].where == fact->where) return i;
    DL_GROW(e->figures, e->n_figures, e->figures_capacity);
    e->figures[e->n_figures] = (struct dl_cited){fact->where, fact->text, fact->value};
    return e->n_figures++;
}

static void cite_fact(struct dl_explanation *e, const struct dl_fact *fact)
{
    struct dl_term *const term = &e->terms[e->n_terms - 1];
    const size_t figure = figure_of(e, fact);
    for (size_t i = 0; i < term->n_cited; i++)
        if (e->cited[term->first_cited + i] == figure) return;
    DL_GROW(e->cited, e->n_cited, e->cited_capacity);
    e->cited[e->n_cited++] = figure;
    term->n_cited++;
}

void dl_explain_cite(struct dl_explanation *e, struct dl_json at)
{
    for (size_t i = 0; at.value && i < e->n_facts; i++)
        if (strcmp(e->facts[i].where, at.where) == 0) cite_fact(e, &e->facts[i]);
}

static bool is_below(const char *where, const char *object)
{
    const size_t length = strlen(object);
    return strncmp(where, object, length) == 0 && where[length] == '/';
}

void dl_explain_cite_below(struct dl_explanation *e, struct dl_json at)
{
    for (size_t i = 0; at.value && i < e->n_facts; i++)
        if (is_below(e->facts[i].where, at.where)) cite_fact(e, &e->facts[i]);
}

/* ---- figures of links ---- */

struct of_link {
    const char *kind, *ending;
    double value; /* NAN: any */
    size_t n_cited;
};

static bool ends_key(const char *where, const char *ending)
{
    const char *const at = strstr(where, ending);
    return at && (at[strlen(ending)] == '\0' || at[strlen(ending)] == '/');
}

static void cite_below(struct dl_explanation *e, const char *object, struct of_link *of)
{
    for (size_t i = 0; i < e->n_facts; i++) {
        const struct dl_fact *const fact = &e->facts[i];
        if (!is_below(fact->where, object) || !ends_key(fact->where, of->ending)) continue;
        if (!isnan(of->value) && fact->value != of->value) continue;
        cite_fact(e, fact);
        of->n_cited++;
    }
}

/* Objects that say "link": kind. */
static void cite_objects(struct dl_explanation *e, struct dl_json at, struct of_link *of)
{
    const char *const link = json_string_value(json_object_get(at.value, "link"));
    const char *key;
    json_t *member;
    if (link && strcmp(link, of->kind) == 0) cite_below(e, at.where, of);
    json_object_foreach(at.value, key, member)
    {
        if (json_is_object(member) || json_is_array(member)) cite_objects(e, dl_json_member(at, key, e->arena), of);
    }
    for (size_t i = 0; i < json_array_size(at.value); i++)
        if (json_is_object(json_array_get(at.value, i))) cite_objects(e, dl_json_element(at, i, e->arena), of);
}

void dl_explain_cite_link(struct dl_explanation *e, struct dl_json system_doc, const char *kind, double value,
                          const char *ending)
{
    struct of_link of = {kind, ending, value, 0};
    cite_objects(e, system_doc, &of);
    if (of.n_cited) return;
    of.value = NAN;
    cite_objects(e, system_doc, &of);
}
