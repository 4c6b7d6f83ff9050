/* shell_split.c - the text of a script cut into commands and words, quotes and all. */
#include <ctype.h>
#include <string.h>

#include "sim/import/shell.h"

struct split {
    const char *text, *end, *at;
    const char *where;
    uint32_t line;
    struct dl_arena *arena;
    struct dl_error *err;
    struct dl_shell_commands *out;
    struct dl_shell_command command; /* that is being read */
    char *word;                      /* so is this: grows */
    size_t n, capacity;
    bool in_word;
    uint32_t word_line;
    bool drops_next;       /* the target of < or > */
    const char *here_word; /* a here document begins at the next line end; NULL: none */
};

void dl_words_add(struct dl_shell_words *words, const char *text, uint32_t line)
{
    DL_GROW(words->items, words->n, words->capacity);
    words->items[words->n++] = (struct dl_word){text, line};
}

static void put(struct split *s, char c)
{
    if (!s->in_word) s->word_line = s->line;
    s->in_word = true;
    DL_GROW(s->word, s->n, s->capacity);
    s->word[s->n++] = c;
}

/* Copy the character that is being read, and count lines. */
static void take(struct split *s)
{
    if (*s->at == '\n') s->line++;
    put(s, *s->at++);
}

static void end_word(struct split *s)
{
    if (!s->in_word) return;
    put(s, '\0');
    if (!s->drops_next) {
        if (!s->command.words.n) s->command.line = s->word_line;
        dl_words_add(&s->command.words, dl_arena_string(s->arena, s->word), s->word_line);
    }
    s->drops_next = s->in_word = false;
    s->n = 0;
}

static void end_command(struct split *s)
{
    end_word(s);
    s->drops_next = false;
    if (!s->command.words.n) return; /* a line may end after && */
    struct dl_shell_commands *const out = s->out;
    DL_GROW(out->items, out->n, out->capacity);
    out->items[out->n++] = s->command;
    s->command = (struct dl_shell_command){0};
}

static enum dl_status open_end(struct split *s, uint32_t line, const char *what)
{
    return dl_fail(s->err, DL_SYNTAX, dl_arena_format(s->arena, "%s:%u", s->where, line), "%s has no end", what);
}

static bool continues_line(const struct split *s)
{
    const size_t left = (size_t)(s->end - s->at);
    return (left >= 2 && s->at[0] == '\\' && s->at[1] == '\n') ||
           (left >= 3 && s->at[0] == '\\' && s->at[1] == '\r' && s->at[2] == '\n');
}

static void skip_continuation(struct split *s)
{
    s->at += s->at[1] == '\r' ? 3 : 2;
    s->line++;
}

static void skip_line(struct split *s)
{
    while (s->at < s->end && *s->at != '\n') s->at++;
}

static bool begins_comment(const struct split *s)
{
    return *s->at == '#' && (s->at == s->text || isspace((unsigned char)s->at[-1]) || s->at[-1] == '(');
}

/* Copy what a pair of brackets encloses, with them; quotes inside hide brackets, comments are left out. */
static enum dl_status take_enclosed(struct split *s, char open, char close)
{
    const uint32_t line = s->line;
    char quote = 0;
    for (size_t depth = 0; s->at < s->end;) {
        const char c = *s->at;
        if (quote != '\'' && continues_line(s)) {
            skip_continuation(s);
            continue;
        }
        if (!quote && open == '(' && begins_comment(s)) {
            skip_line(s);
            continue;
        }
        if (c == '\\' && quote != '\'' && s->at + 1 < s->end)
            take(s);
        else if (quote)
            quote = c == quote ? 0 : quote;
        else if (c == '\'' || c == '"')
            quote = c;
        else if (c == open)
            depth++;
        else if (c == close)
            depth--;
        take(s);
        if (!depth) return DL_OK;
    }
    return open_end(s, line, "a bracket");
}

/* '...' and `...` */
static enum dl_status take_literal(struct split *s)
{
    const uint32_t line = s->line;
    const char quote = *s->at;
    take(s);
    while (s->at < s->end && *s->at != quote) take(s);
    if (s->at == s->end) return open_end(s, line, "a quoted text");
    take(s);
    return DL_OK;
}

/* "..." may hold $(...) with quotes of its own. */
static enum dl_status take_quoted(struct split *s)
{
    const uint32_t line = s->line;
    take(s);
    while (s->at < s->end) {
        if (continues_line(s)) {
            skip_continuation(s);
            continue;
        }
        if (*s->at == '"') {
            take(s);
            return DL_OK;
        }
        if (*s->at == '$' && s->at + 1 < s->end && s->at[1] == '(') {
            take(s);
            if (take_enclosed(s, '(', ')')) return s->err->status;
            continue;
        }
        if (*s->at == '\\' && s->at + 1 < s->end) take(s);
        take(s);
    }
    return open_end(s, line, "a quoted text");
}

