/* routing.c - how far a token must travel for its experts: closed forms for an even choice among them. */
#include <gsl/gsl_randist.h>
#include <math.h>

#include "workloads/workload.h"

/* That all of `chosen` different ones are among the others, if so many of `all` are meant. */
static double chance_of_none(double all, double meant, double chosen)
{
    double chance = 1;
    for (double i = 0; i < chosen; i++) chance *= fmax(all - meant - i, 0) / (all - i);
    return chance;
}

/* A part that lies in one group is out of reach if that was not chosen. */
static double visits_inside(const struct dl_routing *r, double parts)
{
    const double in_reach = r->experts * r->top_groups / r->groups, part = r->experts / parts;
    return parts * r->top_groups / r->groups * (1 - chance_of_none(in_reach, part, r->top_k));
}

/* Of `whole` groups in a part any number may have been chosen. */
static double chance_of_groups(const struct dl_routing *r, double whole)
{
    const unsigned mine = (unsigned)whole, others = (unsigned)r->groups - mine, chosen = (unsigned)r->top_groups;
    const double in_reach = r->experts * r->top_groups / r->groups;
    double chance = 0;
    for (unsigned n = 0; n <= mine && n <= chosen; n++)
        chance += gsl_ran_hypergeometric_pdf(n, mine, others, chosen) *
                  (1 - chance_of_none(in_reach, n * r->experts / r->groups, r->top_k));
    return chance;
}

double dl_routing_visits(const struct dl_routing *r, double parts)
{
    const double in_part = r->groups / parts, whole = floor(in_part), rest = in_part - whole;
    if (in_part <= 1) return visits_inside(r, parts);
    const double more = rest > 0 ? chance_of_groups(r, whole + 1) : 0; /* no whole number: between its neighbours */
    return parts * ((1 - rest) * chance_of_groups(r, whole) + rest * more);
}
