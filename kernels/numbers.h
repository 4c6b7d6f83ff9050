/* numbers.h - what memory holds, as doubles, and back: for filling tensors and for checking them. */
#ifndef DL_KERNELS_NUMBERS_H
#define DL_KERNELS_NUMBERS_H

#include "kernels/kernel.h"

size_t dl_store_bytes(enum dl_store store, enum dl_float f); /* of one number */
void dl_store_put(void *memory, size_t i, double x, enum dl_store store, enum dl_float f);
double dl_store_get(const void *memory, size_t i, enum dl_store store, enum dl_float f);

#endif
