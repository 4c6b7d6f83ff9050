/* job.h - a strategy file: what is trained, with which settings, under which stack of strategies. */
#ifndef DL_STRATEGIES_JOB_H
#define DL_STRATEGIES_JOB_H

#include "strategies/schedule.h"
#include "strategies/stack.h"

struct dl_job {
    const char *workload; /* name of the workload file */
    struct dl_setting setting;
    struct dl_stack *stack;
    uint32_t n_devices;
    const char *software; /* name of the software file */
};

/* Schema dlsim/strategy/1. n_devices 0: as the file says, else the product of the ways. */
enum dl_status dl_job_read(struct dl_json doc, uint32_t n_devices, struct dl_arena *arena, struct dl_job *out,
                           struct dl_error *err);

/* The keys of a strategy file, for `dlsim list`. */
const struct dl_field *dl_job_fields(size_t *n_fields);

/* That the kernel of an optimizer of strategy files is. */
const char *dl_optimizer_operation(const char *name);

/* What the setting asks of its schedule; times are 0. */
struct dl_schedule_request dl_setting_schedule(const struct dl_setting *s);

/* How code writes a model down for the job's ranks; what dl_workload_read is to be given before dl_job_check. */
struct dl_model_code dl_job_model_code(const struct dl_job *job, struct dl_model_code code);

/* How the software trains the model, built so; software must outlive the job. */
void dl_job_suit(struct dl_job *job, const struct dl_software *software, const struct dl_model *model);

/* What the devices and their network do of themselves. */
void dl_job_suit_machine(struct dl_job *job, const struct dl_device *device, const struct dl_topology *topology);

/* All strategies' refusals of a model; and of so many blocks in its longest part. */
enum dl_status dl_job_check(const struct dl_job *job, const struct dl_model *model, struct dl_arena *arena,
                            struct dl_error *err);
enum dl_status dl_job_check_blocks(const struct dl_job *job, const struct dl_model *model, uint32_t n_blocks,
                                   struct dl_arena *arena, struct dl_error *err);

#endif
