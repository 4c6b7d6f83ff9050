/* kinds.h - reading objects whose key "kind" chooses which other keys they have: parts of nodes, networks. */
#ifndef DL_TOPOLOGIES_KINDS_H
#define DL_TOPOLOGIES_KINDS_H

#include "sim/core/json.h"

/* A struct with the fields that fill it and the values it starts from. */
struct dl_options {
    const struct dl_field *fields;
    size_t n_fields, size;
    const void *defaults;
};

/* Which of the names (the last is NULL) the key "kind" of the object says. */
enum dl_status dl_read_kind(struct dl_json object, const char *const *names, int64_t *chosen, struct dl_arena *arena,
                            struct dl_error *err);

/* Read an object that has the keys of both tables; *own and *common become arena memory of the tables' sizes. */
struct dl_two_options {
    void *own, *common;
};
enum dl_status dl_read_two(struct dl_json object, const struct dl_options *own, const struct dl_options *common,
                           struct dl_two_options *out, struct dl_arena *arena, struct dl_error *err);

#endif
