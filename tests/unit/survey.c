/* survey.c - who may be on whose links, by the placement alone. */
#define _GNU_SOURCE /* fork, pipe */
#include "sim/plan/survey.h"
#include "tests/unit/divided_step.h"

static const struct {
    const char *system, *head, *stack;
    uint32_t n_sets;
} jobs[] = {
    {"dgx-h100", "'devices':16,'global_batch':16", "{'name':'tensor','ways':4},{'name':'data'}", 4},
    /* Two devices share a NIC. */
    {"dgx-a100-hdr4", "'devices':16,'global_batch':16,'order':['data','tensor','context','pipeline']",
     "{'name':'tensor','ways':2},{'name':'data'}", 4},
    {"frontier", "'devices':64,'global_batch':16", "{'name':'tensor','ways':4},{'name':'data'}", 0},
    {"tpu-v4", "'devices':64,'global_batch':16", "{'name':'tensor','ways':4},{'name':'data'}", 0},
    {SLOW_SYSTEM, "'devices':16,'global_batch':16", "{'name':'tensor','ways':2},{'name':'data'}", 8},
};

static void survey(const struct dl_session *t, uint32_t *first_of_set)
{
    const struct dl_plan_request request = {
        .job = &t->job, .topology = t->machine.topology, .device_of_rank = t->device_of_rank};
    const dl_digits along = DL_ALONG_TENSOR;
    struct dl_error err = {0};
    ck_assert_int_eq(dl_survey_sets(&request, &along, 1, first_of_set, &err), DL_OK);
}

/* The replicas of all that cross a link, pair by pair. */
static void check_links(const struct dl_session *t, const uint32_t *first_of_set)
{
    const struct dl_ranks *const ranks = &t->job.setting.ranks;
    const struct dl_topology *const topology = t->machine.topology;
    const uint32_t n = dl_ranks_count(ranks, DL_ALONG_TENSOR);
    uint32_t *const set_on = dl_alloc(topology->n_links * sizeof *set_on);
    struct dl_route route = {0};
    struct dl_error err = {0};
    for (uint32_t rank = 0; rank < t->job.n_devices; rank++)
        for (uint32_t places = 1; places < n; places *= 2) {
            const uint32_t to = dl_ranks_further(ranks, DL_ALONG_TENSOR, rank, places), *at = t->device_of_rank;
            const uint32_t set = first_of_set[dl_ranks_index(ranks, DL_ALONG_DATA, rank)] + 1;
            ck_assert(!dl_topology_route(topology, at[rank], at[to], 0, NULL, &route, &err));
            for (size_t i = 0; i < route.n_hops; i++) {
                uint32_t *const on_link = &set_on[route.hops[i].link];
                ck_assert(!*on_link || *on_link == set);
                *on_link = set;
            }
        }
    dl_route_release(&route);
    dl_free(set_on);
}

START_TEST(no_link_is_crossed_by_two_sets)
{
    struct dl_session t;
    open_step(&t,
              &(struct step){
                  .workload = FOUR_BLOCKS, .system = jobs[_i].system, .head = jobs[_i].head, .stack = jobs[_i].stack});
    const uint32_t n_replicas = dl_n_replicas(&t.job.setting);
    uint32_t *const first_of_set = dl_alloc(n_replicas * sizeof *first_of_set), n_sets = 0;
    survey(&t, first_of_set);
    check_links(&t, first_of_set);
    for (uint32_t i = 0; i < n_replicas; i++) {
        ck_assert(first_of_set[i] <= i && first_of_set[first_of_set[i]] == first_of_set[i]);
        n_sets += first_of_set[i] == i;
    }
    if (jobs[_i].n_sets) ck_assert_uint_eq(n_sets, jobs[_i].n_sets);
    dl_free(first_of_set);
    dl_session_close(&t);
}
END_TEST

int main(void)
{
    TCase *const tests = tcase_create("survey");
    tcase_add_loop_test(tests, no_link_is_crossed_by_two_sets, 0, DL_COUNT(jobs));
    Suite *const suite = suite_create("survey");
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}
