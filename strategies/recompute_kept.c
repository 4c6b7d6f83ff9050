/* recompute_kept.c - results that a block keeps though all else of it is done again: those that are named, or op by op.
 *
 * torchtitan (distributed/activation_checkpoint.py, selective_ac_option "op") saves results of attention, of sums over
 * tensor ranks, and of every other GEMM, the first of a block among them. Products of experts and of routers are not
 * on its list. */
#include "strategies/name_sets.h"
#include "strategies/recompute.h"

enum { n_names = DL_N_RESULTS - 1 }; /* the first is none */

enum dl_status dl_recompute_results_read(struct dl_json list, uint32_t *results, struct dl_error *err)
{
    if (dl_name_set_read(list, dl_results, n_names, results, err)) return err->status;
    *results <<= 1;
    return DL_OK;
}

void dl_recompute_results_print(uint32_t results, char *out, size_t room)
{
    dl_name_set_print(results >> 1, dl_results, n_names, out, room);
}

static unsigned result_of(const struct dl_kernel *k) { return k->result; }

enum dl_status dl_recompute_results_check(const struct dl_check *what, struct dl_error *err)
{
    const uint32_t missing = what->setting->kept_results & ~dl_recompute_of_model(what->model, result_of);
    char lacked[60];
    if (!missing) return DL_OK;
    dl_recompute_results_print(missing, lacked, sizeof lacked);
    return dl_fail(err, DL_IMPOSSIBLE, dl_check_place(what, "kept_results"), "no block of %s has %s", what->model->name,
                   lacked);
}

static bool is_counted(const struct dl_kernel *k)
{
    return k->kind == DL_KERNEL_GEMM && k->module != DL_MODULE_CORE_ATTENTION && !k->stays_wide &&
           !dl_kernel_is_of_experts(k);
}

static bool is_odd(const struct dl_layer *layer, size_t index)
{
    size_t n_before = 0;
    for (size_t i = 0; i < index; i++) n_before += is_counted(&layer->forward[i].kernel);
    return n_before % 2 == 0;
}

static bool is_summed(const struct dl_setting *s, const struct dl_work *work)
{
    return work->leaves > 0 && dl_ranks_count(&s->ranks, DL_ALONG_X | DL_ALONG_Y | DL_ALONG_Z) > 1;
}

bool dl_recompute_keeps(const struct dl_recomputation *how, const struct dl_setting *s, const struct dl_layer *layer,
                        size_t index)
{
    const struct dl_work *const work = &layer->forward[index];
    if (index >= dl_recompute_count(s, layer)) return false;
    if (s->kept_results >> work->kernel.result & 1) return true;
    if (how->keeps == DL_KEEPS_INPUT) return false;
    if (work->kernel.kind == DL_KERNEL_ATTENTION) return true;
    return is_counted(&work->kernel) && (is_odd(layer, index) || is_summed(s, work));
}

static double results_of(const struct dl_kernel *k)
{
    return k->batch * k->m * (k->kind == DL_KERNEL_ATTENTION ? k->k : k->n);
}

struct dl_saves dl_recompute_kept(const struct dl_recomputation *how, const struct dl_setting *s,
                                  const struct dl_layer *layer)
{
    struct dl_saves kept = {0};
    for (size_t i = 0; i < layer->n_forward; i++) {
        const struct dl_kernel *const k = &layer->forward[i].kernel;
        if (!dl_recompute_keeps(how, s, layer, i)) continue;
        const bool is_cut = (k->by.batch | k->by.n) & DL_BY_INNER;
        *(is_cut ? &kept.inside_bytes : &kept.outside_bytes) += results_of(k) * dl_precision_bytes(s->precision);
    }
    return kept;
}
