/* toml.c - a reader of TOML (toml.io/en/v1.0.0), strict about what it reads. */
#include "sim/import/toml.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { DEEPEST = 20, LONGEST_NAME = 200 };

struct toml {
    const char *at;
    uint32_t line;
    const char *where;
    struct dl_arena *arena;
    struct dl_error *err;
    unsigned depth;
};

static void wrong(struct toml *t, const char *what)
{
    dl_fail(t->err, DL_SYNTAX, dl_arena_format(t->arena, "%s:%u", t->where, t->line), "%s", what);
}

static void skip_blanks(struct toml *t)
{
    while (*t->at == ' ' || *t->at == '\t') t->at++;
}

static void skip_comment(struct toml *t)
{
    skip_blanks(t);
    if (*t->at == '#')
        while (*t->at && *t->at != '\n') t->at++;
    if (t->at[0] == '\r' && t->at[1] == '\n') t->at++;
}

/* Also line ends, where these mean nothing. */
static void skip_lines(struct toml *t)
{
    for (skip_comment(t); *t->at == '\n'; skip_comment(t)) {
        t->at++;
        t->line++;
    }
}

static void end_line(struct toml *t)
{
    skip_comment(t);
    if (t->err->status || !*t->at) return;
    if (*t->at != '\n')
        wrong(t, "must end here: one key and its value on a line");
    else
        skip_lines(t);
}

/* ---- strings and keys ---- */

struct text {
    char *items;
    size_t n, capacity;
};

static void put(struct text *s, char c)
{
    DL_GROW(s->items, s->n, s->capacity);
    s->items[s->n++] = c;
}

static void put_escape(struct toml *t, struct text *s)
{
    static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
    const char *const found = *t->at ? strchr(from, *t->at) : NULL;
    if (!found) {
        wrong(t, "must be one of \\b \\t \\n \\f \\r \\\" \\\\ after a backslash");
        return;
    }
    put(s, to[found - from]);
    t->at++;
}

static const char *read_string(struct toml *t)
{
    const char quote = *t->at;
    struct text s = {0};
    if (t->at[1] == quote && t->at[2] == quote) {
        wrong(t, "a string over several lines, which is not read; write it on one");
        return "";
    }
    for (t->at++; *t->at != quote && !t->err->status;) {
        if (!*t->at || *t->at == '\n')
            wrong(t, "a string has no end on its line");
        else if (*t->at == '\\' && quote == '"')
            t->at++, put_escape(t, &s);
        else
            put(&s, *t->at++);
    }
    if (!t->err->status) t->at++;
    put(&s, '\0');
    const char *const text = dl_arena_string(t->arena, s.items);
    dl_free(s.items);
    return text;
}

static const char *read_key(struct toml *t)
{
    skip_blanks(t);
    if (*t->at == '"' || *t->at == '\'') return read_string(t);
    size_t n = 0;
    while (isalnum((unsigned char)t->at[n]) || t->at[n] == '_' || t->at[n] == '-') n++;
    if (!n || n > LONGEST_NAME) {
        wrong(t, "must be a key: letters, digits, _ and -");
        return "";
    }
    t->at += n;
    return dl_arena_format(t->arena, "%.*s", (int)n, t->at - n);
}

/* a.b.c names c in the table b in the table a, which are made. Returns the table that the last name is in. */
static json_t *read_path(struct toml *t, json_t *table, const char **last)
{
    *last = read_key(t);
    skip_blanks(t);
    for (unsigned depth = 0; *t->at == '.' && !t->err->status; depth++) {
        t->at++;
        if (depth > DEEPEST) wrong(t, "tables in tables in tables, too deep");
        json_t *inner = json_object_get(table, *last);
        if (!inner) {
            inner = json_object();
            json_object_set_new(table, *last, inner);
        }
        if (!json_is_object(inner)) wrong(t, dl_arena_format(t->arena, "'%s' has a value and is no table", *last));
        table = inner;
        *last = read_key(t);
        skip_blanks(t);
    }
    return table;
}

/* ---- values ---- */

static json_t *read_value(struct toml *t);

static json_t *read_array(struct toml *t)
{
    json_t *const list = json_array();
    for (t->at++, skip_lines(t); *t->at != ']' && !t->err->status; skip_lines(t)) {
        json_array_append_new(list, read_value(t));
        skip_lines(t);
        if (*t->at == ',')
            t->at++;
        else if (*t->at != ']' && !t->err->status)
            wrong(t, "must be , or ] in a list");
    }
    t->at += !t->err->status;
    return list;
}

