#include "sim/report/explain_formula.h"

#include <math.h>
#include <string.h>

#include "sim/report/explain_parts.h"
#include "sim/report/units.h"

static const char *const families[DL_N_FAMILIES] = {"peer", "tree", "switch"};
static const char *const reach_keys[DL_N_REACHES] = {"direct_s", "pcie_s", "network_s"};
static const char *const reach_words[DL_N_REACHES] = {"in the node", "over PCIe", "over the network"};

struct told {
    struct dl_explanation *e;
    const struct dl_counted *x;
    struct dl_json protocol, family; /* of the transport file */
    const struct dl_protocol *figures;
    struct dl_formula_sums *sums;
};

static struct dl_json below(const struct told *t, struct dl_json object, const char *key)
{
    return dl_json_member(object, key, t->e->arena);
}

static struct dl_json find_protocol(const struct told *t)
{
    const struct dl_json list = below(t, t->x->of->transport_doc, "protocols");
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const struct dl_json one = dl_json_element(list, i, t->e->arena);
        const char *const name = json_string_value(json_object_get(one.value, "name"));
        if (name && strcmp(name, t->x->pace->protocol) == 0) return one;
    }
    return (struct dl_json){0};
}

static const struct dl_protocol *find_figures(const struct told *t)
{
    const struct dl_transport *const transport = t->x->of->estimator->transport;
    size_t i = 0;
    while (strcmp(transport->protocols[i].name, t->x->pace->protocol)) i++;
    return &transport->protocols[i];
}

/* A table by kind of link, {"nvlink3": x, "*": y}. */
static struct dl_json entry_for(const struct told *t, struct dl_json table, const char *kind)
{
    const struct dl_json entry = kind ? below(t, table, kind) : (struct dl_json){0};
    return entry.value ? entry : below(t, table, "*");
}

/* ---- terms ---- */

static const char *number(const struct told *t, double x) { return dl_explain_number(t->e, x); }

/* Of one collective; it comes so many times. */
static double add(const struct told *t, const char *part, double seconds, const char *what, const char *expression)
{
    const struct dl_formula_of *const of = t->x->of;
    const char *const times = of->times_words ? of->times_words : number(t, of->times);
    if (of->times != 1) expression = dl_arena_format(t->e->arena, "%s * (%s)", times, expression);
    if (of->subject) what = dl_arena_format(t->e->arena, "%s: %s", of->subject, what);
    dl_explain_term(t->e, of->part ? of->part : part, of->times * seconds, what, expression);
    return of->times * seconds;
}

static void tell_start(const struct told *t)
{
    const double start_s = t->x->pace->start_s;
    if (start_s <= 0) return;
    t->sums->start_s = add(t, "start", start_s, "of the software, once", number(t, start_s));
    dl_explain_cite(t->e, below(t, t->family, "start_s"));
}

static void cite_alpha(const struct told *t, const struct dl_alpha *a, const struct dl_route *route)
{
    const struct dl_formula_of *const of = t->x->of;
    const struct dl_topology *const topology = of->estimator->topology;
    if (dl_fold_kind(t->x->collective) == DL_FOLD_SWITCH) {
        for (int i = 0; i < DL_N_REACHES; i++) dl_explain_cite(t->e, below(t, t->family, reach_keys[i]));
        return;
    }
    const struct dl_json from = a->is_above ? below(t, t->protocol, "above") : t->family;
    dl_explain_cite(t->e, below(t, from, reach_keys[a->reach]));
    if (a->reach == DL_REACH_NETWORK)
        dl_explain_cite(t->e, entry_for(t, below(t, t->protocol, "network_s"), dl_transport_network_link(topology)));
    for (size_t i = 0; a->wire_s > 0 && i < route->n_hops; i++) {
        const struct dl_link *const link = &topology->links[route->hops[i].link];
        dl_explain_cite_link(t->e, of->system_doc, topology->link_kinds[link->kind], link->latency_s, "latency_s");
    }
}

static double count_steps(const struct told *t)
{
    double n = 0;
    for (size_t i = 0; i < t->x->n_alphas; i++) n += t->x->alphas[i].n;
    return n;
}

static const char *alpha_words(const struct told *t, const struct dl_alpha *a)
{
    if (dl_fold_kind(t->x->collective) == DL_FOLD_SWITCH) return "up to the switches, which add, and down again";
    if (a->is_mean)
        return dl_arena_format(t->e->arena, "%s of %s steps, the mean of the hops that a piece meets", number(t, a->n),
                               number(t, count_steps(t)));
    return dl_arena_format(t->e->arena, "%s of %s steps, a message %s%s", number(t, a->n), number(t, count_steps(t)),
                           reach_words[a->reach], a->is_above ? " above the protocol's limit" : "");
}

