#include "sim/report/refusals.h"

#include <stdlib.h>
#include <string.h>

#include "sim/core/memory.h"

void dl_refusals_add(struct dl_refusals *r, const char *reason, uint64_t n)
{
    size_t i = 0;
    while (i < r->n && strcmp(r->items[i].reason, reason)) i++;
    if (i == r->n) {
        DL_GROW(r->items, r->n, r->capacity);
        r->items[r->n++] = (struct dl_refusal){.reason = strcpy(dl_alloc(strlen(reason) + 1), reason)};
    }
    r->items[i].n += n;
}

static int most_first(const void *a, const void *b)
{
    const struct dl_refusal *const x = a, *const y = b;
    return x->n != y->n ? (x->n < y->n) - (x->n > y->n) : strcmp(x->reason, y->reason);
}

void dl_refusals_sort(struct dl_refusals *r)
{
    if (r->n) qsort(r->items, r->n, sizeof *r->items, most_first);
}

void dl_refusals_release(struct dl_refusals *r)
{
    for (size_t i = 0; i < r->n; i++) dl_free(r->items[i].reason);
    dl_free(r->items);
    *r = (struct dl_refusals){0};
}
