/* memory.h - allocation that cannot fail, growing arrays, and an arena for what lives as long as a run. */
#ifndef DL_CORE_MEMORY_H
#define DL_CORE_MEMORY_H

#include <stddef.h>

/* Zeroed memory; stops the program with one line if there is none. Free with dl_free. */
void *dl_alloc(size_t bytes);
/* The same for a table all of which is used again and again: on large pages, where the system has them. */
void *dl_alloc_dense(size_t bytes);
void *dl_realloc(void *old, size_t bytes);
void dl_free(void *block);

/* What is there will be needed soon: bring it into the processor's cache. Nothing is read, so it may be anywhere. */
static inline void dl_fetch(const void *from, size_t bytes)
{
    enum { cache_line = 64 };
    for (size_t i = 0; i < bytes; i += cache_line) __builtin_prefetch((const char *)from + i);
    __asm__ volatile(""); /* else compilers drop functions that only fetch, as if they did nothing */
}

/* At the start of a program: large blocks come from the system, and go back there, each time. So an array of zeros as
 * long as the links of a machine costs only what is touched of it, however often one is made. */
void dl_memory_begin(void);

/* Make room for one more element: DL_GROW(list, n, capacity); list[n++] = x. */
#define DL_GROW(array, n, capacity)                                                                                    \
    ((array) = (n) < (capacity) ? (array) : dl_grow((array), (n), &(capacity), sizeof *(array)))
void *dl_grow(void *array, size_t n, size_t *capacity, size_t element_bytes);
/* Room for n elements in all, and so much more that lists which grow again and again are seldom moved. */
void *dl_reserve(void *array, size_t n, size_t *capacity, size_t element_bytes);

/* Many small blocks, freed together. What is read from JSON lives in the run's arena. */
struct dl_arena;
struct dl_arena *dl_arena_new(void);
void dl_arena_free(struct dl_arena *arena);
void *dl_arena_alloc(struct dl_arena *arena, size_t bytes);
char *dl_arena_string(struct dl_arena *arena, const char *text);
char *dl_arena_format(struct dl_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* What the reader of JSON remembers of the documents whose contents live here; NULL at first. */
void **dl_arena_read(struct dl_arena *arena);

#endif
