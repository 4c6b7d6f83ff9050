/* shell.c - which command of a script trains, and what it is given. */
#include "sim/import/shell.h"

#include <ctype.h>
#include <string.h>

struct reading {
    struct dl_shell shell;
    const char *const *marks;
    struct dl_launch *out;
    unsigned conditions; /* if, for, functions, ... that are open */
    uint32_t line;       /* of the training command; 0: none yet */
    struct dl_error *err;
};

/* ---- names ---- */

/* The bytes of NAME in NAME=... and NAME+=...; 0: no such word. */
static size_t assigned_bytes(const char *raw, bool *appends)
{
    const size_t n = dl_shell_name_bytes(raw);
    *appends = n && raw[n] == '+' && raw[n + 1] == '=';
    return n && (raw[n] == '=' || *appends) ? n : 0;
}

static struct dl_shell_name *name_of(struct reading *r, const char *raw, size_t n)
{
    struct dl_shell *const shell = &r->shell;
    struct dl_shell_name *const known = (struct dl_shell_name *)dl_shell_find(shell, raw, n);
    if (known) return known;
    DL_GROW(shell->names, shell->n_names, shell->capacity);
    shell->names[shell->n_names] = (struct dl_shell_name){.name = dl_arena_format(shell->arena, "%.*s", (int)n, raw)};
    return &shell->names[shell->n_names++];
}

/* The words between the brackets; lines in them separate words, too. */
static enum dl_status expand_array(struct reading *r, const struct dl_word *raw, const char *inner,
                                   struct dl_shell_words *out)
{
    struct dl_shell_commands parts = {0};
    const size_t n = strlen(inner);
    if (dl_shell_split(inner, n ? n - 1 : 0, r->shell.where, r->shell.arena, &parts, r->err) == DL_OK)
        for (size_t i = 0; i < parts.n; i++)
            for (size_t k = 0; k < parts.items[i].words.n && !r->err->status; k++) {
                struct dl_word word = parts.items[i].words.items[k];
                word.line += raw->line - 1;
                dl_shell_expand(&r->shell, &word, out, r->err);
            }
    dl_shell_free(&parts);
    return r->err->status;
}

static void append_values(const struct reading *r, struct dl_shell_name *name, struct dl_shell_words *more)
{
    if (name->is_array || !name->values.n || !more->n) {
        for (size_t i = 0; i < more->n; i++) dl_words_add(&name->values, more->items[i].text, more->items[i].line);
        return;
    }
    struct dl_word *const first = &name->values.items[0];
    first->text = dl_arena_format(r->shell.arena, "%s%s", first->text, more->items[0].text);
}

static enum dl_status assign(struct reading *r, const struct dl_word *raw, bool in_condition)
{
    bool appends;
    const size_t n = assigned_bytes(raw->text, &appends);
    const char *const value = raw->text + n + (appends ? 2 : 1);
    const bool is_array = *value == '(';
    struct dl_shell_words values = {0};
    if (is_array ? expand_array(r, raw, value + 1, &values)
                 : dl_shell_expand_value(&r->shell, &(struct dl_word){value, raw->line}, &values, r->err)) {
        dl_free(values.items);
        return r->err->status;
    }
    struct dl_shell_name *const name = name_of(r, raw->text, n);
    const bool was_in_condition = appends && name->in_condition;
    if (appends) {
        append_values(r, name, &values);
        dl_free(values.items);
    } else {
        dl_free(name->values.items);
        name->values = values;
        name->is_array = is_array;
    }
    name->is_array |= is_array;
    name->in_condition = in_condition || was_in_condition;
    if (!was_in_condition) name->line = raw->line;
    return DL_OK;
}

/* ---- commands ---- */

enum keyword { NONE, OPENS, CLOSES, STAYS, DECLARES, PRINTS, TESTS, BATCH };
static const struct {
    const char *word;
    enum keyword keyword;
} keywords[] = {
    {"if", OPENS},        {"for", OPENS},        {"while", OPENS},    {"until", OPENS},       {"case", OPENS},
    {"select", OPENS},    {"{", OPENS},          {"fi", CLOSES},      {"done", CLOSES},       {"esac", CLOSES},
    {"}", CLOSES},        {"then", STAYS},       {"else", STAYS},     {"elif", STAYS},        {"do", STAYS},
    {"export", DECLARES}, {"declare", DECLARES}, {"local", DECLARES}, {"readonly", DECLARES}, {"typeset", DECLARES},
    {"echo", PRINTS},     {"printf", PRINTS},    {"[", TESTS},        {"[[", TESTS},          {"test", TESTS},
    {"#SBATCH", BATCH},
};

static enum keyword keyword_of(const char *word)
{
    for (size_t i = 0; i < DL_COUNT(keywords); i++)
        if (strcmp(keywords[i].word, word) == 0) return keywords[i].keyword;
    return NONE;
}

static bool is_mark(const struct reading *r, const char *word)
{
    for (const char *const *mark = r->marks; *mark; mark++) {
        const size_t n = strlen(*mark);
        if (strncmp(word, *mark, n) == 0 && (word[n] == '\0' || strchr("= \t\n", word[n]))) return true;
    }
    return false;
}

/* sh -c "python train.py ..." holds the command in one word. */
static void cut_inner(const struct reading *r, const struct dl_word *word, struct dl_shell_words *out)
{
    const char *at = word->text;
    while (*at) {
        const size_t blank = strspn(at, " \t\r\n"), n = strcspn(at + blank, " \t\r\n");
        if (n) dl_words_add(out, dl_arena_format(r->shell.arena, "%.*s", (int)n, at + blank), word->line);
        at += blank + n;
    }
}

