/* recompute_modules.c - parts of blocks that are recomputed for themselves, by Megatron-Core's names. */
#include "strategies/name_sets.h"
#include "strategies/recompute.h"

static const dl_module_set core_attention = 1 << DL_MODULE_CORE_ATTENTION;
static const dl_module_set of_experts = 1 << DL_MODULE_EXPERT_ACTIVATION | 1 << DL_MODULE_SHARED_EXPERTS;

enum { n_names = DL_N_MODULES - 1 }; /* the first is none */

enum dl_status dl_recompute_modules_read(struct dl_json list, dl_module_set *modules, struct dl_error *err)
{
    *modules = core_attention;
    if (!list.value) return DL_OK;
    if (dl_name_set_read(list, dl_modules, n_names, modules, err)) return err->status;
    if (!*modules)
        return dl_fail(err, DL_RANGE, list.where, "must name a part of a block: \"none\" recomputes nothing");
    *modules <<= 1;
    if (*modules >> DL_MODULE_EXPERTS & 1) *modules |= of_experts;
    return DL_OK;
}

void dl_recompute_modules_print(dl_module_set modules, char *out, size_t room)
{
    dl_name_set_print(modules >> 1, dl_modules, n_names, out, room);
}

uint32_t dl_recompute_of_model(const struct dl_model *m, unsigned (*part_of)(const struct dl_kernel *))
{
    uint32_t all = 0;
    for (size_t i = 0; i < m->n_layers; i++)
        for (size_t j = 0; j < m->layers[i].n_forward; j++) all |= 1U << part_of(&m->layers[i].forward[j].kernel);
    return all & ~1U;
}

static unsigned module_of(const struct dl_kernel *k) { return k->module; }

enum dl_status dl_recompute_modules_check(const struct dl_recomputation *how, const struct dl_check *what,
                                          struct dl_error *err)
{
    const dl_module_set there = dl_recompute_of_model(what->model, module_of), named = what->setting->recompute_modules;
    if (!how->modules.value && !(there & core_attention))
        return dl_fail(err, DL_IMPOSSIBLE, what->where,
                       "%s has no attention, which is what selective recomputation does again; full or none would do",
                       what->model->name);
    const bool all_of_experts = named >> DL_MODULE_EXPERTS & 1; /* whatever parts these have */
    const dl_module_set missing = named & ~there & ~(all_of_experts ? of_experts : 0);
    if (!missing) return DL_OK;
    char lacked[120], has[120];
    dl_recompute_modules_print(missing, lacked, sizeof lacked);
    dl_recompute_modules_print(there, has, sizeof has);
    return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "modules"), "%s has no %s; it has %s", what->model->name,
                   lacked, *has ? has : "no such parts");
}
