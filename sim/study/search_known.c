#include "sim/study/search_known.h"

#include <sqlite3.h>
#include <string.h>

#include "sim/study/job_text.h"
#include "sim/study/sweep_point.h"
#include "sim/sweep/store.h"

struct dl_known {
    json_t *results; /* by their key */
    json_t *setups;  /* hashes by engine and placement */
};

/* ---- keys ---- */

/* Of all but the strategy. */
static void hash_setup(const struct dl_session *s, char sha256[DL_SHA256_HEX])
{
    struct dl_fingerprint f;
    dl_fingerprint_begin(&f);
    dl_session_fingerprint_setup(s, &f);
    dl_fingerprint_end(&f, sha256);
}

static const char *key_of(const char *setup, const struct dl_job *job, struct dl_arena *arena)
{
    return dl_arena_format(arena, "%s %s", setup, dl_job_text(job, arena));
}

/* Of a run of the point by the engine of the search; asked once for each engine and placement, since it takes long. */
static const char *setup_of(struct dl_known *known, const struct dl_search *s, const struct dl_space_point *p,
                            struct dl_arena *arena)
{
    struct dl_session like = s->base;
    char sha256[DL_SHA256_HEX];
    like.request.engine = s->engine;
    if (dl_search_placement(p)) like.request.placement = dl_search_placement(p);
    const char *const name = dl_arena_format(arena, "%s %s", like.request.engine, like.request.placement);
    if (!json_object_get(known->setups, name)) {
        hash_setup(&like, sha256);
        json_object_set_new(known->setups, name, json_string(sha256));
    }
    return json_string_value(json_object_get(known->setups, name));
}

/* ---- reading a sweep ---- */

struct reading {
    const struct dl_search *search;
    struct dl_known *known;
    struct dl_sweep sweep;
    struct dl_arena *arena;
};

/* As dl_search_run_point tells a step; NULL: something is missing. */
static json_t *result_of(const json_t *answer, double peak_bytes, double device_bytes)
{
    const json_t *const headroom = json_object_get(json_object_get(answer, "verdict"), "headroom_bytes");
    const json_t *const causes = json_object_get(answer, "causes");
    const json_t *const tokens = json_object_get(answer, "tokens_per_s");
    json_t *const exposed = json_array();
    for (int cause = 0; cause < DL_N_CAUSES; cause++) {
        const json_t *const one = json_object_get(causes, dl_cause_name((enum dl_cause)cause));
        json_array_append_new(exposed, json_real(json_number_value(json_object_get(one, "exposed_s"))));
    }
    return json_pack("{sO sO sf sf sf so}", "step_s", json_object_get(answer, "step_s"), "mfu",
                     json_object_get(answer, "mfu"), "tokens_per_s", json_number_value(tokens), "peak_bytes",
                     peak_bytes, "left_fraction", json_number_value(headroom) / device_bytes, "exposed_s", exposed);
}

/* The session of the point as it would be run now; false: it would be refused, or is another than that of the answer.
 */
static bool is_current(struct dl_session *s, const json_t *answer)
{
    char sha256[DL_SHA256_HEX];
    const char *const then = json_string_value(json_object_get(json_object_get(answer, "inputs"), "sha256"));
    if (s->err.status || !then) return false;
    dl_session_sha256(s, sha256);
    return strcmp(then, sha256) == 0;
}

static void keep(struct reading *r, const struct dl_session *s, json_t *result)
{
    struct dl_arena *const arena = dl_arena_new();
    char sha256[DL_SHA256_HEX];
    hash_setup(s, sha256);
    if (result) json_object_set_new(r->known->results, key_of(sha256, &s->job, arena), result);
    dl_arena_free(arena);
}

