/* sha256.h - the SHA-256 of a text that comes in pieces (FIPS 180-4). */
#ifndef DL_CORE_SHA256_H
#define DL_CORE_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { DL_SHA256_BLOCK = 64, DL_SHA256_HEX = 65 }; /* bytes that are hashed together; digits with the final NUL */

struct dl_sha256 {
    uint32_t state[8];
    uint64_t n_bytes;
    unsigned char block[DL_SHA256_BLOCK];
};

void dl_sha256_init(struct dl_sha256 *h);
void dl_sha256_add(struct dl_sha256 *h, const void *bytes, size_t n);
/* The digest in lower-case hexadecimal digits; h is used up. */
void dl_sha256_end(struct dl_sha256 *h, char hex[DL_SHA256_HEX]);
/* Of a text in one piece. */
void dl_sha256_of(const void *bytes, size_t n, char hex[DL_SHA256_HEX]);

#endif