static void read_pair(struct toml *t, json_t *table)
{
    const char *key;
    json_t *const in = read_path(t, table, &key);
    if (t->err->status) return;
    if (*t->at != '=') {
        wrong(t, dl_arena_format(t->arena, "must be = after the key '%s'", key));
        return;
    }
    if (json_object_get(in, key)) {
        wrong(t, dl_arena_format(t->arena, "the key '%s' is given twice", key));
        return;
    }
    t->at++;
    json_object_set_new(in, key, read_value(t));
}

static json_t *read_inline_table(struct toml *t)
{
    json_t *const table = json_object();
    for (t->at++, skip_blanks(t); *t->at != '}' && !t->err->status; skip_blanks(t)) {
        read_pair(t, table);
        skip_blanks(t);
        if (*t->at == ',')
            t->at++;
        else if (*t->at != '}' && !t->err->status)
            wrong(t, "must be , or } in a table on one line");
    }
    t->at += !t->err->status;
    return table;
}

static json_t *read_number(struct toml *t)
{
    char digits[LONGEST_NAME];
    size_t n = 0, length = 0;
    for (; isalnum((unsigned char)t->at[length]) || (t->at[length] && strchr("+-._:", t->at[length])); length++)
        if (t->at[length] != '_' && n + 1 < sizeof digits) digits[n++] = t->at[length];
    digits[n] = '\0';
    char *end_of_whole, *end_of_real;
    errno = 0;
    const long long whole = strtoll(digits, &end_of_whole, 10);
    const bool is_whole = !*end_of_whole && !errno;
    const double real = strtod(digits, &end_of_real);
    if (!length || *end_of_real || !isfinite(real) || strpbrk(digits, "xX")) {
        wrong(t, "must be a value: a string in quotes, a number, true, false, a list or a table");
        return NULL;
    }
    t->at += length;
    return is_whole ? json_integer(whole) : json_real(real);
}

static json_t *read_truth(struct toml *t)
{
    static const struct {
        const char *word;
        bool value;
    } words[] = {{"true", true}, {"false", false}};
    for (size_t i = 0; i < DL_COUNT(words); i++) {
        const size_t n = strlen(words[i].word);
        if (strncmp(t->at, words[i].word, n) || isalnum((unsigned char)t->at[n])) continue;
        t->at += n;
        return json_boolean(words[i].value);
    }
    return NULL;
}

static json_t *read_value(struct toml *t)
{
    json_t *value = NULL;
    skip_blanks(t);
    if (t->depth++ > DEEPEST)
        wrong(t, "values in values in values, too deep");
    else if (*t->at == '"' || *t->at == '\'') {
        value = json_string(read_string(t));
        if (!value) wrong(t, "a string that is not UTF-8");
    } else if (*t->at == '[')
        value = read_array(t);
    else if (*t->at == '{')
        value = read_inline_table(t);
    else if (!(value = read_truth(t)))
        value = read_number(t);
    t->depth--;
    return value ? value : json_null(); /* with an error */
}

/* ---- tables ---- */

/* [a.b]; the place of a table that is opened twice would be lost. */
static json_t *read_header(struct toml *t, json_t *root, json_t *opened)
{
    const char *key;
    const char *const start = ++t->at;
    if (*t->at == '[') {
        wrong(t, "a list of tables, which is not read");
        return root;
    }
    json_t *const in = read_path(t, root, &key);
    if (t->err->status) return root;
    if (*t->at != ']') {
        wrong(t, "must be ] after the name of a table");
        return root;
    }
    const char *const name = dl_arena_format(t->arena, "%.*s", (int)(t->at - start), start);
    t->at++;
    json_t *table = json_object_get(in, key);
    if (json_object_get(opened, name) || (table && !json_is_object(table))) {
        wrong(t, dl_arena_format(t->arena, "[%s] is there twice", name));
        return root;
    }
    json_object_set_new(opened, name, json_true());
    if (!table) {
        table = json_object();
        json_object_set_new(in, key, table);
    }
    return table;
}

json_t *dl_toml_read(const char *text, const char *where, struct dl_arena *arena, struct dl_error *err)
{
    struct toml t = {.at = text, .line = 1, .where = where, .arena = arena, .err = err};
    json_t *const root = json_object(), *const opened = json_object();
    json_t *table = root;
    for (skip_lines(&t); *t.at && !err->status; end_line(&t))
        if (*t.at == '[')
            table = read_header(&t, root, opened);
        else
            read_pair(&t, table);
    json_decref(opened);
    if (!err->status) return root;
    json_decref(root);
    return NULL;
}
