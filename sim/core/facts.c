#include "sim/core/facts.h"

#include <math.h>
#include <string.h>

static const char *const grade_names[] = {"measured", "published", "derived", "fitted", "assumed", NULL};

enum fitted_to { to_validation_rows, to_other_times };
static const char *const fitted_to_names[] = {"validation_rows", "other_times", NULL};
enum half { half_fit, half_both };
static const char *const half_names[] = {"fit", "both", NULL};

const char *dl_grade_name(enum dl_grade grade) { return grade_names[grade]; }

/* A fact as an object. */
struct stated {
    int64_t grade;
    const char *source;
    double low, high; /* NaN: not said */
    int64_t to, half; /* -1: not said */
    const char *rows;
};

static const struct dl_field fields[] = {
    {"grade", DL_CHOICE, offsetof(struct stated, grade), 0, 0, false, grade_names, NULL},
    {"source", DL_TEXT, offsetof(struct stated, source), 0, 0, false, NULL, NULL},
    {"low", DL_NUMBER, offsetof(struct stated, low), -HUGE_VAL, HUGE_VAL, true, NULL, NULL},
    {"high", DL_NUMBER, offsetof(struct stated, high), -HUGE_VAL, HUGE_VAL, true, NULL, NULL},
    {"to", DL_CHOICE, offsetof(struct stated, to), 0, 0, true, fitted_to_names, NULL},
    {"half", DL_CHOICE, offsetof(struct stated, half), 0, 0, true, half_names, NULL},
    {"rows", DL_TEXT, offsetof(struct stated, rows), 0, 0, true, NULL, NULL},
};

static enum dl_status read_stated(struct dl_json fact, struct dl_arena *arena, struct stated *out, struct dl_error *err)
{
    *out = (struct stated){.low = NAN, .high = NAN, .to = -1, .half = -1};
    return dl_read(fact, fields, DL_COUNT(fields), out, arena, err);
}

/* A fitted figure must say to what, which a text cannot. */
static bool read_grade(const char *text, enum dl_grade *grade)
{
    for (size_t g = 0; g < DL_N_GRADES; g++) {
        if (g == DL_FITTED) continue;
        const size_t n = strlen(grade_names[g]);
        if (strncmp(text, grade_names[g], n) || text[n] != ':' || text[n + 1] != ' ' || !text[n + 2]) continue;
        *grade = (enum dl_grade)g;
        return true;
    }
    return false;
}

static enum dl_grade grade_of(const json_t *fact)
{
    enum dl_grade grade = DL_ASSUMED;
    const char *const stated = json_string_value(json_object_get(fact, "grade"));
    if (json_is_string(fact)) read_grade(json_string_value(fact), &grade);
    for (size_t g = 0; stated && g < DL_N_GRADES; g++)
        if (strcmp(stated, grade_names[g]) == 0) grade = (enum dl_grade)g;
    return grade;
}

enum dl_grade dl_json_grade(const json_t *object, const char *key)
{
    const json_t *const facts = json_object_get(object, "facts"), *const own = json_object_get(facts, key);
    return grade_of(own ? own : json_object_get(facts, "*"));
}

static bool is_choice(const json_t *fact, const char *key, const char *choice)
{
    const char *const text = json_string_value(json_object_get(fact, key));
    return text && strcmp(text, choice) == 0;
}

bool dl_fact_is_fitted(const json_t *fact, struct dl_fitted *out)
{
    if (grade_of(fact) != DL_FITTED) return false;
    *out = (struct dl_fitted){.to_validation_rows = is_choice(fact, "to", fitted_to_names[to_validation_rows]),
                              .by_both_halves = is_choice(fact, "half", half_names[half_both]),
                              .rows = json_string_value(json_object_get(fact, "rows"))};
    return true;
}

/* ---- checking ---- */

static enum dl_status check_fitted(struct dl_json fact, const struct stated *s, struct dl_error *err)
{
    const bool says_all = s->to >= 0 && s->half >= 0 && s->rows && *s->rows;
    const bool says_any = s->to >= 0 || s->half >= 0 || s->rows;
    if (s->grade == DL_FITTED && !says_all)
        return dl_fail(err, DL_KEY, fact.where,
                       "a fitted figure needs 'to' (validation_rows, other_times), 'half' (fit, both) and 'rows'");
    if (s->grade != DL_FITTED && says_any)
        return dl_fail(err, DL_KEY, fact.where, "'to', 'half' and 'rows' are only of the grade fitted");
    return DL_OK;
}

static enum dl_status check_stated(struct dl_json fact, const json_t *value, struct dl_arena *arena,
                                   struct dl_error *err)
{
    struct stated s;
    if (read_stated(fact, arena, &s, err)) return err->status;
    if (!*s.source) return dl_fail(err, DL_RANGE, fact.where, "must say in 'source' where the figure comes from");
    if (check_fitted(fact, &s, err)) return err->status;
    if (isnan(s.low) && isnan(s.high)) return DL_OK;
    if (isnan(s.low) || isnan(s.high))
        return dl_fail(err, DL_KEY, fact.where, "an interval needs both 'low' and 'high'");
    if (!json_is_number(value))
        return dl_fail(err, DL_TYPE, fact.where, "an interval is of one number, and this key has none");
    const double x = json_number_value(value);
    if (!(s.low <= x && x <= s.high))
        return dl_fail(err, DL_RANGE, fact.where, "low <= value <= high must hold, got %.10g, %.10g, %.10g", s.low, x,
                       s.high);
    return DL_OK;
}

