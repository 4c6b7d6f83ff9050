"""Attention over context ways by PyTorch's own ring, as one rank of them runs it on one GPU: the process group is PyTorch's
fake one, which sends nothing, so what is timed are the kernels and the host.

    python3 kernels/torch/context_ring.py OUT.json

One block's attention with 32 heads of 128 in bf16 and 32,768 tokens a rank, by FlashAttention-2, forward and backward:
alone (causal, one way), then as ranks of 2, 4 and 8 ways, with both ways of moving keys. The kernels of each by name.
"""
import json
import sys
import time
import traceback

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing._internal.distributed.fake_pg import FakeStore

from passes import launched

HEADS, WIDTH, REPEATS = 32, 128, 5
OUT = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "cases": [], "errors": []}


def options():
    """PyTorch has moved these from version to version."""
    import importlib
    for name in ("torch.distributed.tensor.experimental._context_parallel._attention",
                 "torch.distributed.tensor.experimental._attention"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError("no context parallelism")


def tensors(tokens):
    return [torch.randn(1, HEADS, tokens, WIDTH, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in "qkv"]


def attend(q, k, v):
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def timed(tokens):
    """Seconds of forward and backward, the least of some, and the kernels of one of both."""
    q, k, v = tensors(tokens)
    result = attend(q, k, v)
    gradient = torch.randn_like(result)
    result.backward(gradient)
    forward, backward = [], []
    for _ in range(REPEATS):
        events = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
        q.grad = k.grad = v.grad = None
        events[0].record()
        result = attend(q, k, v)
        events[1].record()
        result.backward(gradient)
        events[2].record()
        torch.cuda.synchronize()
        forward.append(events[0].elapsed_time(events[1]) * 1e-3)
        backward.append(events[1].elapsed_time(events[2]) * 1e-3)
    began = time.perf_counter()
    result = attend(q, k, v)
    result.backward(gradient)
    host = time.perf_counter() - began
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        result = attend(q, k, v)
        result.backward(gradient)
        torch.cuda.synchronize()
    return {"forward_s": min(forward), "backward_s": min(backward), "all_s": [forward, backward], "host_s": host,
            "peak_bytes": torch.cuda.max_memory_allocated(), **launched(profile)}


def ring(tokens, ways, rank, method, balanced):
    o = options()
    from torch.distributed.tensor.experimental import context_parallel
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=ways)
    try:
        mesh = init_device_mesh("cuda", (ways,))
        o.set_rotate_method(method)
        o._cp_options.enable_load_balance = balanced
        positions = torch.zeros(ways * tokens, device="cuda")  # it wants something to divide
        with context_parallel(mesh, buffers=[positions], buffer_seq_dims=[0]):
            return timed(tokens)
    finally:
        dist.destroy_process_group()


def case(name, what):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    try:
        OUT["cases"].append({"case": name, **what()})
        print(name, {k: v for k, v in OUT["cases"][-1].items() if k.endswith("_s") and k != "all_s"}, flush=True)
    except Exception:
        OUT["errors"].append([name, traceback.format_exc()[-1500:]])
        print(name, traceback.format_exc()[-1500:], flush=True)
    with open(sys.argv[1], "w") as f:
        json.dump(OUT, f)


def main():
    for tokens in (8192, 32768):
        case(["alone", tokens], lambda: timed(tokens))
    for ways, rank in ((8, 5), (2, 1), (4, 2), (8, 0), (8, 7)):
        case(["ring", ways, rank, "allgather", 32768, True], lambda: ring(32768, ways, rank, "allgather", True))
    case(["ring", 8, 5, "alltoall", 32768, True], lambda: ring(32768, 8, 5, "alltoall", True))
    case(["ring", 8, 7, "allgather", 32768, False], lambda: ring(32768, 8, 7, "allgather", False))


main()
