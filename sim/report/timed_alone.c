#include "sim/report/timed_alone.h"

#include <stdio.h>

#include "sim/core/json.h"
#include "sim/report/units.h"

double dl_n_timed_alone(const struct dl_run_report *r) { return r->lowered->n_timed_alone + r->result.n_timed_alone; }

static double n_that_may_meet(const struct dl_run_report *r)
{
    double sum = r->result.n_over_replicas;
    for (size_t i = 0; i < r->lowered->n_kinds; i++) sum += r->lowered->kinds[i].n;
    return sum;
}

void dl_timed_alone_print(const struct dl_run_report *r)
{
    char priced[DL_QUANTITY], all[DL_QUANTITY];
    const char *before = "";
    if (dl_n_timed_alone(r) == 0) return;
    printf("  %s of %s collectives that may share links are priced without contention (",
           dl_format_count(dl_n_timed_alone(r), priced), dl_format_count(n_that_may_meet(r), all));
    for (size_t i = 0; i < r->lowered->n_kinds; i++) {
        const struct dl_planned_kind *const kind = &r->lowered->kinds[i];
        if (kind->n_priced == 0) continue;
        printf("%s%s %s", before, dl_cause_name(kind->cause), dl_op_name(kind->op));
        before = ", ";
    }
    if (r->result.n_timed_alone > 0) printf("%sover replicas", before);
    puts("); --fidelity step simulates them");
}

static json_t *kind_json(const char *cause, const char *op, double n_priced, double n)
{
    return dl_json_pack("{s:s, s:s?, s:f, s:f}", "cause", cause, "op", op, "priced", n_priced, "all", n);
}

json_t *dl_timed_alone_json(const struct dl_run_report *r)
{
    json_t *const kinds = json_array();
    for (size_t i = 0; i < r->lowered->n_kinds; i++) {
        const struct dl_planned_kind *const kind = &r->lowered->kinds[i];
        if (kind->n_priced > 0)
            json_array_append_new(kinds,
                                  kind_json(dl_cause_name(kind->cause), dl_op_name(kind->op), kind->n_priced, kind->n));
    }
    if (r->result.n_timed_alone > 0)
        json_array_append_new(
            kinds, kind_json(dl_cause_name(DL_CAUSE_DATA), NULL, r->result.n_timed_alone, r->result.n_over_replicas));
    return kinds;
}