static bool has_inner_mark(const struct reading *r, const char *word)
{
    for (const char *at = strpbrk(word, " \t\n"); at; at = strpbrk(at, " \t\n"))
        if (is_mark(r, ++at)) return true;
    return false;
}

static bool ends_in_py(const char *word)
{
    const size_t n = strlen(word);
    return n > 3 && strcmp(word + n - 3, ".py") == 0;
}

static enum dl_status found(struct reading *r, const struct dl_shell_command *command,
                            const struct dl_shell_words *words, size_t first_mark)
{
    if (r->line)
        return dl_fail(r->err, DL_IMPOSSIBLE, dl_arena_format(r->shell.arena, "%s:%u", r->shell.where, command->line),
                       "is a second training command, after that on line %u; keep one of them", r->line);
    size_t arguments = 0;
    for (size_t i = 0; i < first_mark; i++)
        if (ends_in_py(words->items[i].text)) arguments = i + 1;
    if (arguments)
        r->out->program = words->items[arguments - 1].text;
    else
        while (arguments < words->n && words->items[arguments].text[0] != '-') arguments++;
    for (size_t i = 0; i < words->n; i++)
        dl_words_add(i < arguments ? &r->out->launcher : &r->out->arguments, words->items[i].text,
                     words->items[i].line);
    r->line = command->line;
    return DL_OK;
}

static enum dl_status read_other(struct reading *r, const struct dl_shell_command *command, size_t from)
{
    struct dl_shell_words words = {0}, whole = {0};
    for (size_t i = from; i < command->words.n && !r->err->status; i++)
        dl_shell_expand(&r->shell, &command->words.items[i], &whole, r->err);
    for (size_t i = 0; i < whole.n; i++)
        if (has_inner_mark(r, whole.items[i].text))
            cut_inner(r, &whole.items[i], &words);
        else
            dl_words_add(&words, whole.items[i].text, whole.items[i].line);
    const enum keyword first = words.n ? keyword_of(words.items[0].text) : NONE;
    for (size_t i = 0; first == BATCH && i < words.n; i++)
        dl_words_add(&r->out->launcher, words.items[i].text, words.items[i].line);
    for (size_t i = 0; i < words.n && first == NONE && !r->err->status; i++)
        if (is_mark(r, words.items[i].text)) {
            found(r, command, &words, i);
            break;
        }
    dl_free(words.items);
    dl_free(whole.items);
    return r->err->status;
}

static enum dl_status read_command(struct reading *r, const struct dl_shell_command *command)
{
    size_t at = 0;
    bool appends, declares = false;
    for (; at < command->words.n; at++) {
        const enum keyword keyword = keyword_of(command->words.items[at].text);
        if (keyword == NONE || keyword > DECLARES) break;
        declares |= keyword == DECLARES;
        r->conditions += keyword == OPENS;
        r->conditions -= keyword == CLOSES && r->conditions > 0;
    }
    size_t after = at;
    while (after < command->words.n && assigned_bytes(command->words.items[after].text, &appends)) after++;
    if (after < command->words.n && !declares) return read_other(r, command, after);
    const bool in_condition = r->conditions > 0 || command->joined == '|' ||
                              (command->joined == '&' && keyword_of(command[-1].words.items[0].text) == TESTS);
    for (; at < command->words.n; at++)
        if (assigned_bytes(command->words.items[at].text, &appends) &&
            assign(r, &command->words.items[at], in_condition))
            return r->err->status;
    return DL_OK;
}

/* Flags alone, over several lines. */
static enum dl_status read_flags(struct reading *r, const struct dl_shell_commands *commands)
{
    for (size_t i = 0; i < commands->n; i++)
        for (size_t k = 0; k < commands->items[i].words.n; k++)
            if (dl_shell_expand(&r->shell, &commands->items[i].words.items[k], &r->out->arguments, r->err))
                return r->err->status;
    return DL_OK;
}

static enum dl_status read_script(struct reading *r, const struct dl_shell_commands *commands)
{
    for (size_t i = 0; i < commands->n; i++)
        if (read_command(r, &commands->items[i])) return r->err->status;
    if (r->line) return DL_OK;
    return dl_fail(r->err, DL_NOT_FOUND, r->shell.where,
                   "no command of the script is given %s; it must hold the training command, or flags alone",
                   r->marks[0]);
}

enum dl_status dl_launch_read(const char *text, size_t bytes, const char *where, const char *const *marks,
                              struct dl_arena *arena, struct dl_launch *out, struct dl_error *err)
{
    struct dl_shell_commands commands = {0};
    struct reading r = {.shell = {.where = where, .arena = arena}, .marks = marks, .out = out, .err = err};
    if (dl_shell_split(text, bytes, where, arena, &commands, err) == DL_OK) {
        const bool is_list = commands.n && strncmp(commands.items[0].words.items[0].text, "--", 2) == 0;
        if (is_list)
            read_flags(&r, &commands);
        else
            read_script(&r, &commands);
    }
    for (size_t i = 0; i < r.shell.n_names; i++) dl_free(r.shell.names[i].values.items);
    dl_free(r.shell.names);
    dl_shell_free(&commands);
    return err->status;
}

void dl_launch_free(struct dl_launch *launch)
{
    dl_free(launch->launcher.items);
    dl_free(launch->arguments.items);
    *launch = (struct dl_launch){0};
}