static void read_point(struct reading *r, sqlite3_stmt *row)
{
    const sqlite3_int64 point = sqlite3_column_int64(row, 0);
    const char *const text = (const char *)sqlite3_column_text(row, 3);
    const bool fits = sqlite3_column_int(row, 1);
    struct dl_session_request q;
    struct dl_session s;
    if (point < 0 || (uint64_t)point >= r->sweep.n_combinations || !text) return;
    json_t *const answer = json_loads(text, 0, NULL);
    struct dl_arena *const arena = dl_arena_new();
    dl_sweep_request(&r->sweep, (uint64_t)point, arena, &q);
    q.machines = r->search->machines;
    dl_session_read(&s, &q);
    if (is_current(&s, answer))
        keep(r, &s,
             fits ? result_of(answer, sqlite3_column_double(row, 2), r->search->base.device.memory_bytes)
                  : json_object());
    dl_session_close(&s);
    dl_arena_free(arena);
    json_decref(answer);
}

static enum dl_status read_rows(struct reading *r, sqlite3 *db, const char *path, struct dl_error *err)
{
    sqlite3_stmt *rows = NULL;
    if (sqlite3_prepare_v2(db,
                           "SELECT point, status = 'done', peak_bytes, json FROM point "
                           "WHERE status IN ('done', 'does-not-fit')",
                           -1, &rows, NULL))
        return dl_fail(err, DL_TYPE, path, "is no database of a sweep: %s", sqlite3_errmsg(db));
    while (sqlite3_step(rows) == SQLITE_ROW) read_point(r, rows);
    sqlite3_finalize(rows);
    return DL_OK;
}

/* The file of the sweep as it was, which the database keeps. */
static enum dl_status read_sweep(struct reading *r, sqlite3 *db, const char *path, struct dl_json *doc,
                                 struct dl_error *err)
{
    sqlite3_stmt *row = NULL;
    const char *text = NULL;
    if (!sqlite3_prepare_v2(db, "SELECT value FROM sweep WHERE key = 'sweep'", -1, &row, NULL) &&
        sqlite3_step(row) == SQLITE_ROW)
        text = (const char *)sqlite3_column_text(row, 0);
    if (!text)
        dl_fail(err, DL_TYPE, path, "is no database of a sweep: it lacks the sweep itself");
    else if (!dl_json_parse(text, strlen(text), path, r->arena, doc, err) &&
             !dl_sweep_read(*doc, r->arena, &r->sweep, err))
        dl_sweep_check_options(&r->sweep, err);
    sqlite3_finalize(row);
    return err->status;
}

enum dl_status dl_known_read(const char *path, const struct dl_search *s, struct dl_known **out, struct dl_error *err)
{
    struct reading r = {.search = s, .known = dl_alloc(sizeof *r.known), .arena = dl_arena_new()};
    struct dl_json doc = {0};
    sqlite3 *db = NULL;
    r.known->results = json_object();
    r.known->setups = json_object();
    *out = r.known;
    if (!dl_store_read(path, &db, err) && !read_sweep(&r, db, path, &doc, err)) read_rows(&r, db, path, err);
    sqlite3_close(db);
    dl_sweep_close(&r.sweep);
    json_decref(doc.value);
    dl_arena_free(r.arena);
    return err->status;
}

void dl_known_free(struct dl_known *known)
{
    if (!known) return;
    json_decref(known->results);
    json_decref(known->setups);
    dl_free(known);
}

/* ---- finding a point ---- */

json_t *dl_known_find(struct dl_known *known, const struct dl_search *s, uint64_t point)
{
    const struct dl_space_point p = dl_space_point(&s->space, point);
    struct dl_arena *const arena = dl_arena_new();
    struct dl_error err = {0};
    struct dl_job job;
    json_t *found = NULL;
    json_t *const doc = dl_search_document(s, point, arena, &err);
    if (!err.status && !dl_job_read((struct dl_json){.value = doc, .where = "search"}, 0, arena, &job, &err)) {
        dl_job_suit(&job, &s->base.software, dl_search_model(s, &job));
        found = json_object_get(known->results, key_of(setup_of(known, s, &p, arena), &job, arena));
    }
    json_decref(doc);
    dl_arena_free(arena);
    return found;
}
