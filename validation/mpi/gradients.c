/* gradients.c - a second way to the gradients: the loss with one parameter a little more and a little less. On one
 * rank; the others' losses then tell that theirs are the same. */
#include <math.h>
#include <stdio.h>

#include "validation/mpi/train.h"

static double loss_with(struct dl_train *t, dl_real *value, dl_real changed)
{
    const dl_real before = *value;
    *value = changed;
    dl_train_items(t);
    *value = before;
    return t->loss;
}

/* The difference from that gradient over the size of both, for one parameter. */
static double error_at(struct dl_train *t, const struct dl_unit *u, size_t i, double gradient)
{
    /* Rounding leaves about 1e-10 in the slope, so what is far below 1e-5 counts as nothing. */
    const double step = 1e-5, nothing = 1e-5;
    const double more = loss_with(t, &u->values[i], u->values[i] + (dl_real)step);
    const double less = loss_with(t, &u->values[i], u->values[i] - (dl_real)step);
    const double slope = (more - less) / (2 * step);
    return fabs(slope - gradient) / (fabs(slope) + fabs(gradient) + nothing);
}

static double check_unit(struct dl_train *t, const struct dl_unit *u)
{
    enum { n_checked = 4 };
    double gradient[n_checked], most = 0;
    size_t at[n_checked];
    for (size_t i = 0; i < n_checked; i++) {
        at[i] = (size_t)(dl_mix(u->id * n_checked + i) % u->n_parameters);
        gradient[i] = (double)u->gradients[at[i]];
    }
    for (size_t i = 0; i < n_checked; i++) {
        const double error = error_at(t, u, at[i], gradient[i]);
        most = error <= most ? most : error; /* NaN stays */
    }
    return most;
}

double dl_check_gradients(struct dl_train *t)
{
    double most = 0;
    for (uint32_t i = 0; i < t->n_stage_layers; i++)
        for (size_t j = 0; j < t->stage_layers[i]->n_units; j++) {
            const struct dl_unit *const u = &t->stage_layers[i]->units[j];
            if (!u->n_parameters) continue;
            dl_train_items(t); /* those of before are those of changed parameters */
            const double error = check_unit(t, u);
            if (!(error <= most)) most = error;
        }
    return most;
}
