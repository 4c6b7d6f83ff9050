/* formats.h - the formats that `dlsim import` reads; a new one is one file and one line here. */
#ifndef DL_IMPORT_FORMATS_H
#define DL_IMPORT_FORMATS_H

#include "sim/import/import.h"

#define DL_IMPORT_FORMATS(FORMAT) FORMAT(huggingface) FORMAT(megatron) FORMAT(deepspeed) FORMAT(torchtitan)

#define DL_DECLARE_FORMAT(name) extern const struct dl_import_format dl_import_##name;
DL_IMPORT_FORMATS(DL_DECLARE_FORMAT)
#undef DL_DECLARE_FORMAT

#endif
