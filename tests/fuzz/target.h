/* target.h - the name that libFuzzer calls. */
#ifndef DL_TESTS_FUZZ_TARGET_H
#define DL_TESTS_FUZZ_TARGET_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
