/* analytic_run.h - a step of a shipped model on a shipped machine with the analytic engine, in this process. */
#ifndef TESTS_UNIT_ANALYTIC_RUN_H
#define TESTS_UNIT_ANALYTIC_RUN_H

#include "sim/session/session.h"
#include "tests/unit/suite.h"

struct analytic_run {
    const char *topo, *workload; /* a text that begins with { is the workload itself */
    const char *software;        /* NULL: the default */
    const char *head, *stack;    /* of the strategy: keys, "" or each with a comma after it; entries */
    const char *set[3];          /* as --set; the first NULL ends them */
};

/* False: it is refused. Close the session in any case. */
static inline bool analytic_run(const struct analytic_run *r, struct dl_arena *arena, struct dl_session *s)
{
    char *const strategy = dl_arena_format(
        arena, "{\"schema\":\"dlsim/strategy/1\",\"source\":\"a test\",\"workload\":\"none\",%s\"stack\":[%s]}",
        r->head, r->stack);
    const bool is_text = *r->workload == '{';
    struct dl_session_request request = {
        .topo = {.name = r->topo},
        .strategy = {.name = "test.json", .text = strategy},
        .workload = {.name = is_text ? "test.json" : r->workload, .text = is_text ? r->workload : NULL},
        .software = {.name = r->software},
        .engine = "analytic"};
    while (request.set.n < DL_COUNT(r->set) && r->set[request.set.n]) {
        request.set.items[request.set.n] = r->set[request.set.n];
        request.set.n++;
    }
    if (dl_session_open(s, &request)) return false;
    ck_assert_msg(!dl_session_run(s), "%s", s->err.text);
    return true;
}

#endif
