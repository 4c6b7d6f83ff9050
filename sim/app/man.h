/* man.h - the manual page of dlsim, from the tables that --help is made of. */
#ifndef DL_APP_MAN_H
#define DL_APP_MAN_H

#include <stdio.h>

#include "sim/app/commands.h"

/* As roff for `man`; CMake keeps it as dlsim.1 where it builds. */
void dl_print_man(FILE *to, const struct dl_command *const *commands, size_t n_commands);

#endif
