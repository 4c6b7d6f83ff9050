/* message_fit.h - what messages cost, from times by size: a latency and bytes over a bandwidth. Small messages may go
 * another way than large ones; software takes the faster of the two. */
#ifndef DL_CORE_MESSAGE_FIT_H
#define DL_CORE_MESSAGE_FIT_H

#include <stdbool.h>

#include "sim/core/line_fit.h"

enum { DL_LEAST_MESSAGES = 4 }; /* sizes that a line is fitted to */

struct dl_message_fit {
    struct dl_line small, large; /* the same where there is one way only */
    bool two_ways;
    double small_until_bytes; /* the last size of the small ones */
};

/* Bytes (x, ascending) and seconds (y). At least DL_LEAST_MESSAGES sizes. */
struct dl_message_fit dl_fit_messages(struct dl_points messages);
/* Seconds for a message of so many bytes, by the fit. */
double dl_message_s(const struct dl_message_fit *f, double bytes);
/* Of the faster way; the other is a fraction of it. */
double dl_message_bytes_per_s(const struct dl_message_fit *f);

#endif
