#include "sim/session/whole_job.h"

enum dl_status dl_whole_job_read(struct dl_json strategy, const struct dl_session_request *given,
                                 struct dl_arena *arena, struct dl_whole_job *out, struct dl_error *err)
{
    struct dl_json software = {0}, workload = {0};
    struct dl_job *const job = &out->job;
    if (dl_job_read(strategy, 0, arena, job, err)) return err->status;
    const struct dl_want by = {DL_SOFTWARE, "software", dl_given_or(given->software, strategy, job->software),
                               "software", dl_place_of_name(given->software.name, strategy, "software", arena)};
    const struct dl_want what = {DL_WORKLOADS, "workload", dl_given_or(given->workload, strategy, job->workload),
                                 "workload", dl_place_of_name(given->workload.name, strategy, "workload", arena)};
    const size_t told = err->n_told;
    if ((!dl_load_document(&what, &given->set, arena, &workload, err) || dl_go_on(err)) &&
        (!dl_load_document(&by, &given->set, arena, &software, err) || dl_go_on(err)) && !dl_stop_if_told(err, told) &&
        !dl_software_read(software, arena, &out->software, err) &&
        !dl_workload_read(workload, job->setting.microbatch, dl_job_model_code(job, out->software.code), arena,
                          &out->model, err)) {
        dl_job_suit(job, &out->software, &out->model);
        dl_job_check(job, &out->model, arena, err);
    }
    json_decref(software.value);
    json_decref(workload.value);
    return err->status;
}
