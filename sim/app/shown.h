/* shown.h - a data file as dlsim understands it, for `dlsim show`: what it says, what it refers to, what follows.
 *
 * The rule to remember: a figure has the unit at the end of its key, as in files, and is told in it. */
#ifndef DL_APP_SHOWN_H
#define DL_APP_SHOWN_H

#include "sim/app/file_kinds.h"
#include "sim/core/facts.h"

enum { DL_MOST_FIGURES = 40, DL_MOST_REFERENCES = 4 };

struct dl_shown {
    const struct dl_file_kind *kind;
    struct dl_json doc;   /* with "like" applied */
    const char *name;     /* of the file, without .json */
    const char *like;     /* NULL: no other file */
    struct dl_reference { /* another file that it names */
        const char *kind, *name, *place;
        const char *path; /* NULL: there is none */
    } references[DL_MOST_REFERENCES];
    size_t n_references;
    struct dl_figure_shown { /* that follows from it */
        const char *key;
        double value;
        const char *text; /* in place of the value; NULL: a number */
    } figures[DL_MOST_FIGURES];
    size_t n_figures;
    struct dl_fact *facts;
    size_t n_facts, facts_capacity;
    struct dl_arena *arena; /* not owned */
};

/* Fill in what it refers to and what follows from it; refuses a file that a run would refuse. */
enum dl_status dl_shown_derive(struct dl_shown *s, struct dl_error *err);
/* And the facts; for dl_free(s->facts). */
void dl_shown_list_facts(struct dl_shown *s);

void dl_shown_text(const struct dl_shown *s);
json_t *dl_shown_json(const struct dl_shown *s);

#endif
