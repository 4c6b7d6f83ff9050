/* sources.h - the figures of an object of a document, with where each comes from. */
#ifndef DL_REPORT_SOURCES_H
#define DL_REPORT_SOURCES_H

#include "sim/core/facts.h"

struct dl_sources {
    struct dl_source {
        const char *where, *text; /* text is "derived: how" */
        double value;
        enum dl_grade grade;
    } * items;
    size_t n, capacity;
};

extern const char dl_given[]; /* the text of what the command line gives */

/* Collect those below a key of the document; places live in the arena, texts in the document. */
void dl_sources_add(struct dl_sources *s, struct dl_json doc, const char *key, struct dl_arena *arena);
/* What the command line gives in the place of one that ends so (":/site/pue"), or in addition. */
void dl_sources_give(struct dl_sources *s, const char *place, const char *option, double value);
void dl_sources_release(struct dl_sources *s);
/* "3 derived, 2 assumed" */
void dl_sources_print_grades(const struct dl_sources *s);
/* One on each line. */
void dl_sources_print(const struct dl_sources *s);
json_t *dl_sources_json(const struct dl_sources *s);

#endif
