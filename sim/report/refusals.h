/* refusals.h - so many points and why they were refused. */
#ifndef DL_REPORT_REFUSALS_H
#define DL_REPORT_REFUSALS_H

#include <stddef.h>
#include <stdint.h>

struct dl_refusal {
    char *reason; /* owned */
    uint64_t n;
};

struct dl_refusals {
    struct dl_refusal *items;
    size_t n, capacity;
};

void dl_refusals_add(struct dl_refusals *r, const char *reason, uint64_t n);
/* The most frequent first. */
void dl_refusals_sort(struct dl_refusals *r);
void dl_refusals_release(struct dl_refusals *r);

#endif
