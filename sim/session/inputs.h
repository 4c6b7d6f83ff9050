/* inputs.h - from names on the command line to a machine with its software. */
#ifndef DL_SESSION_INPUTS_H
#define DL_SESSION_INPUTS_H

#include "sim/core/files.h"
#include "sim/core/fingerprint.h"
#include "sim/core/inherit.h"
#include "sim/core/texts.h"
#include "sim/engine/engine.h"
#include "sim/report/files_read.h"
#include "sim/session/machines.h"
#include "topologies/transport.h"

#define DL_SYSTEMS "topologies/systems"
#define DL_TRANSPORTS "topologies/transports"
#define DL_DEVICES "topologies/devices"
#define DL_WORKLOADS "workloads/models"
#define DL_STRATEGIES "strategies/presets"
#define DL_SOFTWARE "strategies/software"

/* A document: the name or path of a file, or the text of one that was made in memory, with a name for errors. */
struct dl_input {
    const char *name; /* NULL: none was given */
    const char *text; /* NULL: in a file */
    const char *file; /* to which the name, or names in the text, are relative; NULL: the command line gave it */
};

/* A document that is asked for. */
struct dl_want {
    const char *folder, *what; /* shipped folder, what errors call it */
    struct dl_input input;
    const char *prefix; /* of the `--set` values meant for it; those without one are the "strategy"'s */
    const char *where;  /* the place that names it ("3d.json:/workload"); NULL: the command line */
};

/* The place of a key, if it was this that gave the name: `given` on the command line goes before. */
const char *dl_place_of_name(const char *given, struct dl_json doc, const char *key, struct dl_arena *arena);
/* What was given, else the name that the document has. */
struct dl_input dl_given_or(struct dl_input given, struct dl_json doc, const char *name);

/* As dl_find_sought; a name that another option would take is sent there. */
enum dl_status dl_find_named(const struct dl_sought *sought, struct dl_arena *arena, const char **path,
                             struct dl_error *err);
enum dl_status dl_find_wanted(const struct dl_want *want, struct dl_arena *arena, const char **path,
                              struct dl_error *err);
/* Load it and apply the `--set` values meant for it. The caller releases the document. */
enum dl_status dl_load_document(const struct dl_want *want, const struct dl_texts *set, struct dl_arena *arena,
                                struct dl_json *doc, struct dl_error *err);

/* The same; the lineage tells which files it is like. */
enum dl_status dl_load_with_lineage(const struct dl_want *want, const struct dl_texts *set, struct dl_arena *arena,
                                    struct dl_json *doc, struct dl_lineage *lineage, struct dl_error *err);

/* Whether a `--set` value is meant for the document of that prefix. */
bool dl_set_is_for(const char *assignment, const char *prefix);

/* For commands that read nothing else: every `--set` must be for the system or the transport. */
enum dl_status dl_only_machine_set(const struct dl_texts *set, struct dl_error *err);

struct dl_machine {
    struct dl_machines *keeper; /* owns the topology and the rates; NULL: the machine does */
    bool is_borrowed;           /* another machine owns them */
    struct dl_json system_doc, transport_doc;
    struct dl_topology *topology;
    struct dl_transport transport;
    double *bytes_per_s; /* by link, as the transport achieves it */
};

/* Load a system and apply the `--set` values meant for it (topo.PATH=JSON). All of *m is zero but for its keeper. */
enum dl_status dl_machine_open(struct dl_input topo, const struct dl_texts *set, struct dl_arena *arena,
                               struct dl_machine *m, struct dl_error *err);
/* The same, as another has loaded it; for one with a keeper. */
enum dl_status dl_machine_open_as(struct dl_machine *m, const struct dl_machine *other, struct dl_error *err);
/* All of another, which outlives it and is not changed. */
void dl_machine_borrow(struct dl_machine *m, const struct dl_machine *other);
/* Where the machine gives slices to jobs: take the one for so many devices in place of the whole machine. A placement
 * by list is over the whole machine. */
enum dl_status dl_machine_slice(struct dl_machine *m, uint32_t n_devices, const char *placement, struct dl_error *err);
/* Load the transport (NULL: the system's own) for a group that spans so many nodes; --set transport.PATH=JSON. */
enum dl_status dl_machine_use_transport(struct dl_machine *m, const char *transport, uint32_t n_nodes,
                                        const struct dl_texts *set, struct dl_arena *arena, struct dl_error *err);
/* That of another, which outlives it: the same system, and as many nodes. */
void dl_machine_use_transport_of(struct dl_machine *m, const struct dl_machine *other);
/* All that is known of it, for a fingerprint. */
void dl_machine_fingerprint(const struct dl_machine *m, struct dl_fingerprint *f);
/* What of it is not shipped. */
void dl_machine_list_files(const struct dl_machine *m, struct dl_arena *arena, struct dl_files_read *out);
/* Its links as an engine takes them, for dl_free. */
struct dl_engine_link *dl_machine_links(const struct dl_machine *m);
void dl_machine_close(struct dl_machine *m);

#endif