/* What follows # to the end of the line, but for the options of a batch system. */
static void skip_comment(struct split *s)
{
    static const char batch[] = "#SBATCH";
    const size_t n = sizeof batch - 1;
    if ((size_t)(s->end - s->at) <= n || strncmp(s->at, batch, n) || !isspace((unsigned char)s->at[n])) {
        skip_line(s);
        return;
    }
    for (size_t i = 0; i < n; i++) take(s);
    end_word(s);
}

static void skip_here_document(struct split *s)
{
    const size_t n = strlen(s->here_word);
    while (s->at < s->end) {
        const char *start = s->at;
        while (start < s->end && *start == '\t') start++;
        const bool is_last = (size_t)(s->end - start) >= n && !strncmp(start, s->here_word, n) &&
                             (start + n == s->end || start[n] == '\n' || start[n] == '\r');
        skip_line(s);
        if (s->at < s->end) s->at++, s->line++;
        if (is_last) break;
    }
    s->here_word = NULL;
}

static void read_here_word(struct split *s)
{
    while (s->at < s->end && strchr("<-'\" \t", *s->at)) s->at++;
    const char *const start = s->at;
    while (s->at < s->end && (isalnum((unsigned char)*s->at) || *s->at == '_')) s->at++;
    const size_t n = (size_t)(s->at - start);
    if (n) s->here_word = dl_arena_format(s->arena, "%.*s", (int)n, start);
    if (s->at < s->end && (*s->at == '\'' || *s->at == '"')) s->at++;
}

/* 2>&1, > file, << END */
static void skip_redirection(struct split *s)
{
    bool is_number = s->in_word;
    for (size_t i = 0; i < s->n; i++) is_number &= isdigit((unsigned char)s->word[i]) != 0;
    if (is_number)
        s->in_word = false, s->n = 0;
    else
        end_word(s);
    if (s->at + 1 < s->end && s->at[0] == '<' && s->at[1] == '<' && !(s->at + 2 < s->end && s->at[2] == '<')) {
        read_here_word(s);
        return;
    }
    while (s->at < s->end && (*s->at == '<' || *s->at == '>')) s->at++;
    s->drops_next = true;
    if (s->at < s->end && *s->at == '&') s->at++;
}

static bool begins_array(const struct split *s)
{
    return s->in_word && s->n >= 2 && s->word[s->n - 1] == '=' && *s->at == '(';
}

static enum dl_status read_one(struct split *s)
{
    const char c = *s->at;
    if (continues_line(s)) {
        skip_continuation(s);
    } else if (c == '\n') {
        end_command(s);
        s->at++, s->line++;
        if (s->here_word) skip_here_document(s);
    } else if (isspace((unsigned char)c)) {
        end_word(s);
        s->at++;
    } else if (c == '#' && !s->in_word) {
        skip_comment(s);
    } else if (begins_array(s) || (c == '(' && s->in_word && s->word[s->n - 1] == '$')) {
        return take_enclosed(s, '(', ')');
    } else if (c == '{' && s->in_word && s->word[s->n - 1] == '$') {
        return take_enclosed(s, '{', '}');
    } else if (strchr(";&|()", c)) {
        const bool joins = (c == '&' || c == '|') && s->at + 1 < s->end && s->at[1] == c;
        end_command(s);
        s->command.joined = joins ? c : 0;
        s->at += joins ? 2 : 1;
    } else if (c == '<' || c == '>') {
        skip_redirection(s);
    } else if (c == '"') {
        return take_quoted(s);
    } else if (c == '\'' || c == '`') {
        return take_literal(s);
    } else {
        if (c == '\\' && s->at + 1 < s->end) take(s);
        take(s);
    }
    return DL_OK;
}

enum dl_status dl_shell_split(const char *text, size_t bytes, const char *where, struct dl_arena *arena,
                              struct dl_shell_commands *out, struct dl_error *err)
{
    struct split s = {.text = text,
                      .end = text + bytes,
                      .at = text,
                      .where = where,
                      .line = 1,
                      .arena = arena,
                      .err = err,
                      .out = out};
    while (s.at < s.end && !err->status) {
        if (*s.at == '\0')
            dl_fail(err, DL_SYNTAX, dl_arena_format(arena, "%s:%u", where, s.line), "a NUL byte: this is no text");
        else
            read_one(&s);
    }
    end_command(&s);
    dl_free(s.word);
    return err->status;
}

void dl_shell_free(struct dl_shell_commands *commands)
{
    for (size_t i = 0; i < commands->n; i++) dl_free(commands->items[i].words.items);
    dl_free(commands->items);
    *commands = (struct dl_shell_commands){0};
}
