/* megatron_read.c - from the words of an argument list to what its flags say. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/import/megatron.h"

const char *dl_megatron_place(const struct dl_megatron_reading *r, const char *flag)
{
    return dl_arena_format(r->arena, "%s: --%s", r->where, flag);
}

void dl_megatron_leave(const struct dl_megatron_reading *r, const char *key, const char *value, bool matters,
                       const char *why)
{
    dl_leave_out(r->out, (struct dl_left_out){.key = key, .value = value, .why = why, .matters = matters}, r->arena);
}

/* One flag with what follows it. */
struct given {
    const char *name;  /* without -- */
    const char *value; /* all of it, with blanks between; NULL: none */
    size_t n_values;
    uint32_t line;
};

static const char *place_of(const struct dl_megatron_reading *r, const struct given *g)
{
    return dl_arena_format(r->arena, "%s:%u: --%s", r->where, g->line, g->name);
}

static bool is_flag(const char *word) { return word[0] == '-' && word[1] == '-' && word[2]; }

/* ---- values ---- */

static enum dl_status wrong(const struct dl_megatron_reading *r, const struct given *g, const char *wanted,
                            struct dl_error *err)
{
    const char *const unset = g->value && strchr(g->value, '$') ? "; the script does not say what that stands for" : "";
    return dl_fail(err, DL_TYPE, place_of(r, g), "must be %s, got %s%.100s%s%s", wanted, g->value ? "'" : "no value",
                   g->value ? g->value : "", g->value ? "'" : "", unset);
}

static enum dl_status take_count(const struct dl_megatron_reading *r, const struct given *g, int64_t *to,
                                 struct dl_error *err)
{
    static const double most = 1e9;
    char *end = NULL;
    errno = 0;
    const long long value = g->value ? strtoll(g->value, &end, 10) : 0;
    if (!g->value || end == g->value || *end || errno || value < 1 || (double)value > most)
        return wrong(r, g, "a whole number from 1 on", err);
    *to = value;
    return DL_OK;
}

static enum dl_status take_number(const struct dl_megatron_reading *r, const struct given *g, double most, double *to,
                                  struct dl_error *err)
{
    char *end = NULL;
    const double value = g->value ? strtod(g->value, &end) : 0;
    if (!g->value || end == g->value || *end || !(value >= 0 && value <= most))
        return wrong(r, g, dl_arena_format(r->arena, "a number from 0 to %g", most), err);
    *to = value;
    return DL_OK;
}

static enum dl_status take_word(const struct dl_megatron_reading *r, const struct given *g, const char **to,
                                struct dl_error *err)
{
    if (g->n_values != 1) return wrong(r, g, "one word", err);
    *to = g->value;
    return DL_OK;
}

static enum dl_status take_choice(const struct dl_megatron_reading *r, const struct given *g,
                                  const char *const *choices, int64_t *to, struct dl_error *err)
{
    size_t n = 0;
    char all[DL_HINT];
    for (; choices[n]; n++)
        if (g->value && strcmp(choices[n], g->value) == 0) {
            *to = (int64_t)n + 1;
            return DL_OK;
        }
    if (!g->value) return wrong(r, g, dl_joined(choices, n, all), err);
    return dl_fail(err, DL_RANGE, place_of(r, g), "must be one of %s for dlsim, got '%.100s'",
                   dl_joined(choices, n, all), g->value);
}

static enum dl_status take(const struct dl_megatron_reading *r, const struct given *g,
                           const struct dl_megatron_flag *flag, struct dl_error *err)
{
    static const double most_number = 1e9;
    void *const to = (char *)r->m + flag->offset;
    switch (flag->kind) {
    case DL_FLAG_COUNT: return take_count(r, g, to, err);
    case DL_FLAG_SHARE: return take_number(r, g, 1, to, err);
    case DL_FLAG_NUMBER: return take_number(r, g, most_number, to, err);
    case DL_FLAG_CHOICE: return take_choice(r, g, flag->choices, to, err);
    case DL_FLAG_WORD: return take_word(r, g, to, err);
    case DL_FLAG_WORDS:
        if (!g->value) return wrong(r, g, "one word or more", err);
        *(const char **)to = g->value;
        return DL_OK;
    case DL_FLAG_SWITCH:
        if (g->value) return wrong(r, g, "alone", err);
        *(bool *)to = true;
        return DL_OK;
    }
    return DL_OK;
}

