/* models.c - the only list of models that are trained, and the data they are trained on: made, not read. */
#include "validation/mpi/models/models.h"

#include <gsl/gsl_randist.h>
#include <string.h>

#include "sim/core/random.h"

static const struct dl_model_kind *const kinds[] = {&dl_model_mlp, &dl_model_transformer, &dl_model_convnet};

const struct dl_model_kind *dl_find_model(const char *name)
{
    for (size_t i = 0; i < DL_COUNT(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0) return kinds[i];
    return NULL;
}

bool dl_is_here(const struct dl_train *t, size_t layer)
{
    for (uint32_t chunk = 0; chunk < t->s->chunks; chunk++) {
        const struct dl_position *const p = dl_position_of(t, chunk);
        if (layer >= p->first_layer && layer < p->end_layer) return true;
    }
    return false;
}

static void add_gaussian(const struct dl_train *t, const char *purpose, uint64_t index, double sigma, dl_real *values)
{
    gsl_rng *const rng = dl_random_new(t->options->seed, purpose, index);
    for (size_t i = 0; i < t->sample_inputs; i++) values[i] += (dl_real)gsl_ran_gaussian(rng, sigma);
    gsl_rng_free(rng);
}

void dl_sample_class(const struct dl_train *t, uint64_t sample, dl_real *input, uint32_t *target)
{
    const double noise = 1;
    *target = (uint32_t)(dl_mix(sample ^ dl_mix(t->options->seed)) % t->n_classes);
    memset(input, 0, t->sample_inputs * sizeof *input);
    add_gaussian(t, "class", *target, 1, input);
    add_gaussian(t, "sample", sample, noise, input);
}

void dl_sample_tokens(const struct dl_train *t, uint64_t sample, dl_real *input, uint32_t *target)
{
    const uint64_t factor = 5, step = 3; /* of the rule that is to be learned */
    const double regular = 0.9;          /* tokens that keep to it */
    gsl_rng *const rng = dl_random_new(t->options->seed, "tokens", sample);
    uint64_t token = gsl_rng_uniform_int(rng, t->n_classes);
    for (size_t i = 0; i < t->rows_per_sample; i++) {
        input[i] = (dl_real)token;
        const uint64_t other = gsl_rng_uniform_int(rng, t->n_classes);
        token = gsl_rng_uniform(rng) < regular ? (factor * token + step) % t->n_classes : other;
        target[i] = (uint32_t)token;
    }
    gsl_rng_free(rng);
}