static enum dl_status check_fact(struct dl_json fact, const json_t *value, struct dl_arena *arena, struct dl_error *err)
{
    enum dl_grade grade;
    if (json_is_object(fact.value)) return check_stated(fact, value, arena, err);
    if (json_is_string(fact.value) && read_grade(json_string_value(fact.value), &grade)) return DL_OK;
    return dl_fail(err, DL_RANGE, fact.where,
                   "must be 'measured|published|derived|assumed: source', or an object with the grade fitted");
}

static enum dl_status check_fact_of(struct dl_json object, struct dl_json fact, const char *key, struct dl_arena *arena,
                                    struct dl_error *err)
{
    const json_t *const value = json_object_get(object.value, key);
    struct dl_fitted fitted;
    if (strcmp(key, "*") && !value) return dl_fail(err, DL_KEY, fact.where, "speaks of a key that is not there");
    if (check_fact(fact, value, arena, err)) return err->status;
    if (!value && dl_fact_is_fitted(fact.value, &fitted) && fitted.to_validation_rows)
        return dl_fail(err, DL_KEY, fact.where, "what is fitted to validation_rows is counted by key, not by '*'");
    return DL_OK;
}

enum dl_status dl_json_check_facts(struct dl_json object, struct dl_arena *arena, struct dl_error *err)
{
    const struct dl_json facts = dl_json_member(object, "facts", arena);
    const size_t told = err->n_told;
    if (!facts.value) return DL_OK;
    if (!json_is_object(facts.value)) return dl_wrong_type(facts, "an object", err);
    const char *key;
    json_t *unused;
    json_object_foreach(facts.value, key, unused)
    {
        check_fact_of(object, dl_json_member(facts, key, arena), key, arena, err);
        if (!dl_go_on(err)) break;
    }
    return dl_stop_if_told(err, told);
}

void dl_json_drop_interval(json_t *object, const char *key)
{
    json_t *const fact = json_object_get(json_object_get(object, "facts"), key);
    json_object_del(fact, "low");
    json_object_del(fact, "high");
}

/* ---- walking ---- */

struct walk {
    struct dl_arena *arena;
    void (*visit)(void *user, const struct dl_fact *fact);
    void *user;
    const char *const *left_out; /* keys; ends with NULL */
};

static bool is_left_out(const struct walk *w, const char *key)
{
    for (size_t i = 0; w->left_out[i]; i++)
        if (strcmp(key, w->left_out[i]) == 0) return true;
    return false;
}

/* Facts have been checked when the document was read; one that is no fact says nothing. */
static void take_text(struct dl_fact *fact, const json_t *text)
{
    if (!json_is_string(text) || !read_grade(json_string_value(text), &fact->grade)) return;
    fact->text = json_string_value(text);
    fact->stated = true;
}

/* An interval is only of the one number that owns the fact: "*" may be a key itself, and stand for others too. */
static void take_stated(struct dl_fact *fact, json_t *object, bool owns, struct dl_arena *arena)
{
    struct dl_error err = {0};
    struct stated s;
    if (read_stated((struct dl_json){.value = object, .where = fact->where}, arena, &s, &err)) return;
    fact->grade = (enum dl_grade)s.grade;
    fact->text = dl_arena_format(arena, "%s: %s", dl_grade_name(fact->grade), s.source);
    fact->stated = true;
    fact->has_interval = owns && !isnan(s.low) && !isnan(s.high);
    fact->low = s.low;
    fact->high = s.high;
}

static void visit_number(struct dl_json at, const json_t *object, const char *key, const struct walk *w)
{
    const json_t *const facts = json_object_get(object, "facts");
    json_t *said = json_object_get(facts, key);
    const bool owns = said && json_object_get(object, key) == at.value;
    if (!said) said = json_object_get(facts, "*");
    struct dl_fact fact = {.where = at.where,
                           .text = "assumed: no source is given",
                           .grade = DL_ASSUMED,
                           .value = json_number_value(at.value)};
    if (json_is_object(said))
        take_stated(&fact, said, owns, w->arena);
    else
        take_text(&fact, said);
    w->visit(w->user, &fact);
}

static bool is_table(const json_t *object)
{
    return json_is_array(json_object_get(object, "columns")) && json_is_array(json_object_get(object, "rows"));
}

static void walk_value(struct dl_json at, const json_t *object, const char *key, const struct walk *w)
{
    if (json_is_number(at.value)) {
        visit_number(at, object, key, w);
    } else if (json_is_array(at.value)) {
        for (size_t i = 0; i < json_array_size(at.value); i++)
            walk_value(dl_json_element(at, i, w->arena), object, key, w);
    } else if (json_is_object(at.value) && !is_table(at.value)) {
        const bool inherits = object && !json_object_get(at.value, "facts");
        const char *member;
        json_t *value;
        json_object_foreach(at.value, member, value)
        {
            if (is_left_out(w, member)) continue;
            walk_value(dl_json_member(at, member, w->arena), inherits ? object : at.value, inherits ? key : member, w);
        }
    }
}

void dl_json_facts(struct dl_json doc, struct dl_arena *arena, void (*visit)(void *user, const struct dl_fact *fact),
                   void *user)
{
    static const char *const left_out[] = {"facts", NULL};
    walk_value(doc, NULL, "", &(struct walk){.arena = arena, .visit = visit, .user = user, .left_out = left_out});
}

void dl_json_facts_of_step(struct dl_json doc, struct dl_arena *arena,
                           void (*visit)(void *user, const struct dl_fact *fact), void *user)
{
    static const char *const left_out[] = {"facts",         "reliability", "storage", "node_power",
                                           "network_power", "site",        NULL};
    walk_value(doc, NULL, "", &(struct walk){.arena = arena, .visit = visit, .user = user, .left_out = left_out});
}
