"""Times on one GPU what Megatron-Core does with the tokens of experts beside products, in bf16.

    python3 kernels/torch/expert_activations.py OUT.json

Own code with the operations of Megatron-LM: core/fusions/fused_bias_swiglu.py and fused_bias_geglu.py (functions for
each pass, compiled; halves are put together by cat; clamps in eager code) and core/transformer/moe/experts.py
(_apply_bias: expert by expert, with the weights of tokens). Seconds of the device and kernels of a call; of the bias
those of the host too, with few tokens.
"""
import json
import sys
import time

import torch
from torch.nn import functional as F

BF16, WIDTH, CALLS, FEW_TOKENS = torch.bfloat16, 2880, 20, 32


def random(*shape, dtype=BF16, grad=True):
    return torch.randn(*shape, device="cuda").to(dtype).requires_grad_(grad)


@torch.compile
def swiglu(y, w):
    a, b = torch.chunk(y, 2, -1)
    return (F.silu(a) * b * w).to(y.dtype)


@torch.compile
def swiglu_back(g, y, w):
    a, b = torch.chunk(y, 2, -1)
    s = torch.sigmoid(a)
    d = torch.cat((g * w * s * (1 + a * (1 - s)) * b, g * w * F.silu(a)), -1)
    return d.to(y.dtype), torch.sum(F.silu(a) * b * g.to(w.dtype), -1, keepdim=True)


@torch.compile
def geglu(y, w, offset):
    a, b = torch.chunk(y, 2, -1)
    return (a * torch.sigmoid(1.702 * a) * (b + offset) * w).to(y.dtype)


@torch.compile
def geglu_back(g, y, w, offset):
    a, b = torch.chunk(y, 2, -1)
    s = torch.sigmoid(1.702 * a)
    d = torch.cat((g * w * s * (1 + 1.702 * a * (1 - s)) * (b + offset), g * w * a * s), -1)
    return d.to(y.dtype), torch.sum(a * s * (b + offset) * g.to(w.dtype), -1, keepdim=True)


def clamped(y):
    a, b = y.chunk(2, -1)
    return torch.cat((a.clamp(max=7.0), b.clamp(-7.0, 7.0)), -1)


def biased(y, biases, split, weights):
    parts = zip(torch.split(y, split), biases, torch.split(weights, split))
    return torch.cat([t + b * w for t, b, w in parts]).to(y.dtype)


class Weighted(torch.autograd.Function):
    """A function with its backward, both compiled, as a layer calls them."""

    @staticmethod
    def forward(ctx, forward, backward, y, w, *more):
        ctx.save_for_backward(y, w, *more)
        ctx.backward_by = backward
        return forward(y, w, *more)

    @staticmethod
    def backward(ctx, gradient):
        return None, None, *ctx.backward_by(gradient, *ctx.saved_tensors), *[None] * (len(ctx.saved_tensors) - 2)


def backward_of(call, leaves):
    """Gradients of a call before are dropped, not added to."""
    made = call()
    gradient = torch.ones_like(made)

    def backward():
        for leaf in leaves:
            leaf.grad = None
        torch.autograd.backward(made, gradient, retain_graph=True)

    return backward


def seconds(call, on_host=False):
    for _ in range(4):
        call()
    torch.cuda.synchronize()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    started = time.perf_counter()
    begin.record()
    for _ in range(CALLS):
        call()
    end.record()
    host_s = time.perf_counter() - started
    torch.cuda.synchronize()
    return float(f"{(host_s if on_host else 1e-3 * begin.elapsed_time(end)) / CALLS:.4g}")


def kernels(call):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as prof:
        call()
        torch.cuda.synchronize()
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in prof.events())


def line(what, shape, forward, backward, on_host=False):
    row = {"what": what} | shape | {"forward_s": seconds(forward, on_host), "backward_s": seconds(backward, on_host)}
    return row if on_host else row | {"forward_kernels": kernels(forward), "backward_kernels": kernels(backward)}


def activations(rows):
    """Each function sees one width only, as in a model: else it is compiled for any width, and slower."""
    offset = torch.ones((), device="cuda", dtype=BF16)
    functions = {"weighted_swiglu": (768, (swiglu, swiglu_back), ()),
                 "weighted_geglu": (WIDTH, (geglu, geglu_back), (offset,))}
    for name, (width, by, more) in functions.items():
        for tokens in (16384, 32768, 65536, 131072, FEW_TOKENS):
            y, w = random(tokens, 2 * width), random(tokens, 1, dtype=torch.float32)
            call = lambda: Weighted.apply(*by, y, w, *more)
            on_host = tokens == FEW_TOKENS
            rows.append(line(name + "_host" * on_host, {"tokens": tokens, "width": width}, call,
                             backward_of(call, (y, w)), on_host))
    for tokens in (16384, 65536, FEW_TOKENS):
        y = random(tokens, 2 * WIDTH)
        call = lambda: clamped(y)
        on_host = tokens == FEW_TOKENS
        rows.append(line("clamps" + "_host" * on_host, {"tokens": tokens, "width": WIDTH}, call,
                         backward_of(call, (y,)), on_host))


def biases(rows):
    for experts, each in ((16, 1024), (2, 32768), (16, 4096)):
        for tokens, on_host in ((each, False), (FEW_TOKENS, True)):
            y, w = random(experts * tokens, WIDTH), random(experts * tokens, 1)
            of_experts = [random(WIDTH) for _ in range(experts)]
            call = lambda: biased(y, of_experts, [tokens] * experts, w)
            shape = {"experts": experts, "tokens": experts * tokens, "width": WIDTH}
            rows.append(line("bias" + "_host" * on_host, shape, call, backward_of(call, (y, w, *of_experts)), on_host))


def main():
    rows = []
    activations(rows)
    biases(rows)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
