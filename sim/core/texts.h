/* texts.h - a short list of texts, as an option has them that may be given several times. The texts are not copied. */
#ifndef DL_CORE_TEXTS_H
#define DL_CORE_TEXTS_H

#include <stddef.h>

enum { DL_MAX_TEXTS = 256 };
struct dl_texts {
    const char *items[DL_MAX_TEXTS + 1]; /* one more than may be given, for the program to add */
    size_t n;
};

#endif
