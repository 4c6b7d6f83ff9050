/* shell_expand.c - what the words of a script stand for, as far as its text says it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sim/import/shell.h"

enum { MOST_CHARACTERS = 16 << 20, DEEPEST = 50 };

size_t dl_shell_name_bytes(const char *text)
{
    size_t n = 0;
    if (!isalpha((unsigned char)*text) && *text != '_') return 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_') n++;
    return n;
}

const struct dl_shell_name *dl_shell_find(const struct dl_shell *shell, const char *name, size_t bytes)
{
    for (size_t i = 0; i < shell->n_names; i++)
        if (strlen(shell->names[i].name) == bytes && !strncmp(shell->names[i].name, name, bytes))
            return &shell->names[i];
    return NULL;
}

/* ---- arithmetic ---- */

struct sum {
    const struct dl_shell *shell;
    const char *at, *end;
    unsigned depth;
    bool is_known;
};

static void skip_space(struct sum *s)
{
    while (s->at < s->end && isspace((unsigned char)*s->at)) s->at++;
}

static int64_t unknown(struct sum *s)
{
    s->is_known = false;
    return 0;
}

static int64_t sum_of(struct sum *s);

static int64_t number_of(struct sum *s)
{
    int64_t value = 0;
    while (s->at < s->end && isdigit((unsigned char)*s->at)) {
        if (value > INT64_MAX / 100) return unknown(s);
        value = 10 * value + (*s->at++ - '0');
    }
    return value;
}

static int64_t value_of_name(struct sum *s)
{
    if (*s->at == '$') s->at++;
    const bool in_braces = s->at < s->end && *s->at == '{';
    if (in_braces) s->at++;
    const size_t n = s->at < s->end ? dl_shell_name_bytes(s->at) : 0;
    const struct dl_shell_name *const name = n ? dl_shell_find(s->shell, s->at, n) : NULL;
    if (!name || name->in_condition || name->values.n != 1 || s->depth > DEEPEST || s->at + n > s->end)
        return unknown(s);
    s->at += n;
    if (in_braces && (s->at >= s->end || *s->at++ != '}')) return unknown(s);
    const char *const text = name->values.items[0].text;
    struct sum inner = {s->shell, text, text + strlen(text), s->depth + 1, true};
    const int64_t value = sum_of(&inner);
    skip_space(&inner);
    return inner.is_known && inner.at == inner.end ? value : unknown(s);
}

static int64_t factor_of(struct sum *s)
{
    skip_space(s);
    if (s->at >= s->end) return unknown(s);
    if (isdigit((unsigned char)*s->at)) return number_of(s);
    if (*s->at != '(') return value_of_name(s);
    if (s->depth++ > DEEPEST) return unknown(s);
    s->at++;
    const int64_t value = sum_of(s);
    skip_space(s);
    if (s->at >= s->end || *s->at++ != ')') return unknown(s);
    return value;
}

static int64_t apply(struct sum *s, char operation, int64_t a, int64_t b)
{
    int64_t result = 0;
    bool is_bad = false;
    switch (operation) {
    case '*': is_bad = __builtin_mul_overflow(a, b, &result); break;
    case '+': is_bad = __builtin_add_overflow(a, b, &result); break;
    case '-': is_bad = __builtin_sub_overflow(a, b, &result); break;
    case '/':
        is_bad = b <= 0;
        result = is_bad ? 0 : a / b;
        break;
    default:
        is_bad = b <= 0;
        result = is_bad ? 0 : a % b;
        break;
    }
    return is_bad ? unknown(s) : result;
}

static int64_t chain_of(struct sum *s, const char *operations, int64_t (*part)(struct sum *))
{
    int64_t value = part(s);
    for (skip_space(s); s->is_known && s->at < s->end && strchr(operations, *s->at); skip_space(s)) {
        const char operation = *s->at++;
        value = apply(s, operation, value, part(s));
    }
    return value;
}

static int64_t product_of(struct sum *s) { return chain_of(s, "*/%", factor_of); }
static int64_t sum_of(struct sum *s) { return chain_of(s, "+-", product_of); }

bool dl_shell_calculate(const struct dl_shell *shell, const char *text, size_t bytes, int64_t *value)
{
    struct sum s = {shell, text, text + bytes, 0, true};
    *value = sum_of(&s);
    skip_space(&s);
    return s.is_known && s.at == s.end;
}

/* ---- words ---- */

struct expansion {
    struct dl_shell *shell;
    struct dl_shell_words *out;
    struct dl_error *err;
    char *word;
    size_t n, capacity;
    bool in_word;      /* so that "" is a word */
    bool keeps_blanks; /* of names, too: the value of another one */
    uint32_t line;
    unsigned depth;
};

static void put(struct expansion *x, char c)
{
    x->in_word = true;
    if (x->shell->expanded++ >= MOST_CHARACTERS) {
        dl_fail(x->err, DL_RANGE, dl_arena_format(x->shell->arena, "%s:%u", x->shell->where, x->line),
                "the names of the script stand for more than %d characters", MOST_CHARACTERS);
        return;
    }
    DL_GROW(x->word, x->n, x->capacity);
    x->word[x->n++] = c;
}

static void put_all(struct expansion *x, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes && !x->err->status; i++) put(x, text[i]);
}

static void end_word(struct expansion *x)
{
    if (!x->in_word) return;
    dl_words_add(x->out, dl_arena_format(x->shell->arena, "%.*s", (int)x->n, x->word ? x->word : ""), x->line);
    x->in_word = false;
    x->n = 0;
}

