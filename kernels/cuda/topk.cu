/* topk.cu - the k numbers of largest magnitude, read once.
 *
 * A sample tells where the k-th is likely to lie (`choose_cut`). All that is above the cut is collected and counted by
 * its distance from it, and of what is equal to it as many as could be wanted, k (`filter`): numbers of few bits have
 * many equals. If the k-th is one of those, all above the cut and some of those are the result. Else the counts tell in
 * which bin it is (`finish`): all in the bins above are taken, and those in it are sorted out by one block. If there
 * are too many for that, the k-th is found digit by digit (radix selection) among what was collected; and if the sample
 * misled, and there were too few or too many to hold, among all numbers. */
#include "kernels/cuda/topk_filter.h"
#include "kernels/cuda/topk_finish.h"

using namespace dl_topk;

/* A sample stands for many numbers where k is small. */
static unsigned most_above(const int64_t *d, enum dl_float f)
{
    const sampling sample(d, dl_pack_bytes / (int)dl_float_bytes(f));
    const int64_t stands_for = dl_ceil_div(d[count], sample_threads * sample.each);
    const int64_t wanted = 2 * d[k] + 4 * sample.rank * stands_for;
    return (unsigned)(wanted < d[count] ? wanted : d[count]);
}

/* Of the level: those that could be wanted, and later those that are sorted out. */
static unsigned most_of_level(const int64_t *d) { return (unsigned)(d[k] > most_sorted ? d[k] : most_sorted); }

static size_t workspace_bytes(const int64_t *d, enum dl_float f)
{
    return sizeof(struct state) + ((size_t)most_above(d, f) + most_of_level(d)) * sizeof(struct found);
}

/* All blocks at once, because they wait for each other. */
template <class T> static void launch_finish(search s, const T *x, T *value, int32_t *index)
{
    int blocks = 0;
    void *arguments[] = {&s, &x, &value, &index};
    DL_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, finish<T>, dl_block, 0));
    DL_CUDA(cudaLaunchCooperativeKernel(finish<T>, dim3((unsigned)(blocks < 4 ? blocks : 4) * (unsigned)dl_cuda.units),
                                        dim3(dl_block), arguments, 0, dl_cuda.stream));
}

template <class T> static void topk_as(const struct dl_call *call)
{
    const int64_t *const d = call->dim;
    const T *const x = (const T *)call->tensor[0];
    struct state *const state = (struct state *)call->workspace;
    struct found *const above = (struct found *)(state + 1);
    const unsigned most = most_above(d, call->precision);
    const search s = {state, above, above + most, most, d[count], d[k]};
    choose_cut<<<1, sample_threads, 0, dl_cuda.stream>>>(s, x, sampling(d, dl_length<T>));
    DL_LAUNCHED(choose_cut);
    const int64_t blocks = dl_ceil_div(d[count], (int64_t)warps * chunk_packs * dl_length<T>);
    const int64_t most_blocks = filter_blocks * (int64_t)dl_cuda.units;
    filter<<<(unsigned)(blocks < most_blocks ? blocks : most_blocks), dl_block, 0, dl_cuda.stream>>>(s, x);
    DL_LAUNCHED(filter);
    launch_finish(s, x, (T *)call->tensor[1], (int32_t *)call->tensor[2]);
}
DL_BY_PRECISION(topk)

/* Places are 32 bits wide. */
static bool can(const int64_t *d, enum dl_float) { return d[count] <= INT32_MAX; }

const struct dl_routine dl_cuda_topks[] = {
    {DL_KERNEL("topk", "forward", topk), .workspace_bytes = workspace_bytes, .can = can},
    {},
};
