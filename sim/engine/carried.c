#include "sim/engine/carried.h"

#include <math.h>
#include <string.h>

#include "sim/core/memory.h"

enum { links_of_block = 256, no_link = 0xffffffffu };

struct dl_changed_link {
    uint32_t link;
    double fraction, since_s; /* that it has now */
    double bytes, busy_s;     /* up to then */
};

void dl_carried_init(struct dl_carried *c, const double *bytes_per_s, size_t n_links)
{
    const size_t n_blocks = n_links / links_of_block + 1;
    *c = (struct dl_carried){.bytes_per_s = bytes_per_s,
                             .n_links = n_links,
                             .bytes = dl_realloc(NULL, n_blocks * links_of_block * sizeof *c->bytes),
                             .block_is_used = dl_alloc(n_blocks * sizeof *c->block_is_used),
                             .changing = no_link};
}

void dl_carried_release(struct dl_carried *c)
{
    dl_free(c->changed);
    dl_free(c->bytes);
    dl_free(c->block_is_used);
}

/* ---- booking ---- */

static void begin_block(struct dl_carried *c, uint32_t block)
{
    memset(&c->bytes[block * links_of_block], 0, links_of_block * sizeof *c->bytes);
    c->block_is_used[block] = true;
}

static void book_link(struct dl_carried *c, uint32_t link, double bytes)
{
    if (!c->block_is_used[link / links_of_block]) begin_block(c, link / links_of_block);
    c->bytes[link] += bytes;
}

static double bytes_on(const struct dl_carried *c, uint32_t link)
{
    return c->block_is_used[link / links_of_block] ? c->bytes[link] : 0;
}

void dl_carried_book(struct dl_carried *c, const struct dl_hop *hops, size_t n_hops, double bytes)
{
    for (size_t i = 0; i < n_hops; i++) book_link(c, hops[i].link, bytes * hops[i].weight);
}

void dl_carried_turn(struct dl_carried *c, struct dl_turn *turn, const struct dl_hop *hops, size_t n_hops)
{
    for (size_t i = 0; i < turn->n_hops; i++) {
        const double bytes = turn->left_bytes * turn->hops[i].weight;
        book_link(c, turn->hops[i].link, -bytes);
        if (turn->hops[i].link == c->changing) c->left_on_changing += bytes;
    }
    dl_carried_book(c, hops, n_hops, turn->left_bytes);
    turn->hops = hops;
    turn->n_hops = n_hops;
}

/* ---- links that change ---- */

static struct dl_changed_link *find_changed(const struct dl_carried *c, uint32_t link)
{
    for (size_t i = 0; i < c->n_changed; i++)
        if (c->changed[i].link == link) return &c->changed[i];
    return NULL;
}

static struct dl_changed_link *note_changed(struct dl_carried *c, uint32_t link)
{
    struct dl_changed_link *const known = find_changed(c, link);
    if (known) return known;
    DL_GROW(c->changed, c->n_changed, c->changed_capacity);
    c->changed[c->n_changed] = (struct dl_changed_link){.link = link, .fraction = 1};
    return &c->changed[c->n_changed++];
}

/* While its bandwidth was what it still is, up to when it had carried so many bytes. */
static double busy_since_s(const struct dl_carried *c, const struct dl_changed_link *l, double bytes)
{
    if (l->fraction == 0) return 0;
    return fmax(bytes - l->bytes, 0) / (c->bytes_per_s[l->link] * l->fraction);
}

void dl_carried_begin_change(struct dl_carried *c, uint32_t link)
{
    c->changing = link;
    c->left_on_changing = 0;
    c->booked_on_changing = bytes_on(c, link);
}

void dl_carried_end_change(struct dl_carried *c, double fraction, double now_s)
{
    struct dl_changed_link *const l = note_changed(c, c->changing);
    const double carried = c->booked_on_changing - c->left_on_changing;
    c->changing = no_link;
    l->busy_s += busy_since_s(c, l, carried);
    if (l->fraction == 0 && c->left_on_changing > 0) l->busy_s += now_s - l->since_s;
    l->bytes = carried;
    l->since_s = now_s;
    l->fraction = fraction;
}

/* ---- how long they were busy ---- */

static double busy_s_of(const struct dl_carried *c, uint32_t link)
{
    const struct dl_changed_link *const l = find_changed(c, link);
    if (l) return l->busy_s + busy_since_s(c, l, bytes_on(c, link));
    return bytes_on(c, link) / c->bytes_per_s[link];
}

/* Behind those that are as busy; what is beyond `most` falls out. Returns how many there are then. */
static size_t insert(struct dl_link_load load, struct dl_link_load *out, size_t n, size_t most)
{
    size_t i = n;
    while (i > 0 && out[i - 1].busy_s < load.busy_s) i--;
    if (i == most) return n;
    const size_t n_after = n < most ? n + 1 : most;
    memmove(&out[i + 1], &out[i], (n_after - i - 1) * sizeof *out);
    out[i] = load;
    return n_after;
}

size_t dl_carried_busiest(const struct dl_carried *c, struct dl_link_load *out, size_t most)
{
    const uint32_t n_links = (uint32_t)c->n_links;
    size_t n = 0;
    for (uint32_t first = 0; first < n_links; first += links_of_block)
        for (uint32_t i = first; c->block_is_used[first / links_of_block] && i < first + links_of_block && i < n_links;
             i++) {
            const double busy_s = busy_s_of(c, i);
            if (busy_s > 0) n = insert((struct dl_link_load){i, bytes_on(c, i), busy_s}, out, n, most);
        }
    return n;
}

size_t dl_carried_all(const struct dl_carried *c, struct dl_link_load *out)
{
    size_t n = 0;
    for (uint32_t i = 0; i < c->n_links; i++) {
        const double busy_s = busy_s_of(c, i);
        if (busy_s > 0) out[n++] = (struct dl_link_load){i, bytes_on(c, i), busy_s};
    }
    return n;
}