static void put_value(struct expansion *x, const char *text, bool is_quoted)
{
    for (; *text && !x->err->status; text++)
        if (!is_quoted && !x->keeps_blanks && isspace((unsigned char)*text))
            end_word(x);
        else
            put(x, *text);
    if (is_quoted) x->in_word = true;
}

static void put_array(struct expansion *x, const struct dl_shell_words *values)
{
    for (size_t i = 0; i < values->n && !x->err->status; i++) {
        if (i && x->keeps_blanks)
            put(x, ' ');
        else if (i)
            end_word(x);
        put_value(x, values->items[i].text, true);
    }
}

static const char *expand_part(struct expansion *x, const char *at, const char *end, bool is_quoted);

/* ${NAME}, ${NAME[@]}, ${NAME:-word}; false: another form, or not known. */
static bool put_braced(struct expansion *x, const char *inner, const char *end, bool is_quoted)
{
    const size_t n = dl_shell_name_bytes(inner);
    const char *const rest = inner + n;
    const size_t left = (size_t)(end - rest);
    const struct dl_shell_name *const name = n ? dl_shell_find(x->shell, inner, n) : NULL;
    if (!n || (name && name->in_condition)) return false;
    const bool is_all = left == 3 && (!strncmp(rest, "[@]", 3) || !strncmp(rest, "[*]", 3));
    const bool has_default = left >= 1 && (*rest == '-' || (left >= 2 && *rest == ':' && strchr("-=", rest[1])));
    if (left && !is_all && !has_default) return false;
    if (name && name->values.n) {
        if (is_all)
            put_array(x, &name->values);
        else
            put_value(x, name->values.items[0].text, is_quoted);
        return true;
    }
    if (name && name->is_array) return true; /* an empty one */
    if (!has_default || x->depth > DEEPEST) return false;
    x->depth++;
    for (const char *at = rest + (*rest == ':' ? 2 : 1); at < end;) at = expand_part(x, at, end, is_quoted);
    x->depth--;
    return true;
}

/* The place after the bracket that closes this one. */
static const char *closing(const char *at, const char *end, char open, char close)
{
    for (size_t depth = 0; at < end; at++) {
        if (*at == open) depth++;
        if (*at == close && !--depth) return at + 1;
    }
    return end;
}

static const char *expand_dollar(struct expansion *x, const char *at, const char *end, bool is_quoted)
{
    const char *after = at + 1;
    bool is_known = false;
    if (after < end && *after == '{') {
        after = closing(after, end, '{', '}');
        is_known = put_braced(x, at + 2, after - 1, is_quoted);
    } else if (after < end && *after == '(') {
        after = closing(after, end, '(', ')');
        int64_t value;
        is_known = after - at > 5 && at[2] == '(' && after[-2] == ')' &&
                   dl_shell_calculate(x->shell, at + 3, (size_t)(after - at) - 5, &value);
        if (is_known) put_value(x, dl_arena_format(x->shell->arena, "%lld", (long long)value), true);
    } else if (after < end) {
        const size_t n = dl_shell_name_bytes(after);
        after += n ? n : 1;
        is_known = n && put_braced(x, at + 1, after, is_quoted);
    }
    if (!is_known) put_all(x, at, (size_t)(after - at));
    return after;
}

static const char *expand_quoted(struct expansion *x, const char *at, const char *end)
{
    x->in_word = true;
    while (at < end && *at != '"' && !x->err->status) {
        if (*at == '\\' && at + 1 < end && strchr("\"\\$`", at[1]))
            put(x, at[1]), at += 2;
        else
            at = expand_part(x, at, end, true);
    }
    return at < end ? at + 1 : end;
}

static const char *expand_part(struct expansion *x, const char *at, const char *end, bool is_quoted)
{
    if (x->err->status) return end;
    if (*at == '$') return expand_dollar(x, at, end, is_quoted);
    if (!is_quoted && *at == '"') return expand_quoted(x, at + 1, end);
    if (!is_quoted && *at == '\'') {
        const char *const close = memchr(at + 1, '\'', (size_t)(end - at) - 1);
        x->in_word = true;
        put_all(x, at + 1, close ? (size_t)(close - at) - 1 : 0);
        return close ? close + 1 : end;
    }
    if (!is_quoted && *at == '\\' && at + 1 < end) at++;
    put(x, *at);
    return at + 1;
}

static void expand(struct expansion *x, const char *text)
{
    const char *const end = text + strlen(text);
    for (const char *at = text; at < end && !x->err->status;) at = expand_part(x, at, end, false);
    if (!x->err->status) end_word(x);
    dl_free(x->word);
}

enum dl_status dl_shell_expand(struct dl_shell *shell, const struct dl_word *raw, struct dl_shell_words *out,
                               struct dl_error *err)
{
    struct expansion x = {.shell = shell, .out = out, .err = err, .line = raw->line};
    expand(&x, raw->text);
    return err->status;
}

enum dl_status dl_shell_expand_value(struct dl_shell *shell, const struct dl_word *raw, struct dl_shell_words *out,
                                     struct dl_error *err)
{
    struct expansion x = {
        .shell = shell, .out = out, .err = err, .line = raw->line, .keeps_blanks = true, .in_word = true};
    expand(&x, raw->text);
    return err->status;
}
