/* commands.h - the subcommands; a new one is one file and one line in main.c. Each gets the words after its name and
 * returns the exit code: 0 done, 1 the answer is no, 2 bad usage or input, 3 internal. */
#ifndef DL_APP_COMMANDS_H
#define DL_APP_COMMANDS_H

#include "sim/app/options.h"

struct dl_command {
    const char *name, *doc, *usage;
    int (*run)(int argc, char **argv, struct dl_error *err); /* an error in err means exit code 2 or 3 */
    const struct dl_option *options;                         /* OPTIONAL: for its --help */
    size_t n_options;
};

extern const struct dl_command dl_command_run;
extern const struct dl_command dl_command_compare;
extern const struct dl_command dl_command_collective;
extern const struct dl_command dl_command_list;
extern const struct dl_command dl_command_show;
extern const struct dl_command dl_command_check;
extern const struct dl_command dl_command_export;
extern const struct dl_command dl_command_validate;
extern const struct dl_command dl_command_profile;
extern const struct dl_command dl_command_calibrate;
extern const struct dl_command dl_command_sweep;
extern const struct dl_command dl_command_search;
extern const struct dl_command dl_command_import;

#endif
