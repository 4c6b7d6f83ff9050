/* export_megatron.h - `dlsim export --format megatron`: a strategy and its workload as a launch command. */
#ifndef DL_APP_EXPORT_MEGATRON_H
#define DL_APP_EXPORT_MEGATRON_H

#include "sim/app/options.h"

struct dl_export_training {
    const char *strategy, *workload; /* workload NULL: the strategy's */
    uint32_t devices;                /* 0: the strategy's */
    const struct dl_texts *set;
};
/* The command goes to standard output. */
enum dl_status dl_export_megatron(const struct dl_export_training *what, struct dl_error *err);

#endif
