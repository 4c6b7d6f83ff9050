/* graphs.c - launches that are recorded once and replayed (CUDA graphs): the host does nothing for each of them.
 *
 * What is recorded must not depend on data. How many tokens an expert gets does, so that the work of experts is left
 * out, unless the software never has to know: then the whole step is one graph. */
#include "strategies/strategies.h"

struct options {
    int64_t scope; /* enum dl_graphs, but for the first */
};
static const struct options defaults = {0};
static const char *const scopes[] = {"outside_experts", "step", NULL};
static const struct dl_field fields[] = {
    {"scope", DL_CHOICE, offsetof(struct options, scope), 0, 0, false, scopes,
     "what is replayed: one graph for each layer without the work of experts, or the whole step"},
};

static enum dl_status claim(const void *options, struct dl_json entry, struct dl_setting *setting, struct dl_error *err)
{
    (void)entry, (void)err;
    const struct options *const o = options;
    setting->graphs = o->scope ? DL_GRAPHS_STEP : DL_GRAPHS_OUTSIDE_EXPERTS;
    return DL_OK;
}

const struct dl_strategy dl_strategy_graphs = {
    .name = "graphs",
    .doc = "kernel launches recorded once and replayed",
    .fields = fields,
    .n_fields = DL_COUNT(fields),
    .options_size = sizeof(struct options),
    .defaults = &defaults,
    .claim = claim,
};
