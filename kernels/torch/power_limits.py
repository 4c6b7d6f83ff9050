"""Kernels and blocks under lower limits of power, as machines are set that cannot cool more: nvidia-smi must be allowed to.

    python3 kernels/torch/power_limits.py OUT.json [WATTS]...

An idle chip, each kernel until its power has settled (power.py), then four blocks of Llama 3 8B, compiled, forward and backward, in
bf16: their medians over two seconds, after one. What a limit costs is the ratio to the seconds under the highest one.
Attention is FlashAttention-2. At the end the first limit is set again.
"""
import subprocess
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import power
from decoders import Decoder

PRODUCTS = ["gemm 8192 8192 8192", "gemm 16384 4096 1024", "gemm 4096 12288 12288", "fp8 gemm 8192 8192 8192",
            "fp8 gemm exact 8192 8192 8192"]
ATTENTIONS = [(2, 32, 8192, 128), (1, 32, 32768, 128)]
BLOCKS = [(1, 8192), (1, 32768)]
LAYERS, HIDDEN, FFN, HEADS, KV_HEADS = 4, 4096, 14336, 32, 8


def kernels():
    yield from power.named(PRODUCTS, power.products, power.narrow)
    yield from power.attentions(ATTENTIONS)
    yield from power.named(["gelu", "adam"], power.bound_by_memory)


def blocks():
    torch.set_default_dtype(torch.bfloat16)
    for b, s in BLOCKS:
        with torch.device("cuda"):
            model = Decoder(LAYERS, HIDDEN, FFN, HEADS, KV_HEADS, s, 256, False, 0, 0, False)
        cos, sin = model.angles(s, power.random(b, s, HIDDEN))
        layers = [torch.compile(block, dynamic=False) for block in model.blocks]
        x = power.random(b, s, HIDDEN).requires_grad_()
        g = power.random(b, s, HIDDEN)

        def step(i, x=x, g=g, layers=layers, cos=cos, sin=sin):
            y = x
            for layer in layers:
                y = layer(y, cos, sin)
            y.backward(g)

        yield f"blocks {b} {s}", step
    torch.set_default_dtype(torch.float32)


def set_limit(watts):
    subprocess.run(["nvidia-smi", "-pl", str(watts)], check=True, stdout=subprocess.DEVNULL)


def main():
    limits = [int(word) for word in sys.argv[2:]] or [700, 600, 500, 400, 350]
    power.over("limit_w", limits, set_limit, list(kernels()) + list(blocks()), power.Watch(), sys.argv[1])
    set_limit(limits[0])


with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    main()
