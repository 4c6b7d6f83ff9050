"""Times on one GPU rotary embeddings by parts, with scaled cosines and sines (YaRN), in bf16.

    python3 kernels/torch/scaled_rotary.py OUT.json

Own code with the operations of Megatron-LM where its fused kernel does not know the scale
(core/models/common/embeddings/rope_utils.py). Of queries and keys together: seconds of the device, kernels, and with few
tokens (_host) seconds of the host.
"""
import json
import sys
import time

import torch
from torch.profiler import ProfilerActivity, profile

CALLS, HOST_CALLS, SCALE = 20, 200, 1.3466
SHAPES = ((4096, 1, 64, 8, 64), (4096, 2, 64, 8, 64), (4096, 4, 64, 8, 64), (8192, 2, 64, 8, 64), (4096, 1, 32, 8, 128))
FEW = (128, 1, 64, 8, 64)


def turned(x):
    a, b = torch.chunk(x, 2, dim=-1)
    return torch.cat((-b, a), dim=-1)


def rotate(x, angles):
    width = angles.shape[-1]
    x, rest = x[..., :width], x[..., width:]
    cos, sin = ((f(angles) * SCALE).to(x.dtype) for f in (torch.cos, torch.sin))
    return torch.cat((x * cos + turned(x) * sin, rest), dim=-1)


def passes(seq, samples, heads, key_heads, width):
    """The forward, and the backward of what it gave."""
    def random(n):
        return torch.randn(seq, samples, n, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    q, k = random(heads), random(key_heads)
    gradients = torch.randn_like(q), torch.randn_like(k)
    angles = torch.randn(seq, 1, 1, width, device="cuda")
    return (lambda: (rotate(q, angles), rotate(k, angles)),
            lambda made: torch.autograd.grad(made, (q, k), gradients))


def of_device(calls):
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for call in calls:
            call()
        torch.cuda.synchronize()
    kernels = [e for e in found.key_averages() if e.device_type == torch.autograd.DeviceType.CUDA]
    return (sum(e.device_time_total for e in kernels) / 1e6 / len(calls), sum(e.count for e in kernels) / len(calls))


def of_host(calls):
    start = time.perf_counter()
    for call in calls:
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / len(calls), None


def row(what, shape, n, measure):
    forward, backward = passes(*shape)
    for _ in range(5):
        backward(forward())
    torch.cuda.synchronize()
    forward_s, forward_kernels = measure([forward] * n)
    made = [forward() for _ in range(n)]
    torch.cuda.synchronize()
    backward_s, backward_kernels = measure([lambda m=m: backward(m) for m in made])
    seq, samples, heads, key_heads, width = shape
    out = {"what": what, "tokens": seq * samples, "heads": heads, "key_heads": key_heads, "width": width,
           "forward_s": float(f"{forward_s:.4g}"), "backward_s": float(f"{backward_s:.4g}")}
    if forward_kernels:
        out |= {"forward_kernels": forward_kernels, "backward_kernels": backward_kernels}
    return out


if __name__ == "__main__":
    rows = [row("rotary", shape, CALLS, of_device) for shape in SHAPES]
    rows.append(row("rotary_host", FEW, HOST_CALLS, of_host))
    with open(sys.argv[1], "w") as out:
        json.dump({"rows": rows}, out, indent=1)
