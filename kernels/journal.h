/* journal.h - what has been timed so far, one line each, so that a profile can be stopped and resumed.
 *
 * The first line says of which device and libraries the times are; a journal of another one is refused. */
#ifndef DL_KERNELS_JOURNAL_H
#define DL_KERNELS_JOURNAL_H

#include "kernels/timing.h"

struct dl_journal;

/* Opens or begins the journal at the path; NULL and *wrong: why it cannot be. */
struct dl_journal *dl_journal_open(const char *path, const char *head, const char **wrong);

/* The time of what has this key, or one with n_samples 0. */
struct dl_timing dl_journal_find(const struct dl_journal *j, const char *key);
size_t dl_journal_count(const struct dl_journal *j); /* of keys */
/* NULL, or why it cannot be written: then what is timed from now on would be lost. */
const char *dl_journal_add(struct dl_journal *j, const char *key, const struct dl_timing *t);

/* Closes it; one whose times are all in the device file is deleted. */
void dl_journal_close(struct dl_journal *j, bool is_finished);

#endif
