"""Times on one GPU how Megatron-Core without moe_permute_fusion moves tokens to the places of experts and back, in bf16.

    python3 kernels/torch/expert_moves.py OUT.json

Own code with the operations of Megatron-LM, core/transformer/moe/moe_utils.py: rows are taken by index_select; what comes
back is multiplied by the weight of its row and added up by scatter_add. Seconds of the device and kernels of a call.
"""
import json
import sys

import torch
from torch.profiler import ProfilerActivity, profile

BF16, CALLS = torch.bfloat16, 30
CACHE_BYTES = 256 << 20
# tokens, width, experts of a token, experts, whether each expert has as many places
SHAPES = [(1024, 6144, 2, 8, True), (1024, 6144, 2, 8, False), (2048, 6144, 2, 8, True), (4096, 6144, 2, 8, True),
          (4096, 4096, 2, 8, False), (4096, 2048, 8, 128, False), (4096, 7168, 8, 256, False)]


def seconds(call, cache):
    """Median, with the host ahead of the device."""
    times = []
    for _ in range(CALLS + 5):
        cache.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(200000)
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return sorted(times[5:])[CALLS // 2]


def kernels(call):
    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
        call()
        torch.cuda.synchronize()
    return sum(e.count for e in seen.key_averages() if e.device_type == torch.autograd.DeviceType.CUDA)


def places_of(tokens, top_k, experts, padded):
    """The token at each place, expert by expert."""
    if padded:
        return torch.cat([torch.randperm(tokens, device="cuda")[:tokens * top_k // experts] for _ in range(experts)])
    best = torch.rand(tokens, experts, device="cuda").topk(top_k).indices
    return best.flatten().sort(stable=True).indices // top_k


def rows_of(shape, cache):
    tokens, width, top_k, experts, padded = shape
    index = places_of(tokens, top_k, experts, padded)
    random = [torch.randn(n, width, dtype=BF16, device="cuda", requires_grad=True) for n in (tokens, index.numel())]
    weights = torch.rand(index.numel(), dtype=BF16, device="cuda", requires_grad=True)
    leaves = (*random, weights)

    def permute():
        return random[0].index_select(0, index)

    def unpermute():
        weighed = random[1] * weights.unsqueeze(-1)
        sums = torch.zeros(tokens, width, dtype=BF16, device="cuda")
        return sums.scatter_add_(0, index.unsqueeze(1).expand(-1, width), weighed)

    for call in (permute, unpermute):
        result = call()
        gradient = torch.randn_like(result)

        def backward():
            for leaf in leaves:
                leaf.grad = None
            torch.autograd.backward(result, gradient, retain_graph=True)

        yield {"what": call.__name__, "tokens": tokens, "width": width, "top_k": top_k, "experts": experts, "padded": padded,
               "forward_s": seconds(call, cache), "backward_s": seconds(backward, cache),
               "forward_kernels": kernels(call), "backward_kernels": kernels(backward)}


def main():
    cache = torch.empty(CACHE_BYTES, dtype=torch.int8, device="cuda")
    rows = [row for shape in SHAPES for row in rows_of(shape, cache)]
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump(rows, out, indent=1)


main()
