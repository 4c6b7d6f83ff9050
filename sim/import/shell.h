/* shell.h - a launch script as far as its training command needs it: words, line continuations, comments, quotes,
 * NAME=value, NAME=( words ), NAME+=..., ${NAME}, ${NAME:-word}, ${NAME[@]} and $(( arithmetic )).
 *
 * The rule to remember: nothing is run and nothing is guessed. What cannot be known from the text ($1, $(command), a
 * name that is not set, or is set in a condition) stays in the word as it is written, for the reader of the word to
 * refuse or to list. */
#ifndef DL_IMPORT_SHELL_H
#define DL_IMPORT_SHELL_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/core/error.h"
#include "sim/core/memory.h"

struct dl_word {
    const char *text; /* arena memory */
    uint32_t line;
};

struct dl_shell_words {
    struct dl_word *items; /* for dl_free */
    size_t n, capacity;
};
void dl_words_add(struct dl_shell_words *words, const char *text, uint32_t line);

/* One command as it is written, with its quotes. An array is one word: NAME=( ... ). */
struct dl_shell_command {
    struct dl_shell_words words;
    uint32_t line;
    char joined; /* to the command before: '&' by &&, '|' by ||; 0: by neither */
};
struct dl_shell_commands {
    struct dl_shell_command *items;
    size_t n, capacity;
};
/* The words of `#SBATCH` lines are commands too, with that as their first word. */
enum dl_status dl_shell_split(const char *text, size_t bytes, const char *where, struct dl_arena *arena,
                              struct dl_shell_commands *out, struct dl_error *err);
void dl_shell_free(struct dl_shell_commands *commands);

/* What names stand for. */
struct dl_shell_name {
    const char *name;
    struct dl_shell_words values; /* of an array several */
    uint32_t line;
    bool is_array;
    bool in_condition; /* set inside if, for, a function, ...: whether it is, is not known */
};
struct dl_shell {
    const char *where;
    struct dl_arena *arena;
    struct dl_shell_name *names;
    size_t n_names, capacity;
    size_t expanded; /* characters so far: a script that doubles a name line by line has an end */
};
const struct dl_shell_name *dl_shell_find(const struct dl_shell *shell, const char *name, size_t bytes);
/* Add to `out` the words that a word as it is written becomes. */
enum dl_status dl_shell_expand(struct dl_shell *shell, const struct dl_word *raw, struct dl_shell_words *out,
                               struct dl_error *err);
/* The same for a value that is assigned: always one word, with its blanks. */
enum dl_status dl_shell_expand_value(struct dl_shell *shell, const struct dl_word *raw, struct dl_shell_words *out,
                                     struct dl_error *err);
/* The value of an expression of whole numbers and names; false: it cannot be known. */
bool dl_shell_calculate(const struct dl_shell *shell, const char *text, size_t bytes, int64_t *value);
/* The bytes of a name at the start of the text; 0: there is none. */
size_t dl_shell_name_bytes(const char *text);

/* The training command of a script. */
struct dl_launch {
    struct dl_shell_words launcher;  /* what stands before the program, and #SBATCH lines */
    const char *program;             /* NULL: the text is a list of flags alone */
    struct dl_shell_words arguments; /* of the program */
};
/* It is the command that has one of the flags `marks` (ends with NULL). */
enum dl_status dl_launch_read(const char *text, size_t bytes, const char *where, const char *const *marks,
                              struct dl_arena *arena, struct dl_launch *out, struct dl_error *err);
void dl_launch_free(struct dl_launch *launch);

#endif
