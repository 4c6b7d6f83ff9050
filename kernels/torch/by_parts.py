"""Operations of decoders that eager code writes down by parts, each part a kernel: rotary positions, SwiGLU of two tensors,
RMSNorm in fp32, keys and values repeated for the queries of a group. Elements are those that the parts read and write, broadcast factors left out."""
import torch
from torch.nn import functional as F

from decoders import norm_by_hand, repeated, rotate_half

SEQ, HEAD = 2048, 128
SIZES = [(t, h) for t in (1024, 2048, 4096, 8192, 16384) for h in (1024, 4096)] + [(2048, 2048), (8192, 2048), (8192, 3072)]
WIDE = [(t, h) for t in (2048, 8192) for h in (5632, 8192, 14336)] + [(16384, 5632)]


def rotary(dtype, angles):
    """x cos + (-x2, x1) sin on heads that lie apart, as attention is given them."""
    def make(rows, width, _):
        seq = min(rows, SEQ)
        x = torch.randn(rows // seq, seq, width // HEAD, HEAD, device="cuda", dtype=dtype, requires_grad=True)
        cos, sin = (torch.randn(seq, HEAD, device="cuda", dtype=angles) for _ in "cs")

        def call(x, cos, sin):
            heads = x.transpose(1, 2)
            return heads * cos + rotate_half(heads) * sin
        return [x], [cos, sin], call
    return make


def swiglu(rows, width, dtype):
    gate, up = (torch.randn(rows, width, device="cuda", dtype=dtype, requires_grad=True) for _ in "gu")
    return [gate, up], [], lambda g, u: F.silu(g) * u


def rmsnorm(rows, width, dtype):
    x = torch.randn(rows, width, device="cuda", dtype=dtype, requires_grad=True)
    weight = torch.ones(width, device="cuda", dtype=dtype, requires_grad=True)
    return [x, weight], [], norm_by_hand


def repeat(rows, width, dtype):
    """Keys of a quarter of the heads for each of them; what is counted is the heads' width."""
    seq, share = min(rows, SEQ), 4
    x = torch.randn(rows // seq, seq, width // HEAD // share, HEAD, device="cuda", dtype=dtype, requires_grad=True)
    return [x], [], lambda x: repeated(x.transpose(1, 2), share)


def time_parts(memory):
    memory("rotary_parts", "bf16", rotary(torch.bfloat16, torch.bfloat16), SIZES, 10, 15)
    memory("rotary_parts", "fp32", rotary(torch.bfloat16, torch.float32), SIZES, 8, 12)
    memory("repeat", "bf16", repeat, SIZES, 1.25, 1.25)
    memory("swiglu_parts", "bf16", swiglu, WIDE, 5, 9)
    memory("rmsnorm_parts", "bf16", rmsnorm, SIZES, 18, 40)
    memory("rmsnorm_parts", "fp32", rmsnorm, SIZES, 7, 16)
