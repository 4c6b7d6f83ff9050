/* discrepancy.h - how far the model itself was from measured steps, with its constants at their best.
 *
 * A file (schema dlsim/discrepancy/1, written by validation/discrepancy) has, for each family of measured steps (one
 * table of one publication), for each software on each system in it, for models with and without experts, the errors
 * ln(measured / predicted) of its rows: their mean, the bias, and their spread about it. The spread of ratios is of ln
 * of the measured over the predicted ratio, for two ways to train one model.
 *
 * The rule to remember: families are independent, rows of one are not. Each family errs by an effect of its own, and
 * each of its rows by a little more. So a family counts once, however many rows it has, and what is predicted is a row
 * of one more family. A family that constants were fitted to, or mechanisms chosen for, is nearer than a stranger's
 * will be: it counts for its own software on its own system, and so do three of them alone. Nobody else is taken to be
 * surer than the families of its domain are that nothing was fitted to: what models are trained on decides how much of
 * a step no file describes. Where a domain has fewer than three of these, all of them count.
 *
 * Mechanisms were chosen with all of these in sight. Families that were predicted before anybody had looked at them are
 * `blind`: their errors are those of that first prediction, whatever is predicted since. They alone tell of software on
 * a system of which no step was seen, and with the others of its domain of software of which a family or two are known
 * there: a run of one's own is a further family. Of these, `strange` ones were chosen because little was known of their
 * machines, and count for such setups alone. */
#ifndef DL_REPORT_DISCREPANCY_H
#define DL_REPORT_DISCREPANCY_H

#include "sim/core/inherit.h"

/* What a model is trained on: tokens, images, or samples of which its file says how they are stored. */
enum dl_domain { DL_DOMAIN_TOKENS, DL_DOMAIN_IMAGES, DL_DOMAIN_FILES };
extern const char *const dl_domains[]; /* their names; then NULL */

/* What is predicted: files by their names. */
struct dl_setup {
    const char *software, *system;
    bool experts;       /* in the model */
    int64_t domain;     /* enum dl_domain */
    const char *family; /* of measured steps, which shall not count; NULL: all count */
};

bool dl_is_same_setup(const struct dl_setup *a, const struct dl_setup *b); /* of whatever family */

/* Of ln(measured / predicted): where its middle is, and what holds it with 95 %. */
struct dl_open {
    double middle, low, high;
};

/* Errors of rows, about their mean. */
struct dl_row_errors {
    double bias, spread;
    int64_t rows;
};

struct dl_discrepancy {
    struct dl_setup of;
    double bias, spread; /* of a step of one more family: the mean of those known, and how far it may be */
    double degrees;      /* of freedom, of this spread */
    int64_t families;    /* that tell it. 0: nothing is known */
    double ratio_spread;
    int64_t ratio_rows;
    struct dl_row_errors own; /* of this software on this system */
    const char *own_software; /* whose they are: the software, or one that it is like */
    bool by_own;              /* families of its own are enough */
    bool by_blind;            /* there are none of its own: the families are those that were predicted blind */
    struct dl_row_errors kin; /* of its domain, where it has too few families; else no rows */
};

/* Its names must outlive the result. */
enum dl_status dl_discrepancy_read(struct dl_json doc, const struct dl_setup *of, struct dl_arena *arena,
                                   struct dl_discrepancy *out, struct dl_error *err);

/* The same of software whose file is like others. Where no step of its own is known on the system, those of the nearest
 * that has some are taken for its own, however many families they are of as if these were too few: a file may change
 * anything of what it is like. */
enum dl_status dl_discrepancy_read_like(struct dl_json doc, const struct dl_setup *of, const struct dl_lineage *like,
                                        struct dl_arena *arena, struct dl_discrepancy *out, struct dl_error *err);

/* A step's; that of one more family, by Student's t, and where there are rows of its own or of its domain, but of few
 * families, these too. All is 0 if nothing is known. */
struct dl_open dl_discrepancy_open(const struct dl_discrepancy *d);
/* Of own rows alone. */
struct dl_open dl_discrepancy_own(const struct dl_discrepancy *d);
/* Half of a step's, and of the ratio of two. Where nobody saw ratios, the two steps are taken to err by themselves. */
double dl_discrepancy_half_width(const struct dl_discrepancy *d);
double dl_discrepancy_ratio_half_width(const struct dl_discrepancy *d);

json_t *dl_discrepancy_json(const struct dl_discrepancy *d);

#endif
