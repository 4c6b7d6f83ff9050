#define _DEFAULT_SOURCE /* madvise */
#include "sim/core/memory.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void *checked(void *block, size_t bytes)
{
    if (block) return block;
    fprintf(stderr, "dlsim: out of memory (%zu bytes more were needed)\n", bytes);
    exit(3);
}

void dl_memory_begin(void)
{
    enum { large_bytes = 1 << 20, kept_bytes = 64 << 20 };
    mallopt(M_MMAP_THRESHOLD, large_bytes); /* which would else grow as they are freed */
    mallopt(M_TRIM_THRESHOLD, kept_bytes);
}

void *dl_alloc(size_t bytes) { return checked(calloc(1, bytes ? bytes : 1), bytes); }

/* Only pages that lie wholly within the block: its ends may share theirs with others. */
static void *on_large_pages(void *block, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    const size_t page = 2 << 20;
    const size_t before = (page - (uintptr_t)block % page) % page;
    if (bytes >= before + page) madvise((char *)block + before, (bytes - before) / page * page, MADV_HUGEPAGE);
#endif
    return block;
}

void *dl_alloc_dense(size_t bytes) { return on_large_pages(dl_alloc(bytes), bytes); }

void *dl_realloc(void *old, size_t bytes) { return checked(realloc(old, bytes ? bytes : 1), bytes); }

void dl_free(void *block) { free(block); }

void *dl_grow(void *array, size_t n, size_t *capacity, size_t element_bytes)
{
    if (n < *capacity) return array;
    enum { first_bytes = 1024, most_first = 16, least_first = 4 }; /* what malloc finds fastest is no larger */
    const size_t first = first_bytes / element_bytes;
    *capacity = *capacity ? 2 * *capacity : first > most_first ? most_first : first < least_first ? least_first : first;
    return on_large_pages(dl_realloc(array, *capacity * element_bytes), *capacity * element_bytes);
}

void *dl_reserve(void *array, size_t n, size_t *capacity, size_t element_bytes)
{
    if (n <= *capacity) return array;
    *capacity = n > 2 * *capacity ? n : 2 * *capacity;
    return on_large_pages(dl_realloc(array, *capacity * element_bytes), *capacity * element_bytes);
}

struct block {
    struct block *next;
    size_t used, size;
    max_align_t data[];
};

struct dl_arena {
    struct block *newest;
    void *read;
};

struct dl_arena *dl_arena_new(void) { return dl_alloc(sizeof(struct dl_arena)); }

void dl_arena_free(struct dl_arena *arena)
{
    if (!arena) return;
    for (struct block *b = arena->newest, *next; b; b = next) {
        next = b->next;
        dl_free(b);
    }
    dl_free(arena);
}

void *dl_arena_alloc(struct dl_arena *arena, size_t bytes)
{
    enum { usual_block = 16384 };
    const size_t unit = sizeof(max_align_t);
    const size_t rounded = (bytes + unit - 1) / unit * unit;
    struct block *b = arena->newest;
    if (!b || b->size - b->used < rounded) {
        const size_t size = rounded > usual_block ? rounded : usual_block;
        b = dl_alloc(sizeof *b + size);
        b->size = size;
        b->next = arena->newest;
        arena->newest = b;
    }
    void *const place = (char *)b->data + b->used;
    b->used += rounded;
    return place;
}

void **dl_arena_read(struct dl_arena *arena) { return &arena->read; }

char *dl_arena_string(struct dl_arena *arena, const char *text)
{
    const size_t bytes = strlen(text) + 1;
    return memcpy(dl_arena_alloc(arena, bytes), text, bytes);
}

char *dl_arena_format(struct dl_arena *arena, const char *format, ...)
{
    char most[256]; /* long enough for most */
    va_list arguments, again;
    va_start(arguments, format);
    va_copy(again, arguments);
    const size_t bytes = (size_t)vsnprintf(most, sizeof most, format, arguments) + 1;
    va_end(arguments);
    char *const text = dl_arena_alloc(arena, bytes);
    if (bytes <= sizeof most)
        memcpy(text, most, bytes);
    else
        vsnprintf(text, bytes, format, again);
    va_end(again);
    return text;
}
