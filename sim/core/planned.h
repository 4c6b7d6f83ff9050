/* planned.h - the files that this run will write, known before its work begins.
 *
 * The rule to remember: a file has one use in a run. Two outputs in one file, or an output that replaces an input, are
 * refused, however their names are spelt. */
#ifndef DL_CORE_PLANNED_H
#define DL_CORE_PLANNED_H

#include "sim/core/error.h"

/* Refuse what cannot be written, or is written for another option already. The name of the option and the path must
 * live as long as the program. */
enum dl_status dl_plan_output(const char *path, const char *option, struct dl_error *err);

/* Refuse to read what will be written. */
enum dl_status dl_refuse_planned(const char *path, struct dl_error *err);

#endif
