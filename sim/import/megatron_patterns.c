/* megatron_patterns.c - two small languages of Megatron's flags: which layers have experts, which stage has which. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "sim/import/megatron.h"

enum { LONGEST = 100000, DEEPEST = 20 };

/* What is being read, and what it has become: one character for each layer or mark. */
struct pattern {
    const char *at;
    char *items;
    size_t n, capacity;
    unsigned depth;
    bool is_bad;
};

static void put(struct pattern *p, char item)
{
    p->is_bad |= p->n >= LONGEST;
    if (p->is_bad) return;
    DL_GROW(p->items, p->n, p->capacity);
    p->items[p->n++] = item;
}

static void skip(struct pattern *p, const char *ignored) { p->at += strspn(p->at, ignored); }

/* *N after a part repeats what was put since `first`. */
static void repeat(struct pattern *p, size_t first, const char *ignored)
{
    skip(p, ignored);
    while (*p->at == '*' && !p->is_bad) {
        char *end;
        p->at++;
        skip(p, ignored);
        const long times = isdigit((unsigned char)*p->at) ? strtol(p->at, &end, 10) : 0;
        const size_t n = p->n - first;
        p->is_bad |= times < 1 || times > LONGEST;
        if (p->is_bad) return;
        p->at = end;
        for (long i = 1; i < times && !p->is_bad; i++)
            for (size_t k = 0; k < n; k++) put(p, p->items[first + k]);
        skip(p, ignored);
    }
}

/* ---- which layers have experts: ([0]*3+[1]*11) ---- */

static const char blanks[] = " \t";

static void read_list(struct pattern *p)
{
    for (p->at++; !p->is_bad;) {
        skip(p, " \t,");
        if (*p->at == ']') break;
        p->is_bad |= *p->at != '0' && *p->at != '1';
        if (!p->is_bad) put(p, *p->at++);
    }
    p->at += !p->is_bad;
}

static void read_sum(struct pattern *p)
{
    p->is_bad |= p->depth++ > DEEPEST;
    for (bool more = true; more && !p->is_bad;) {
        const size_t first = p->n;
        skip(p, blanks);
        if (*p->at == '(') {
            p->at++;
            read_sum(p);
            p->is_bad |= *p->at != ')';
            p->at += !p->is_bad;
        } else if (*p->at == '[') {
            read_list(p);
        } else {
            p->is_bad = true;
        }
        if (!p->is_bad) repeat(p, first, blanks);
        more = *p->at == '+';
        p->at += more && !p->is_bad;
    }
    p->depth--;
}

/* The last of so many has experts; 0: it is not so. */
static int64_t period_of(const struct pattern *p)
{
    const char *const first = memchr(p->items, '1', p->n);
    const size_t every = first ? (size_t)(first - p->items) + 1 : 0;
    for (size_t i = 0; i < p->n && every; i++)
        if ((p->items[i] == '1') != ((i + 1) % every == 0)) return 0;
    return (int64_t)every;
}

static int64_t leading_of(const struct pattern *p)
{
    size_t n = 0;
    while (n < p->n && p->items[n] == '0') n++;
    for (size_t i = n; i < p->n; i++)
        if (p->items[i] != '1') return -1;
    return n < p->n ? (int64_t)n : -1;
}

int64_t dl_megatron_dense_layers(const char *text, int64_t n_layers, int64_t *every)
{
    struct pattern p = {.at = text};
    *every = 1;
    if (isdigit((unsigned char)*text)) {
        char *end;
        *every = strtol(text, &end, 10);
        return *end || *every < 1 || *every > n_layers ? -1 : 0;
    }
    read_sum(&p);
    int64_t dense = -1;
    if (!p.is_bad && !*p.at && (int64_t)p.n == n_layers) {
        dense = leading_of(&p);
        const int64_t period = dense < 0 ? period_of(&p) : 0;
        if (period) *every = period, dense = 0;
    }
    dl_free(p.items);
    return dense;
}

/* ---- which stage has which layers: Et*3|(tt|)*6L ---- */

static void read_stages(struct pattern *p)
{
    p->is_bad |= p->depth++ > DEEPEST;
    for (skip(p, ", "); *p->at && *p->at != ')' && !p->is_bad; skip(p, ", ")) {
        const size_t first = p->n;
        if (*p->at == '(') {
            p->at++;
            read_stages(p);
            p->is_bad |= *p->at != ')';
        } else {
            p->is_bad |= !strchr("EtL|", *p->at);
            if (!p->is_bad) put(p, *p->at);
        }
        p->at += !p->is_bad;
        if (!p->is_bad) repeat(p, first, ", ");
    }
    p->depth--;
}

json_t *dl_megatron_layout(const char *layout)
{
    struct pattern p = {.at = layout};
    read_stages(&p);
    json_t *const counts = json_array();
    bool is_bad = p.is_bad || *p.at || !p.n || p.items[0] != 'E' || p.items[p.n - 1] != 'L';
    int64_t count = 0;
    for (size_t i = 1; i < p.n && !is_bad; i++) {
        const bool is_last = i + 1 == p.n;
        is_bad |= p.items[i] == 'E' || (p.items[i] == 'L' && !is_last);
        count += p.items[i] == 't';
        if (p.items[i] != '|' && !is_last) continue;
        json_array_append_new(counts, json_integer(count));
        count = 0;
    }
    dl_free(p.items);
    if (!is_bad) return counts;
    json_decref(counts);
    return NULL;
}
