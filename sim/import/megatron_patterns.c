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

/* ---- which stage has which layers: Et*3|(tt|)*6mL ---- */

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
            p->is_bad |= !strchr("EtmL|", *p->at);
            if (!p->is_bad) put(p, *p->at);
        }
        p->at += !p->is_bad;
        if (!p->is_bad) repeat(p, first, ", ");
    }
    p->depth--;
}

/* E, layers, modules that predict further tokens, L: each may stand only where none that comes later has stood. */
static bool is_in_order(const struct pattern *p)
{
    static const char order[] = "EtmL";
    const char *last = order;
    for (size_t i = 0; i < p->n; i++) {
        const char *const now = p->items[i] == '|' ? last : strchr(order, p->items[i]);
        const bool is_end = *now == 'E' || *now == 'L';
        if (now < last || (is_end && i && p->items[i] == *last)) return false;
        last = now;
    }
    return p->n > 1 && p->items[0] == 'E' && p->items[p->n - 1] == 'L';
}

static void count_blocks(const struct pattern *p, struct dl_megatron_layout *out)
{
    int64_t here = 0;
    for (size_t i = 0; i < p->n; i++) {
        const int64_t part = (int64_t)json_array_size(out->blocks);
        out->n_layers += p->items[i] == 't';
        here += p->items[i] == 't' || p->items[i] == 'm';
        if (p->items[i] == 'm') {
            if (!out->n_further++) out->first_further = part;
            out->last_further = part;
        }
        if (p->items[i] != '|' && i + 1 < p->n) continue;
        json_array_append_new(out->blocks, json_integer(here));
        here = 0;
    }
}

/* The grammar is that of Megatron-Core (transformer/pipeline_parallel_layer_layout.py). */
struct dl_megatron_layout dl_megatron_layout_of(const char *text)
{
    struct pattern p = {.at = text};
    struct dl_megatron_layout layout = {.n_layers = 0};
    read_stages(&p);
    if (!p.is_bad && !*p.at && is_in_order(&p)) {
        layout.blocks = json_array();
        count_blocks(&p, &layout);
    }
    dl_free(p.items);
    return layout;
}
