#include "sim/report/explain_formula.h"

#include <math.h>
#include <string.h>

#include "sim/report/explain_parts.h"

static const char *const families[DL_N_FAMILIES] = {"peer", "tree", "switch"};
static const char *const reach_keys[DL_N_REACHES] = {"direct_s", "pcie_s", "network_s"};
static const char *const reach_words[DL_N_REACHES] = {"in the node", "over PCIe", "over the network"};

static struct dl_json find_protocol(const struct dl_told_formula *t)
{
    const struct dl_json list = below(t, t->x->of->transport_doc, "protocols");
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        const struct dl_json one = dl_json_element(list, i, t->e->arena);
        const char *const name = json_string_value(json_object_get(one.value, "name"));
        if (name && strcmp(name, t->x->pace->protocol) == 0) return one;
    }
    return (struct dl_json){0};
}

static const struct dl_protocol *find_figures(const struct dl_told_formula *t)
{
    const struct dl_transport *const transport = t->x->of->estimator->transport;
    size_t i = 0;
    while (strcmp(transport->protocols[i].name, t->x->pace->protocol)) i++;
    return &transport->protocols[i];
}

struct dl_json dl_told_entry(const struct dl_told_formula *t, struct dl_json table, const char *kind)
{
    const struct dl_json entry = kind ? below(t, table, kind) : (struct dl_json){0};
    return entry.value ? entry : below(t, table, "*");
}

double dl_tell_term(const struct dl_told_formula *t, const char *part, double seconds, const char *what,
                    const char *expression)
{
    const struct dl_formula_of *const of = t->x->of;
    const char *const times = of->times_words ? of->times_words : number(t, of->times);
    if (of->times != 1) expression = dl_arena_format(t->e->arena, "%s * (%s)", times, expression);
    if (of->subject) what = dl_arena_format(t->e->arena, "%s: %s", of->subject, what);
    dl_explain_term(t->e, of->part ? of->part : part, of->times * seconds, what, expression);
    return of->times * seconds;
}

static void tell_start(const struct dl_told_formula *t)
{
    const double start_s = t->x->pace->start_s;
    if (start_s <= 0) return;
    t->sums->start_s = dl_tell_term(t, "start", start_s, "of the software, once", number(t, start_s));
    dl_explain_cite(t->e, below(t, t->family, "start_s"));
}

static void cite_alpha(const struct dl_told_formula *t, const struct dl_alpha *a, const struct dl_route *route)
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
        dl_explain_cite(t->e,
                        dl_told_entry(t, below(t, t->protocol, "network_s"), dl_transport_network_link(topology)));
    for (size_t i = 0; a->wire_s > 0 && i < route->n_hops; i++) {
        const struct dl_link *const link = &topology->links[route->hops[i].link];
        dl_explain_cite_link(t->e, of->system_doc, topology->link_kinds[link->kind], link->latency_s, "latency_s");
    }
}

static double count_steps(const struct dl_told_formula *t)
{
    double n = 0;
    for (size_t i = 0; i < t->x->n_alphas; i++) n += t->x->alphas[i].n;
    return n;
}

static const char *alpha_words(const struct dl_told_formula *t, const struct dl_alpha *a)
{
    if (dl_fold_kind(t->x->collective) == DL_FOLD_SWITCH) return "up to the switches, which add, and down again";
    if (a->is_mean)
        return dl_arena_format(t->e->arena, "%s of %s steps, the mean of the hops that a piece meets", number(t, a->n),
                               number(t, count_steps(t)));
    return dl_arena_format(t->e->arena, "%s of %s steps, a message %s%s", number(t, a->n), number(t, count_steps(t)),
                           reach_words[a->reach], a->is_above ? " above the protocol's limit" : "");
}

/* The software's for this reach, what this machine's network adds to it, and the links' own. */
static const char *alpha_expression(const struct dl_told_formula *t, const struct dl_alpha *a)
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

static void tell_alpha(const struct dl_told_formula *t, const struct dl_alpha *a, struct dl_route *route)
{
    struct dl_error no_way = {0};
    if (a->seconds <= 0) return;
    t->sums->latency_s +=
        dl_tell_term(t, "latency", a->n * a->seconds, alpha_words(t, a),
                     dl_arena_format(t->e->arena, "%s * %s", number(t, a->n), alpha_expression(t, a)));
    if (a->from != a->to) dl_topology_route(t->x->of->estimator->topology, a->from, a->to, 0, NULL, route, &no_way);
    cite_alpha(t, a, route);
}

static void tell_work(const struct dl_told_formula *t, double bytes, double s_per_byte, const char *key,
                      const char *words)
{
    if (bytes <= 0 || s_per_byte <= 0) return;
    t->sums->reduction_s +=
        dl_tell_term(t, "reduction", bytes * s_per_byte, words,
                     dl_arena_format(t->e->arena, "%s * %s", number(t, bytes), number(t, s_per_byte)));
    dl_explain_cite(t->e, below(t, t->x->of->transport_doc, key));
}

static void tell(const struct dl_counted *x, struct dl_explanation *e, struct dl_formula_sums *sums)
{
    struct dl_told_formula t = {.e = e, .x = x, .sums = sums};
    struct dl_route route = {0};
    t.protocol = find_protocol(&t);
    t.family = below(&t, t.protocol, families[x->collective->algorithm->family]);
    t.figures = find_figures(&t);
    tell_start(&t);
    for (size_t i = 0; i < x->n_alphas; i++) tell_alpha(&t, &x->alphas[i], &route);
    dl_tell_moves(&t);
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
