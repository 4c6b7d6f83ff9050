/* explain_formula.h - the closed form of a collective, with its numbers put in:
 *
 *     time = start + steps x alpha + bytes / bandwidth + bytes added x gamma
 *
 * A ring: a piece meets the hops on its way, and the most loaded link moves its bytes meanwhile; the same for what is
 * priced as its fold. All others round by round: each begins when the slowest message of the one before has come. */
#ifndef DL_REPORT_EXPLAIN_FORMULA_H
#define DL_REPORT_EXPLAIN_FORMULA_H

#include "sim/collective/choose.h"
#include "sim/report/explain.h"

struct dl_formula_of {
    struct dl_estimator *estimator;
    const struct dl_choice *choice;
    struct dl_json system_doc, transport_doc; /* their figures must have been read */
    double times;                             /* how often it comes */
    const char *times_words;                  /* the same in expressions: "96 / 4"; NULL: as a number */
    const char *part, *subject; /* of terms; NULL: "start", "latency", ..., and nothing before the words */
};

struct dl_formula_sums {
    double start_s, latency_s, moving_s, reduction_s; /* of all times */
};

/* Adds its terms. */
enum dl_status dl_explain_formula(struct dl_explanation *e, const struct dl_formula_of *of,
                                  struct dl_formula_sums *sums, struct dl_error *err);

#endif