/* The software's for this reach, what this machine's network adds to it, and the links' own. */
static const char *alpha_expression(const struct told *t, const struct dl_alpha *a)
{
    const double software_s = a->seconds - a->wire_s;
    const double network_s = a->reach == DL_REACH_NETWORK ? t->figures->network_s : 0;
    const double parts[] = {software_s - network_s, network_s, a->wire_s};
    const char *sum = NULL;
    size_t n = 0;
    if (a->is_mean) return number(t, a->seconds);
    for (size_t i = 0; i < DL_COUNT(parts); i++) {
        if (parts[i] <= 0) continue;
        sum = n++ ? dl_arena_format(t->e->arena, "%s + %s", sum, number(t, parts[i])) : number(t, parts[i]);
    }
    return n > 1 ? dl_arena_format(t->e->arena, "(%s)", sum) : sum;
}

static void tell_alpha(const struct told *t, const struct dl_alpha *a, struct dl_route *route)
{
    struct dl_error no_way = {0};
    if (a->seconds <= 0) return;
    t->sums->latency_s += add(t, "latency", a->n * a->seconds, alpha_words(t, a),
                              dl_arena_format(t->e->arena, "%s * %s", number(t, a->n), alpha_expression(t, a)));
    if (a->from != a->to) dl_topology_route(t->x->of->estimator->topology, a->from, a->to, 0, NULL, route, &no_way);
    cite_alpha(t, a, route);
}

/* ---- bytes ---- */

/* What a rank sends, if it is what textbooks say of the operation; "": it is not. */
static const char *textbook(const struct told *t, double *bytes)
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
static const char *bytes_expression(const struct told *t, const struct dl_loaded *load)
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

static double moving_s(const struct told *t, const struct dl_loaded *load)
{
    return load->n * load->bytes / t->x->of->estimator->bytes_per_s[load->link];
}

static void cite_load(const struct told *t, const struct dl_link *link)
{
    const struct dl_formula_of *const of = t->x->of;
    const char *const kind = of->estimator->topology->link_kinds[link->kind];
    dl_explain_cite_link(t->e, of->system_doc, kind, link->bandwidth_bytes_per_s, "bytes_per_s");
    dl_explain_cite(t->e, entry_for(t, below(t, of->transport_doc, "efficiency"), kind));
    if (t->x->pace->bandwidth_fraction < 1) dl_explain_cite(t->e, below(t, t->protocol, "bandwidth_fraction"));
}

static double tell_load(const struct told *t, const struct dl_loaded *load, const char *words)
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
    const double seconds =
        add(t, "bandwidth", moving_s(t, load),
            dl_arena_format(t->e->arena, "%s %s, which carries %s", words, name, dl_format_bytes(load->bytes, bytes)),
            dl_arena_format(t->e->arena, "%s / %s", bytes_expression(t, load), rate));
    cite_load(t, link);
    return seconds;
}

/* Where it depends on the nodes, the figure of those that the transport was read for. */
static void cite_pump(const struct told *t, double rate)
{
    const char *const kind = dl_transport_device_link(t->x->of->estimator->topology);
    const struct dl_json entry = entry_for(t, below(t, t->family, "pump_bytes_per_s"), kind);
    size_t i = 0;
    while (i < json_array_size(entry.value) && json_number_value(json_array_get(entry.value, i)) != rate) i++;
    dl_explain_cite(t->e, json_is_array(entry.value) ? dl_json_element(entry, i, t->e->arena) : entry);
    dl_explain_cite(t->e, below(t, t->family, "pump_port_fraction"));
}