/* ---- flags ---- */

static enum dl_status refuse_unknown(const struct dl_megatron_reading *r, const struct given *g, struct dl_error *err)
{
    const size_t n = dl_megatron_flag_count();
    const char **const names = dl_arena_alloc(r->arena, n * sizeof *names);
    char hint[DL_HINT];
    for (size_t i = 0; i < n; i++) names[i] = dl_megatron_flag_get(i)->name;
    return dl_fail(err, DL_KEY, place_of(r, g),
                   "is no flag of Megatron-LM that dlsim knows, and it may change the run%s",
                   dl_suggestion(g->name, names, n, hint));
}

static enum dl_status read_flag(const struct dl_megatron_reading *r, const struct given *g, struct dl_error *err)
{
    for (size_t i = 0; i < dl_megatron_flag_count(); i++)
        if (strcmp(dl_megatron_flag_get(i)->name, g->name) == 0) return take(r, g, dl_megatron_flag_get(i), err);
    const struct dl_reason *const reason = dl_megatron_reason_of(g->name);
    if (!reason) return refuse_unknown(r, g, err);
    if (reason->refuses) return dl_fail(err, DL_IMPOSSIBLE, place_of(r, g), "%s", reason->why);
    const char *const shown = g->value ? dl_arena_format(r->arena, "%.60s", g->value) : NULL;
    dl_megatron_leave(r, dl_arena_format(r->arena, "--%s", g->name), shown, reason->matters, reason->why);
    return DL_OK;
}

static bool is_left_unset(const char *word) { return word[0] == '$'; }

/* What a name stands for may be flags. */
static enum dl_status read_stray(const struct dl_megatron_reading *r, const struct dl_word *word, struct dl_error *err)
{
    return dl_fail(
        err, DL_SYNTAX, dl_arena_format(r->arena, "%s:%u", r->where, word->line),
        is_left_unset(word->text)
            ? "'%.100s' is not set in the script, or in a condition: write what it stands for, or leave it out"
            : "'%.100s' belongs to no flag",
        word->text);
}

enum { LONGEST_VALUE = 400 }; /* of several words; no flag that is taken has more */

/* The flag at `*at` and its values, which end where the next flag, or a list of flags that is not known, begins. */
static struct given next_flag(const struct dl_megatron_reading *r, const struct dl_shell_words *words, size_t *at)
{
    const struct dl_word *const word = &words->items[(*at)++];
    const char *const equals = strchr(word->text, '=');
    struct given g = {.name = word->text + 2, .line = word->line};
    if (equals) {
        g.name = dl_arena_format(r->arena, "%.*s", (int)(equals - word->text) - 2, word->text + 2);
        g.value = equals + 1;
        g.n_values = 1;
    }
    for (; *at < words->n && !is_flag(words->items[*at].text); (*at)++) {
        const char *const next = words->items[*at].text;
        if (g.n_values && is_left_unset(next) && (*at + 1 == words->n || is_flag(words->items[*at + 1].text))) break;
        if (!g.value)
            g.value = next;
        else if (strlen(g.value) < LONGEST_VALUE)
            g.value = dl_arena_format(r->arena, "%.*s %.*s", LONGEST_VALUE, g.value, LONGEST_VALUE, next);
        g.n_values++;
    }
    return g;
}

enum dl_status dl_megatron_read_flags(struct dl_megatron_reading *r, const struct dl_shell_words *arguments,
                                      struct dl_error *err)
{
    const size_t told = err->n_told;
    for (size_t i = 0; i < arguments->n;) {
        const struct dl_word *const word = &arguments->items[i];
        if (is_flag(word->text)) {
            const struct given g = next_flag(r, arguments, &i);
            if (read_flag(r, &g, err) && !dl_go_on(err)) return err->status;
            continue;
        }
        i++;
        if (read_stray(r, word, err) && !dl_go_on(err)) return err->status;
    }
    return dl_stop_if_told(err, told);
}
