/* explain_print.c - an explanation as text, and for programs. */
#include <math.h>
#include <stdio.h>

#include "sim/report/explain.h"

/* A figure is told where it is first used. */
static void print_figures(const struct dl_explanation *e, const struct dl_term *term, bool *is_told)
{
    for (size_t i = 0; i < term->n_cited; i++) {
        const size_t which = e->cited[term->first_cited + i];
        const struct dl_cited *const f = &e->figures[which];
        if (is_told[which]) continue;
        printf("            %.12g: %s, %s\n", f->value, f->where, f->fact);
        is_told[which] = true;
    }
}

static void print_term(const struct dl_explanation *e, const struct dl_term *term, bool *is_told)
{
    printf("    %c %.12g s  %s: %s\n", term->seconds < 0 ? '-' : '+', fabs(term->seconds), term->part, term->what);
    if (term->expression) printf("        = %s\n", term->expression);
    print_figures(e, term, is_told);
}

void dl_explanation_print(const struct dl_explanation *e)
{
    bool *const is_told = dl_alloc((e->n_figures + 1) * sizeof *is_told);
    size_t term = 0;
    puts("  explained: every term with its formula, and figures where they are first used");
    for (size_t i = 0; i < e->n_sums; i++) {
        for (; term < e->sums[i].end_term; term++) print_term(e, &e->terms[term], is_told);
        printf("    = %.12g s  %s\n", e->sums[i].seconds, e->sums[i].what);
    }
    dl_free(is_told);
}

static json_t *term_json(const struct dl_explanation *e, const struct dl_term *term)
{
    json_t *const figures = json_array();
    for (size_t i = 0; i < term->n_cited; i++)
        json_array_append_new(figures, json_string(e->figures[e->cited[term->first_cited + i]].where));
    return dl_json_pack("{s:s, s:s, s:s?, s:f, s:o}", "part", term->part, "what", term->what, "formula",
                        term->expression, "seconds", term->seconds, "figures", figures);
}

json_t *dl_explanation_json(const struct dl_explanation *e)
{
    json_t *const terms = json_array(), *const figures = json_array(), *const sums = json_array();
    for (size_t i = 0; i < e->n_terms; i++) json_array_append_new(terms, term_json(e, &e->terms[i]));
    for (size_t i = 0; i < e->n_figures; i++)
        json_array_append_new(figures, dl_json_pack("{s:s, s:f, s:s}", "where", e->figures[i].where, "value",
                                                    e->figures[i].value, "fact", e->figures[i].fact));
    for (size_t i = 0; i < e->n_sums; i++)
        json_array_append_new(sums, dl_json_pack("{s:s, s:f, s:I, s:I}", "what", e->sums[i].what, "seconds",
                                                 e->sums[i].seconds, "first_term", (json_int_t)e->sums[i].first_term,
                                                 "end_term", (json_int_t)e->sums[i].end_term));
    return dl_json_pack("{s:o, s:o, s:o}", "terms", terms, "sums", sums, "figures", figures);
}
