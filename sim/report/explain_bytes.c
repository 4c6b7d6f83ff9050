/* explain_bytes.c - how long the bytes of a collective move: over the most loaded links, or as fast as kernels can. */
#include <math.h>

#include "sim/report/explain_parts.h"
#include "sim/report/units.h"

/* What a rank sends, if it is what textbooks say of the operation; "": it is not. */
static const char *textbook(const struct dl_told_formula *t, double *bytes)
{
    const struct dl_collective *const c = t->x->collective;
    const bool is_twice = c->op == DL_ALLREDUCE,
               is_once = c->op == DL_ALLGATHER || c->op == DL_REDUCESCATTER || c->op == DL_ALLTOALL;
    const double p = c->group->n, close = 1e-12;
    *bytes = (is_twice ? 2 : 1) * (p - 1) / p * c->bytes;
    if ((!is_twice && !is_once) || fabs(t->x->sent_bytes - *bytes) > close * *bytes) return "";
    return dl_arena_format(t->e->arena, "%s(%s - 1) / %s * %s", is_twice ? "2 * " : "", number(t, p), number(t, p),
                           number(t, c->bytes));
}

/* The textbook's bytes, the share of them that this link carries, and what the protocol adds. */
static const char *bytes_expression(const struct dl_told_formula *t, const struct dl_loaded *load)
{
    const struct dl_pace *const pace = t->x->pace;
    const double fraction = pace->above.bytes > 0 ? 1 : pace->bandwidth_fraction, rounding = 1e-12;
    double sent;
    const char *text = t->x->n_loads == 1 && t->x->n_alphas ? textbook(t, &sent) : "";
    if (!*text)
        return load->n == 1 ? number(t, load->bytes)
                            : dl_arena_format(t->e->arena, "%s * %s", number(t, load->n), number(t, load->bytes));
    const double share = load->n * load->bytes * fraction / sent;
    if (fabs(share - 1) > rounding) text = dl_arena_format(t->e->arena, "%s * %s", text, number(t, share));
    return fraction == 1 ? text : dl_arena_format(t->e->arena, "%s / %s", text, number(t, fraction));
}

static double moving_s(const struct dl_told_formula *t, const struct dl_loaded *load)
{
    return load->n * load->bytes / t->x->of->estimator->bytes_per_s[load->link];
}

static void cite_load(const struct dl_told_formula *t, const struct dl_link *link)
{
    const struct dl_formula_of *const of = t->x->of;
    const char *const kind = of->estimator->topology->link_kinds[link->kind];
    dl_explain_cite_link(t->e, of->system_doc, kind, link->bandwidth_bytes_per_s, "bytes_per_s");
    dl_explain_cite(t->e, dl_told_entry(t, below(t, of->transport_doc, "efficiency"), kind));
    if (t->x->pace->bandwidth_fraction < 1) dl_explain_cite(t->e, below(t, t->protocol, "bandwidth_fraction"));
}

static double tell_load(const struct dl_told_formula *t, const struct dl_loaded *load, const char *words)
{
    const struct dl_estimator *const est = t->x->of->estimator;
    const struct dl_link *const link = &est->topology->links[load->link];
    const double efficiency = est->transport->efficiency[link->kind];
    char name[160], bytes[DL_QUANTITY];
    dl_topology_link_name(est->topology, load->link, name, sizeof name);
    const char *const rate =
        efficiency == 1
            ? number(t, link->bandwidth_bytes_per_s)
            : dl_arena_format(t->e->arena, "(%s * %s)", number(t, link->bandwidth_bytes_per_s), number(t, efficiency));
    const double seconds = dl_tell_term(
        t, "bandwidth", moving_s(t, load),
        dl_arena_format(t->e->arena, "%s %s, which carries %s", words, name, dl_format_bytes(load->bytes, bytes)),
        dl_arena_format(t->e->arena, "%s / %s", bytes_expression(t, load), rate));
    cite_load(t, link);
    return seconds;
}

