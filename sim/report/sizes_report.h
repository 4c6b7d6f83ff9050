/* sizes_report.h - the answer of `dlsim collective --sizes`: times over sizes and algorithms, the fastest, and the
 * sizes where another one becomes the fastest. */
#ifndef DL_REPORT_SIZES_REPORT_H
#define DL_REPORT_SIZES_REPORT_H

#include "sim/collective/choose.h"
#include "sim/report/assumptions.h"
#include "sim/report/files_read.h"

struct dl_size_cell {
    const char *protocol;
    double time_s; /* INFINITY: it cannot be done in this size */
};

/* Between two sizes of the table; both are the same size where it was found exactly. */
struct dl_crossover {
    double low_bytes, high_bytes;
    size_t from, to; /* algorithms */
};

struct dl_sizes {
    const struct dl_topology *topology;
    const struct dl_transport *transport;
    enum dl_op op;
    const struct dl_group *group;
    const char *engine, *fidelity;
    const char **algorithms; /* all lists live in the run's arena */
    size_t n_algorithms;
    double *bytes;
    size_t n_bytes;
    struct dl_size_cell *cells; /* [size * n_algorithms + algorithm] */
    const char **automatic;     /* by size: what `--algo auto` takes; NULL: nothing */
    struct dl_crossover *crossovers;
    size_t n_crossovers;
    struct dl_assumptions assumptions;
    struct dl_files_read files;
};

/* The algorithm that is fastest in the which-th size; ties go to the first of the table. */
size_t dl_sizes_fastest(const struct dl_sizes *s, size_t which);

void dl_sizes_report_text(const struct dl_sizes *s);
json_t *dl_sizes_report_json(const struct dl_sizes *s);

#endif