/* The devices' own kernels, where they are slower than the wires: see transport.h. */
static void tell_pump(const struct told *t)
{
    const struct dl_transport *const transport = t->x->of->estimator->transport;
    const double rate = t->figures->pump_bytes_per_s[t->x->collective->algorithm->family];
    const bool drains = t->x->collective->algorithm->fold == DL_FOLD_RING && transport->drain > 0;
    const double drain = drains ? transport->drain / t->x->n_steps : 0,
                 pumping_s = t->x->sent_bytes * (1 + drain) / rate;
    const double before_s = (t->sums->start_s + t->sums->latency_s) / t->x->of->times;
    const char *const sent = number(t, t->x->sent_bytes), *const pumped =
                                                              drains ? dl_arena_format(
                                                                           t->e->arena, "%s * (1 + %s / %s) / %s", sent,
                                                                           number(t, transport->drain),
                                                                           number(t, t->x->n_steps), number(t, rate))
                                                                     : dl_arena_format(t->e->arena, "%s / %s", sent,
                                                                                       number(t, rate));
    t->sums->moving_s += add(t, "bandwidth", pumping_s,
                             "the devices' kernels move what a rank sends; the wires would be faster", pumped);
    cite_pump(t, rate);
    if (drains) dl_explain_cite(t->e, below(t, t->x->of->transport_doc, "drain"));
    if (transport->fill <= 0 || before_s <= 0) return;
    t->sums->moving_s += add(
        t, "bandwidth", transport->fill * sqrt(before_s * pumping_s),
        "pieces fill the pipeline: fill x sqrt((start + latency) x that)",
        dl_arena_format(t->e->arena, "%s * sqrt(%s * %s)", number(t, transport->fill), number(t, before_s), pumped));
    dl_explain_cite(t->e, below(t, t->x->of->transport_doc, "fill"));
}

static double rounds_s(const struct told *t)
{
    double sum = 0;
    for (size_t i = 0; i < t->x->n_loads; i++) sum += moving_s(t, &t->x->loads[i]);
    return sum;
}

/* Of several chunks: one through all rounds, and the others at the pace of the longest round; or all of them over the
 * most loaded link of all rounds, if that takes longer. Where ports are held all of them are in the rounds. */
struct chunks {
    struct dl_loaded others, all;
    bool is_link_bound;
    double seconds;
};

static struct chunks chunks_of(const struct told *t)
{
    const double n = t->x->pace->holds_ports ? 1 : t->x->collective->chunks;
    struct chunks c = {.others = t->x->longest, .all = t->x->busiest};
    c.others.n = n - 1;
    c.all.n = n;
    const double behind_s = rounds_s(t) + moving_s(t, &c.others), link_s = moving_s(t, &c.all);
    c.is_link_bound = n > 1 && link_s > behind_s;
    c.seconds = c.is_link_bound ? link_s : behind_s;
    return c;
}

static void tell_rounds(const struct told *t, const struct chunks *c)
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

static void tell_moves(const struct told *t)
{
    const struct chunks c = chunks_of(t);
    if (t->x->pace->pump_s > c.seconds)
        tell_pump(t);
    else
        tell_rounds(t, &c);
}

static void tell_work(const struct told *t, double bytes, double s_per_byte, const char *key, const char *words)
{
    if (bytes <= 0 || s_per_byte <= 0) return;
    t->sums->reduction_s += add(t, "reduction", bytes * s_per_byte, words,
                                dl_arena_format(t->e->arena, "%s * %s", number(t, bytes), number(t, s_per_byte)));
    dl_explain_cite(t->e, below(t, t->x->of->transport_doc, key));
}

static void tell(const struct dl_counted *x, struct dl_explanation *e, struct dl_formula_sums *sums)
{
    struct told t = {.e = e, .x = x, .sums = sums};
    struct dl_route route = {0};
    t.protocol = find_protocol(&t);
    t.family = below(&t, t.protocol, families[x->collective->algorithm->family]);
    t.figures = find_figures(&t);
    tell_start(&t);
    for (size_t i = 0; i < x->n_alphas; i++) tell_alpha(&t, &x->alphas[i], &route);
    tell_moves(&t);
    tell_work(&t, x->added_bytes, x->pace->reduction_s_per_byte, "reduction_s_per_byte", "what a rank adds");
    tell_work(&t, x->packed_bytes, x->pace->pack_s_per_byte, "pack_s_per_byte", "what a rank packs and unpacks");
    dl_route_release(&route);
}

enum dl_status dl_explain_formula(struct dl_explanation *e, const struct dl_formula_of *of,
                                  struct dl_formula_sums *sums, struct dl_error *err)
{
    const struct dl_collective *const c = &of->choice->collective;
    struct dl_counted x = {.of = of, .collective = c, .pace = &of->choice->estimate.pace, .err = err};
    *sums = (struct dl_formula_sums){0};
    if (c->group->n > 1 && dl_estimates_by_fold(of->estimator, c))
        dl_count_fold(&x);
    else if (c->group->n > 1)
        dl_count_rounds(&x);
    if (!err->status) tell(&x, e, sums);
    dl_route_release(&x.route);
    dl_free(x.alphas);
    dl_free(x.loads);
    return err->status;
}
