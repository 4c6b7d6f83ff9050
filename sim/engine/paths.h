/* paths.h - messages over routes that are used again and again, while nothing else shares their links.
 *
 * Stages of a pipeline send over the same links step after step. Of the dozens of links of such a way only few can ever
 * hold anything up, while nothing but these ways uses them: not those that all of their ways together cannot fill, nor
 * those whose ways all cross another link that is as narrow. Flows here share what is left of the links. As soon as
 * anything else is to share a link with one of them, it must be taken out and put into the sharing of all others
 * (sharing.h), with all of its links. */
#ifndef DL_ENGINE_PATHS_H
#define DL_ENGINE_PATHS_H

#include "sim/engine/sharing.h"

struct dl_paths;

/* The links must outlive it, unchanged. */
struct dl_paths *dl_paths_new(const struct dl_engine_link *links, size_t n_links);
void dl_paths_free(struct dl_paths *p);

#define DL_NO_PATH UINT32_MAX
/* The number of a path: a way, whose hops must stay as they are, with this cap. *way is 0 when the way is new and is
 * kept by the caller. DL_NO_PATH: it has a flow already. */
uint32_t dl_paths_find(struct dl_paths *p, uint32_t *way, const struct dl_hop *hops, size_t n_hops, double rate_cap);

/* A flow over it joins, whose rate is 0 until the next settle, or leaves. */
void dl_paths_join(struct dl_paths *p, uint32_t path);
void dl_paths_leave(struct dl_paths *p, uint32_t path);

/* A flow over it will join or leave soon, n_before as in dl_coming_fn: fetch what that needs. */
void dl_paths_fetch(const struct dl_paths *p, uint32_t path, size_t n_before);

/* One of the ways that cross this link and have a flow, or DL_NO_PATH. */
uint32_t dl_paths_on(const struct dl_paths *p, uint32_t link);
const struct dl_hop *dl_paths_hops(const struct dl_paths *p, uint32_t path, size_t *n_hops);
size_t dl_paths_n_live(const struct dl_paths *p);

/* changed(user, path, rate) is called for each flow whose rate is not what it was. */
void dl_paths_settle(struct dl_paths *p, dl_rate_fn changed, void *user);

/* What its flows would take of a link if each were alone. */
double dl_paths_wanted(const struct dl_paths *p, uint32_t link);

#endif
