/* progress.h - a line on the terminal while a long simulation runs; nothing where standard error is no terminal. */
#ifndef DL_REPORT_PROGRESS_H
#define DL_REPORT_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

/* Something begins that may take its time before an engine runs. */
void dl_progress_begin(void);

/* What an engine may call as its `progress`, or NULL where nobody watches. */
typedef void (*dl_progress_fn)(double now_s, uint64_t n_events);
dl_progress_fn dl_progress(void);

/* For many runs: so many of them are done. */
void dl_progress_jobs(size_t n_done, size_t n_jobs, const char *what);

/* The same with rate and time left, for work of hours: where nobody watches, a line of a log now and then. n_before of
 * them were done before it began, seconds ago. */
void dl_progress_rate(size_t n_done, size_t n_before, size_t n_jobs, double seconds, const char *what);

/* Take the line away again. */
void dl_progress_end(void);

#endif
