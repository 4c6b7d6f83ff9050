/* message_fit.h - what messages cost, from times by size: a latency and bytes over a bandwidth. Small messages may go
 * another way than large ones; software takes the faster of the two. Above a size that is set in it, software may send
 * in pieces, whether that is faster or not. */
#ifndef DL_CORE_MESSAGE_FIT_H
#define DL_CORE_MESSAGE_FIT_H

#include <stdbool.h>

#include "sim/core/line_fit.h"

enum { DL_LEAST_MESSAGES = 4, DL_LEAST_PIECES = 3 }; /* sizes that a line is fitted to */

struct dl_message_fit {
    struct dl_line small, large; /* the same where there is one way only */
    bool two_ways;
    double small_until_bytes; /* the last size of the small ones */
    struct dl_line pieces;
    double pieces_above_bytes; /* 0: nothing is sent in pieces */
};

/* Bytes (x, ascending) and seconds (y). At least DL_LEAST_MESSAGES sizes. */
struct dl_message_fit dl_fit_messages(struct dl_points messages);
/* The same with a line for what is sent in pieces, larger than this; DL_LEAST_PIECES sizes at least on that side. */
struct dl_message_fit dl_fit_messages_and_pieces(struct dl_points messages, double pieces_above_bytes);
/* How many sizes are not above that. */
size_t dl_count_sizes(struct dl_points messages, double until_bytes);
/* Seconds for a message of so many bytes, by the fit. */
double dl_message_s(const struct dl_message_fit *f, double bytes);
/* Of the fastest way; the others are a fraction of it. */
double dl_message_bytes_per_s(const struct dl_message_fit *f);

#endif
