/* progress.h - a line on the terminal while a long simulation runs; nothing where standard error is no terminal. */
#ifndef DL_REPORT_PROGRESS_H
#define DL_REPORT_PROGRESS_H

#include <stdint.h>

/* What an engine may call as its `progress`, or NULL where nobody watches. */
typedef void (*dl_progress_fn)(double now_s, uint64_t n_events);
dl_progress_fn dl_progress(void);

/* Take the line away again. */
void dl_progress_end(void);

#endif
