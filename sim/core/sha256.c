#include "sim/core/sha256.h"

#include <stdio.h>
#include <string.h>

#include "sim/core/error.h"

/* FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[DL_SHA256_BLOCK] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void dl_sha256_init(struct dl_sha256 *h)
{
    /* 5.3.3: of the square roots of the first eight primes */
    static const uint32_t state[] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(h->state, state, sizeof state);
    h->n_bytes = 0;
}

static uint32_t turned(uint32_t x, unsigned n) { return x >> n | x << (32 - n); }

/* 6.2.2, step 1: the 16 words of the block, and 48 more made of them. */
static void schedule(const unsigned char *block, uint32_t words[DL_SHA256_BLOCK])
{
    for (size_t i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 |
                   block[4 * i + 3];
    for (size_t i = 16; i < DL_SHA256_BLOCK; i++) {
        const uint32_t near = words[i - 2], far = words[i - 15];
        words[i] = words[i - 7] + words[i - 16] + (turned(near, 17) ^ turned(near, 19) ^ near >> 10) +
                   (turned(far, 7) ^ turned(far, 18) ^ far >> 3);
    }
}

/* Step 3 for the letters a to h, of which only two get new values; in the next round all have moved on by one. */
#define ROUND(a, b, c, d, e, f, g, h, i)                                                                               \
    do {                                                                                                               \
        const uint32_t first = (h) + (turned(e, 6) ^ turned(e, 11) ^ turned(e, 25)) + (((e) & (f)) ^ (~(e) & (g))) +   \
                               constants[i] + words[i];                                                                \
        (d) += first;                                                                                                  \
        (h) = first + (turned(a, 2) ^ turned(a, 13) ^ turned(a, 22)) + (((a) & (b)) ^ ((a) & (c)) ^ ((b) & (c)));      \
    } while (0)

static void hash_block(struct dl_sha256 *hash)
{
    uint32_t words[DL_SHA256_BLOCK], *const s = hash->state;
    uint32_t a = s[0], b = s[1], c = s[2], d = s[3], e = s[4], f = s[5], g = s[6], h = s[7];
    schedule(hash->block, words);
    for (size_t i = 0; i < DL_SHA256_BLOCK; i += 8) {
        ROUND(a, b, c, d, e, f, g, h, i);
        ROUND(h, a, b, c, d, e, f, g, i + 1);
        ROUND(g, h, a, b, c, d, e, f, i + 2);
        ROUND(f, g, h, a, b, c, d, e, i + 3);
        ROUND(e, f, g, h, a, b, c, d, i + 4);
        ROUND(d, e, f, g, h, a, b, c, i + 5);
        ROUND(c, d, e, f, g, h, a, b, i + 6);
        ROUND(b, c, d, e, f, g, h, a, i + 7);
    }
    const uint32_t now[] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < DL_COUNT(now); i++) s[i] += now[i];
}
#undef ROUND

void dl_sha256_add(struct dl_sha256 *h, const void *bytes, size_t n)
{
    const unsigned char *from = bytes;
    while (n) {
        const size_t used = h->n_bytes % DL_SHA256_BLOCK, room = DL_SHA256_BLOCK - used, taken = n < room ? n : room;
        memcpy(h->block + used, from, taken);
        h->n_bytes += taken;
        from += taken;
        n -= taken;
        if (taken == room) hash_block(h);
    }
}

void dl_sha256_end(struct dl_sha256 *h, char hex[DL_SHA256_HEX])
{
    /* 5.1.1: a bit 1, zeros, and the length in bits at the end of a block */
    static const unsigned char one = 0x80, zero = 0;
    const uint64_t n_bits = 8 * h->n_bytes;
    dl_sha256_add(h, &one, 1);
    while (h->n_bytes % DL_SHA256_BLOCK != DL_SHA256_BLOCK - sizeof n_bits) dl_sha256_add(h, &zero, 1);
    for (int shift = 56; shift >= 0; shift -= 8) {
        const unsigned char byte = (unsigned char)(n_bits >> shift);
        dl_sha256_add(h, &byte, 1);
    }
    for (size_t i = 0; i < 8; i++) snprintf(hex + 8 * i, 9, "%08x", (unsigned)h->state[i]);
}

void dl_sha256_of(const void *bytes, size_t n, char hex[DL_SHA256_HEX])
{
    struct dl_sha256 h;
    dl_sha256_init(&h);
    dl_sha256_add(&h, bytes, n);
    dl_sha256_end(&h, hex);
}
