/* log_megatron.h - the arguments of Megatron-LM as keys of a measured step. */
#ifndef DL_IMPORT_LOG_MEGATRON_H
#define DL_IMPORT_LOG_MEGATRON_H

#include "sim/import/log.h"

enum { DL_MEGATRON_OPTIONS = 53 };
extern const struct dl_log_option dl_megatron_options[DL_MEGATRON_OPTIONS];
/* What they say together. */
void dl_megatron_finish(struct dl_log_reader *r);

#endif
