/* log_megatron.h - the arguments that a log of Megatron-LM prints. */
#ifndef DL_IMPORT_LOG_MEGATRON_H
#define DL_IMPORT_LOG_MEGATRON_H

#include "sim/import/log.h"

/* Make the documents of the log of its arguments, or say what is refused. */
void dl_megatron_import(struct dl_log_reader *r);

#endif
