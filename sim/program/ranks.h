/* ranks.h - ranks as numbers of several digits, and the groups in which they communicate.
 *
 * A digit is something that ranks differ in: which part of a matrix, of the context, of the samples or of the model
 * they hold. Ranks that differ in some digits and agree in all others are a group. Its members follow each other as
 * these digits count, the first of them fastest, whatever the order of the digits in the number of a rank; rings
 * inherit that. Who belongs to whom is worked out nowhere else. */
#ifndef DL_PROGRAM_RANKS_H
#define DL_PROGRAM_RANKS_H

#include <stdbool.h>
#include <stdint.h>

enum { DL_MOST_DIGITS = 25 };

/* A set of digits: the bit 1 << i for digit i. */
typedef uint32_t dl_digits;

struct dl_digit {
    const char *name;
    uint32_t n;      /* values that it has */
    uint32_t stride; /* between ranks that differ by one in it */
};

struct dl_ranks {
    struct dl_digit digits[DL_MOST_DIGITS];
    uint32_t n_digits;
};

/* Ranks that communicate. */
struct dl_members {
    dl_digits digits; /* that they differ in */
    bool is_pair;     /* only these two of their values */
    uint32_t pair[2];
    bool are_drawn; /* pairs of them, others in each iteration: see peers.h */
};
bool dl_members_equal(const struct dl_members *a, const struct dl_members *b);
uint32_t dl_members_count(const struct dl_ranks *r, const struct dl_members *m);

/* The values that a set of digits has together. */
uint32_t dl_ranks_count(const struct dl_ranks *r, dl_digits digits);
/* What they add to the number of a rank, as the index-th of these values; and which of them a rank has. */
uint32_t dl_ranks_offset(const struct dl_ranks *r, dl_digits digits, uint32_t index);
uint32_t dl_ranks_index(const struct dl_ranks *r, dl_digits digits, uint32_t rank);
/* The rank that comes so many places after this one in its group, round about. */
uint32_t dl_ranks_further(const struct dl_ranks *r, dl_digits digits, uint32_t rank, uint32_t places);
/* All digits. */
dl_digits dl_ranks_all(const struct dl_ranks *r);

#endif
