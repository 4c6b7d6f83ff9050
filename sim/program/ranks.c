#include "sim/program/ranks.h"

static bool has(dl_digits digits, uint32_t digit) { return digits >> digit & 1; }

bool dl_members_equal(const struct dl_members *a, const struct dl_members *b)
{
    return a->digits == b->digits && a->is_pair == b->is_pair && a->pair[0] == b->pair[0] && a->pair[1] == b->pair[1] &&
           a->are_drawn == b->are_drawn;
}

uint32_t dl_members_count(const struct dl_ranks *r, const struct dl_members *m)
{
    return m->is_pair || m->are_drawn ? 2 : dl_ranks_count(r, m->digits);
}

uint32_t dl_ranks_count(const struct dl_ranks *r, dl_digits digits)
{
    uint32_t n = 1;
    const struct dl_digit *digit = r->digits;
    for (dl_digits left = digits & dl_ranks_all(r); left; left >>= 1, digit++)
        if (left & 1) n *= digit->n;
    return n;
}

uint32_t dl_ranks_offset(const struct dl_ranks *r, dl_digits digits, uint32_t index)
{
    uint32_t rank = 0;
    for (uint32_t i = 0; i < r->n_digits; i++) {
        if (!has(digits, i) || r->digits[i].n == 1) continue;
        rank += index % r->digits[i].n * r->digits[i].stride;
        index /= r->digits[i].n;
    }
    return rank;
}

uint32_t dl_ranks_index(const struct dl_ranks *r, dl_digits digits, uint32_t rank)
{
    uint32_t index = 0, step = 1;
    for (uint32_t i = 0; i < r->n_digits; i++) {
        if (!has(digits, i) || r->digits[i].n == 1) continue;
        index += rank / r->digits[i].stride % r->digits[i].n * step;
        step *= r->digits[i].n;
    }
    return index;
}

uint32_t dl_ranks_further(const struct dl_ranks *r, dl_digits digits, uint32_t rank, uint32_t places)
{
    const uint32_t at = dl_ranks_index(r, digits, rank), n = dl_ranks_count(r, digits);
    return rank - dl_ranks_offset(r, digits, at) + dl_ranks_offset(r, digits, (at + places) % n);
}

dl_digits dl_ranks_all(const struct dl_ranks *r) { return (1u << r->n_digits) - 1; }
