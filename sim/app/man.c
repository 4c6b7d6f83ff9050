#include "sim/app/man.h"

#include <string.h>

#include "sim/core/version.h"

/* A line of its own: what roff would take for a request, an escape or a hyphen is meant as it is. */
static void put_line(FILE *to, const char *text)
{
    if (*text == '.' || *text == '\'') fputs("\\&", to);
    for (; *text; text++) {
        if (*text == '\\')
            fputs("\\e", to);
        else if (*text == '-')
            fputs("\\-", to);
        else if (*text == '|')
            fputs("|\\:", to); /* a line may end there */
        else
            fputc(*text, to);
    }
    fputc('\n', to);
}

static void put_section(FILE *to, const char *title, const char *const *lines)
{
    fprintf(to, ".SH %s\n", title);
    for (; *lines; lines++) put_line(to, *lines);
}

/* What is written in bold, and a paragraph about it. */
static void put_entry(FILE *to, const char *name, const char *doc)
{
    fputs(".TP\n.B ", to);
    put_line(to, name);
    put_line(to, doc);
}

static void put_command(FILE *to, const struct dl_command *c)
{
    fprintf(to, ".SS %s\n", c->name);
    fputs(".B dlsim ", to);
    put_line(to, c->usage);
    fputs(".PP\n", to);
    put_line(to, c->doc);
    for (size_t i = 0; i < c->n_options; i++) {
        char call[DL_OPTION_CALL];
        put_entry(to, dl_option_call(&c->options[i], call), c->options[i].doc);
        if (c->options[i].required) fputs("(required)\n", to);
    }
}

static void put_table(FILE *to, const char *title, const char *const (*entries)[2], size_t n_entries)
{
    fprintf(to, ".SH %s\n", title);
    for (size_t i = 0; i < n_entries; i++) put_entry(to, entries[i][0], entries[i][1]);
}

void dl_print_man(FILE *to, const struct dl_command *const *commands, size_t n_commands)
{
    static const char *const name[] = {"dlsim - simulate distributed deep-learning training", NULL};
    static const char *const description[] = {"dlsim predicts how long a training step of a neural network takes on a "
                                              "supercomputer or a set of accelerators,",
                                              "where time and memory go, and whether it fits. Files describe the "
                                              "machine, the model and how the model is spread",
                                              "over the devices. A name without a slash is a shipped file (see dlsim "
                                              "list) or, if there is none, a file in the",
                                              "current folder; inside a file, names are relative to that file.", NULL};
    static const char *const general[][2] = {
        {"--help", "all commands; after a command, its options"},
        {"--version", "the version, and under which licence this program may be passed on"},
        {"--man", "this page, as roff"},
    };
    static const char *const codes[][2] = {
        {"0", "done"},
        {"1", "the answer is no: it does not fit, or it is above a limit"},
        {"2", "bad usage or input; one line on standard error says where, what is wrong and what would be right"},
        {"3", "a defect of dlsim"},
    };
    static const char *const variables[][2] = {
        {"DLSIM_HOME", "the folder with dlsim's own files, in place of ../share/dlsim from where the program is"},
        {"DLSIM_MEMORY_BYTES", "how much memory a run may take on this computer, in place of what is free"},
    };
    fprintf(to, ".TH DLSIM 1 \"\" \"dlsim %s\" \"User Commands\"\n.nh\n.ad l\n", dl_version());
    put_section(to, "NAME", name);
    fputs(".SH SYNOPSIS\n.B dlsim\nCOMMAND [OPTIONS]\n", to);
    put_section(to, "DESCRIPTION", description);
    put_table(to, "OPTIONS", general, DL_COUNT(general));
    fputs(".SH COMMANDS\n", to);
    for (size_t i = 0; i < n_commands; i++) put_command(to, commands[i]);
    put_table(to, "EXIT STATUS", codes, DL_COUNT(codes));
    put_table(to, "ENVIRONMENT", variables, DL_COUNT(variables));
    fputs(".SH SEE ALSO\n.BR dlsim\\-profile (1)\n", to);
}
