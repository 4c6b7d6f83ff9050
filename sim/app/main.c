/* main.c - dlsim COMMAND [OPTIONS]. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/app/commands.h"
#include "sim/app/man.h"
#include "sim/app/mpirun.h"
#include "sim/core/memory.h"
#include "sim/core/version.h"
#include "sim/core/visible.h"
#include "sim/engine/simgrid.h"
#include "sim/report/host.h"
#include "sim/report/progress.h"

static const struct dl_command *const commands[] = {
    &dl_command_run,    &dl_command_collective, &dl_command_list,    &dl_command_show,      &dl_command_check,
    &dl_command_export, &dl_command_validate,   &dl_command_profile, &dl_command_calibrate, &dl_command_compare,
    &dl_command_sweep,  &dl_command_search,     &dl_command_import,
};

static void print_help(FILE *to)
{
    fputs("dlsim simulates distributed deep-learning training on supercomputers and accelerators.\n\n", to);
    for (size_t i = 0; i < DL_COUNT(commands); i++)
        fprintf(to, "  dlsim %-10s %s\n      dlsim %s\n", commands[i]->name, commands[i]->doc, commands[i]->usage);
    fputs(
        "\nEach has a --help of its own. A name without a slash is a shipped file (see `dlsim list`) or, if there is\n"
        "none, a file in the current folder; inside a file, names are relative to that file.\n"
        "dlsim --version tells the version, dlsim --man prints the manual page (dlsim --man | man -l -).\n",
        to);
}

static const struct dl_command *find(const char *name, struct dl_error *err)
{
    const char *names[DL_COUNT(commands)];
    char nearest[DL_HINT], all[DL_HINT];
    for (size_t i = 0; i < DL_COUNT(commands); i++) {
        names[i] = commands[i]->name;
        if (strcmp(name, names[i]) == 0) return commands[i];
    }
    dl_fail(err, DL_SYNTAX, name, "no such command%s (%s)", dl_suggestion(name, names, DL_COUNT(names), nearest),
            dl_joined(names, DL_COUNT(names), all));
    return NULL;
}

static bool asks_for_help(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static void print_version(void)
{
    printf("dlsim %s\n", dl_version());
    puts("Sources under Apache-2.0; this program is linked with GSL: to be passed on under GPL-3.0-or-later.");
}

/* Words that stand alone in place of a command. */
static bool is_told(const char *word)
{
    if (asks_for_help(word))
        print_help(stdout);
    else if (strcmp(word, "--version") == 0)
        print_version();
    else if (strcmp(word, "--man") == 0)
        dl_print_man(stdout, commands, DL_COUNT(commands));
    else
        return false;
    return true;
}

static bool is_helped(int argc, char **argv, const struct dl_command *command)
{
    char usage[400];
    snprintf(usage, sizeof usage, "dlsim %s\n  %s", command->usage, command->doc);
    return dl_helped(argc, argv, usage, command->options, command->n_options);
}

static int run(int argc, char **argv, struct dl_error *err)
{
    static char help[] = "--help";
    if (argc > 2 && strcmp(argv[1], "help") == 0) { /* help run: run --help */
        argv[1] = argv[2];
        argv[2] = help;
    }
    if (is_told(argv[1])) return 0;
    const bool has_word = argv[1][0] != '-'; /* the word `run` may be left out */
    const struct dl_command *const command = has_word ? find(argv[1], err) : &dl_command_run;
    const bool tells_own_help = command == &dl_command_profile;
    if (!command || (!tells_own_help && is_helped(argc - has_word, argv + has_word, command))) return 0;
    if (dl_mpirun_copies() > 1 && dl_mpirun_become(argv, command == &dl_command_sweep, err)) return 0;
    static char name[] = "run";
    if (!has_word) argv[0] = name; /* errors name the command, not the path of the program */
    return command->run(argc - has_word, argv + has_word, err);
}

static int answer(int argc, char **argv)
{
    struct dl_error err = {0};
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    const int code = run(argc, argv, &err);
    if (!err.status && (fflush(stdout) || ferror(stdout)))
        dl_fail(&err, DL_NOT_FOUND, "standard output", "cannot be written: %s", strerror(errno));
    if (!err.status) return code;
    dl_progress_end();
    fprintf(stderr, "dlsim: %s\n", err.text);
    return err.status == DL_STALLED ? 3 : 2;
}

/* Where SimGrid was loaded it ends without the destructors of its many libraries: the system takes all back at once. */
int main(int argc, char **argv)
{
    dl_memory_begin();
    dl_show_only_text();
    dl_host_begin();
    const int code = answer(argc, argv);
    fflush(NULL);
    if (dl_simgrid_is_loaded()) _Exit(code);
    return code;
}
