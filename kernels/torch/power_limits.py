"""Kernels and blocks under lower limits of power, as machines are set that cannot cool more: nvidia-smi must be allowed to.

    python3 kernels/torch/power_limits.py OUT.json [WATTS]...

Each kernel until its power has settled (power.py), then four blocks of Llama 3 8B, compiled, forward and backward, in
bf16: their medians over two seconds, after one. What a limit costs is the ratio to the seconds under the highest one.
"""
import json
import statistics
import subprocess
import sys
import time

import torch
from torch.nn import functional as F

import power
from decoders import Decoder

PRODUCTS = ["gemm 8192 8192 8192", "gemm 16384 4096 1024", "gemm 4096 12288 12288", "fp8 gemm 8192 8192 8192",
            "fp8 gemm exact 8192 8192 8192"]
HEADS, WIDTH = 32, 128
ATTENTIONS = [(2, 8192), (1, 32768)]
BLOCKS = [(1, 8192), (1, 32768)]
LAYERS, HIDDEN, FFN, KV_HEADS = 4, 4096, 14336, 8


def attentions():
    for b, s in ATTENTIONS:
        q, k, v = (power.random(b, HEADS, s, WIDTH).requires_grad_() for _ in "qkv")
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        g = torch.randn_like(y)

        def forward(i, x=(q.detach(), k.detach(), v.detach())):
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
                F.scaled_dot_product_attention(*x, is_causal=True)

        yield f"attention {b} {s}", forward
        yield f"attention backward {b} {s}", lambda i, y=y, g=g, x=(q, k, v): torch.autograd.grad(y, x, g, retain_graph=True)


def kernels():
    for part in (power.products, power.narrow):
        yield from ((name, call) for name, call in part() if name in PRODUCTS)
    yield from attentions()
    yield from ((name, call) for name, call in power.bound_by_memory() if name in ("gelu", "adam"))


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
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
                for layer in layers:
                    y = layer(y, cos, sin)
                y.backward(g)

        yield f"blocks {b} {s}", step
    torch.set_default_dtype(torch.float32)


def set_limit(watts):
    subprocess.run(["nvidia-smi", "-pl", str(watts)], check=True, stdout=subprocess.DEVNULL)


def main():
    limits = [int(word) for word in sys.argv[2:]] or [700, 600, 500, 400, 350]
    watch, rows = power.Watch(), []
    made = list(kernels()) + list(blocks())
    for watts in limits:
        set_limit(watts)
        for name, call in made:
            try:
                row = power.measured(name, call, watch) | {"limit_w": watts}
            except Exception as error:  # one kernel that fails costs no others
                row = {"name": name, "limit_w": watts, "error": repr(error)[:300]}
            rows.append(row)
            print(json.dumps(row), flush=True)
        with open(sys.argv[1], "w") as file:
            json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name(), "rows": rows}, file)
    set_limit(limits[0])
    watch.process.terminate()


main()
