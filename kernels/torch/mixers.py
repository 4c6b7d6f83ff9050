"""Times on one GPU what a mixer of Mamba-2 does beside the products of its scan, in bf16.

    python3 kernels/torch/mixers.py OUT.json

Own kernels in Triton, divided among programs as those of state-spaces/mamba (ops/triton/layernorm_gated.py), and
operations of PyTorch as Megatron-LM (core/ssm/mamba_mixer.py) and mamba_ssm call them: seconds of the device.
"""
import json
import math
import sys

import torch
import triton
import triton.language as tl

from timing import cold_seconds

CALLS = 15
NORMS = ((8192, 8, 512), (16384, 8, 512), (32768, 8, 512), (8192, 8, 1024), (8192, 4, 1024), (8192, 1, 2048),
         (16384, 1, 5120))
COPIES = ((8192, 4, 10304), (8192, 4, 4096))
SUMS = ((32768, 1024), (8192, 1024))


@triton.jit
def norm_forward(x, y, w, inverse, stride, n_rows, n, BLOCK: tl.constexpr):
    row, group = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, BLOCK)
    there = at < n
    v = tl.load(x + row * stride + group * n + at, mask=there, other=0.).to(tl.float32)
    s = 1 / tl.sqrt(tl.sum(v * v, axis=0) / n + 1e-5)
    tl.store(inverse + group * n_rows + row, s)
    weight = tl.load(w + group * n + at, mask=there).to(tl.float32)
    tl.store(y + row * stride + group * n + at, v * s * weight, mask=there)


@triton.jit
def norm_backward(x, w, dy, dx, dw, inverse, stride, n_rows, n, rows_each, BLOCK: tl.constexpr):
    """A program goes through its rows one after the other, with the gradient of the weights in registers."""
    part, group = tl.program_id(0), tl.program_id(1)
    at = tl.arange(0, BLOCK)
    there = at < n
    first = part * rows_each
    x += first * stride + group * n
    dy += first * stride + group * n
    dx += first * stride + group * n
    weight = tl.load(w + group * n + at, mask=there).to(tl.float32)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for row in range(first, min(first + rows_each, n_rows)):
        v = tl.load(x + at, mask=there, other=0).to(tl.float32)
        d = tl.load(dy + at, mask=there, other=0).to(tl.float32)
        s = tl.load(inverse + group * n_rows + row)
        h = tl.where(there, v * s, 0.)
        along = tl.sum(h * weight * d, axis=0) / n
        total += d * h
        tl.store(dx + at, (weight * d - h * along) * s, mask=there)
        x += stride
        dy += stride
        dx += stride
    tl.store(dw + part * (n * tl.num_programs(1)) + group * n + at, total, mask=there)


def seconds(call):
    return float(f"{cold_seconds(call, CALLS):.4g}")


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def norm(tokens, groups, width):
    block = triton.next_power_of_2(width)
    warps = min(max(block // 256, 1), 8)
    parts = math.ceil(torch.cuda.get_device_properties(0).multi_processor_count * math.ceil(4 / warps) / groups)
    stride = groups * width
    x, dy, y, dx = (random(tokens, stride) for _ in range(4))
    w, inverse = random(stride), random(groups * tokens, dtype=torch.float32)
    dw = random(parts, stride, dtype=torch.float32)
    forward = seconds(lambda: norm_forward[(tokens, groups)](x, y, w, inverse, stride, tokens, width, block,
                                                             num_warps=warps))
    backward = seconds(lambda: norm_backward[(parts, groups)](x, w, dy, dx, dw, inverse, stride, tokens, width,
                                                              math.ceil(tokens / parts), block, num_warps=warps))
    return {"what": "norm", "tokens": tokens, "groups": groups, "width": width,
            "forward_s": forward, "backward_s": backward}


def samples_first(seq, samples, width):
    x = random(seq, samples, width)
    return {"what": "samples_first", "tokens": seq * samples, "width": width,
            "forward_s": seconds(lambda: x.transpose(0, 1).contiguous())}


def sum_parts(tokens, width):
    x = random(tokens, 1, width, dtype=torch.float32)
    return {"what": "sum_parts", "tokens": tokens, "width": width, "backward_s": seconds(lambda: x.sum(1))}


if __name__ == "__main__":
    rows = [norm(*s) for s in NORMS] + [samples_first(*s) for s in COPIES] + [sum_parts(*s) for s in SUMS]
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({"rows": rows}, out, indent=1)