/* Where it depends on the nodes, the figure of those that the transport was read for. */
static void cite_pump(const struct dl_told_formula *t, double rate)
{
    const char *const kind = dl_transport_device_link(t->x->of->estimator->topology);
    const struct dl_json entry = dl_told_entry(t, below(t, t->family, "pump_bytes_per_s"), kind);
    size_t i = 0;
    while (i < json_array_size(entry.value) && json_number_value(json_array_get(entry.value, i)) != rate) i++;
    dl_explain_cite(t->e, json_is_array(entry.value) ? dl_json_element(entry, i, t->e->arena) : entry);
    dl_explain_cite(t->e, below(t, t->family, "pump_port_fraction"));
}

static const char *pump_expression(const struct dl_told_formula *t, double rate, double drain)
{
    const char *const sent = number(t, t->x->sent_bytes);
    if (drain <= 0) return dl_arena_format(t->e->arena, "%s / %s", sent, number(t, rate));
    return dl_arena_format(t->e->arena, "%s * (1 + %s / %s) / %s", sent, number(t, drain), number(t, t->x->n_steps),
                           number(t, rate));
}

/* The devices' own kernels, where they are slower than the wires: see transport.h. */
static void tell_pump(const struct dl_told_formula *t)
{
    const struct dl_transport *const transport = t->x->of->estimator->transport;
    const double rate = t->figures->pump_bytes_per_s[t->x->collective->algorithm->family];
    const bool drains = t->x->collective->algorithm->fold == DL_FOLD_RING && transport->drain > 0;
    const double drain = drains ? transport->drain / t->x->n_steps : 0;
    const double pumping_s = t->x->sent_bytes * (1 + drain) / rate;
    const double before_s = (t->sums->start_s + t->sums->latency_s) / t->x->of->times;
    const char *const pumped = pump_expression(t, rate, drains ? transport->drain : 0);
    t->sums->moving_s += dl_tell_term(t, "bandwidth", pumping_s,
                                      "the devices' kernels move what a rank sends; the wires would be faster", pumped);
    cite_pump(t, rate);
    if (drains) dl_explain_cite(t->e, below(t, t->x->of->transport_doc, "drain"));
    if (transport->fill <= 0 || before_s <= 0) return;
    t->sums->moving_s += dl_tell_term(
        t, "bandwidth", transport->fill * sqrt(before_s * pumping_s),
        "pieces fill the pipeline: fill x sqrt((start + latency) x that)",
        dl_arena_format(t->e->arena, "%s * sqrt(%s * %s)", number(t, transport->fill), number(t, before_s), pumped));
    dl_explain_cite(t->e, below(t, t->x->of->transport_doc, "fill"));
}

static double rounds_s(const struct dl_told_formula *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->x->n_loads; i++) sum += moving_s(t, &t->x->loads[i]);
    return sum;
}

/* Of several chunks: one through all rounds, and the others at the pace of the longest round; or all of them over the
 * most loaded link of all rounds, if that takes longer. Where ports are held, and in folds, all of them are counted. */
struct chunks {
    struct dl_loaded others, all;
    bool is_link_bound;
    double seconds;
};

static struct chunks chunks_of(const struct dl_told_formula *t)
{
    const bool has_all = t->x->pace->holds_ports || dl_estimates_by_fold(t->x->of->estimator, t->x->collective);
    const double n = has_all ? 1 : t->x->collective->chunks;
    struct chunks c = {.others = t->x->longest, .all = t->x->busiest};
    c.others.n = n - 1;
    c.all.n = n;
    const double behind_s = rounds_s(t) + moving_s(t, &c.others), link_s = moving_s(t, &c.all);
    c.is_link_bound = n > 1 && link_s > behind_s;
    c.seconds = c.is_link_bound ? link_s : behind_s;
    return c;
}

static void tell_rounds(const struct dl_told_formula *t, const struct chunks *c)
{
    if (c->is_link_bound) {
        t->sums->moving_s += tell_load(t, &c->all, "chunk after chunk over the most loaded link of all rounds,");
        return;
    }
    for (size_t i = 0; i < t->x->n_loads; i++)
        t->sums->moving_s += tell_load(t, &t->x->loads[i], "over the most loaded link");
    if (c->others.n > 0 && c->others.bytes > 0)
        t->sums->moving_s +=
            tell_load(t, &c->others, "the other chunks follow over the most loaded link of the longest round,");
}

void dl_tell_moves(const struct dl_told_formula *t)
{
    const struct chunks c = chunks_of(t);
    if (t->x->pace->pump_s > c.seconds)
        tell_pump(t);
    else
        tell_rounds(t, &c);
}
