#include "strategies/layout.h"

dl_digits dl_layout_cuts(const struct dl_layout *layout, dl_dimensions of)
{
    dl_digits digits = 0;
    for (int d = 0; d < DL_N_DIMENSIONS && of >> d; d++)
        if (of >> d & 1) digits |= layout->cut[d];
    return digits;
}

uint32_t dl_layout_parts(const struct dl_layout *layout, dl_dimensions of, const struct dl_ranks *ranks)
{
    return dl_ranks_count(ranks, dl_layout_cuts(layout, of));
}

struct dl_layout dl_layout_operand(const struct dl_layout *work, dl_dimensions of)
{
    struct dl_layout operand = {.partial = 0};
    for (int d = 0; d < DL_N_DIMENSIONS; d++)
        if (of >> d & 1) operand.cut[d] = work->cut[d];
    return operand;
}

struct dl_layout dl_layout_result(const struct dl_layout *work, dl_dimensions of)
{
    struct dl_layout result = dl_layout_operand(work, of);
    result.partial = dl_layout_cuts(work, ~of);
    return result;
}

struct dl_layout dl_layout_gradient(const struct dl_layout *used, dl_digits among)
{
    struct dl_layout gradient = *used;
    gradient.partial = among & ~dl_layout_cuts(used, ~(dl_dimensions)0);
    return gradient;
}
