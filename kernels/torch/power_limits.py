"""Kernels and blocks under lower limits of power, as machines are set that cannot cool more: nvidia-smi must be allowed to.

    python3 kernels/torch/power_limits.py OUT.json [WATTS]...

Each kernel until its power has settled (power.py), then four blocks of Llama 3 8B, compiled, forward and backward, in
bf16: their medians over two seconds, after one. What a limit costs is the ratio to the seconds under the highest one.
Attention is FlashAttention-2. At the end the first limit is set again.
"""
import json
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
    for part in (power.products, power.narrow):
        yield from ((name, call) for name, call in part() if name in PRODUCTS)
    yield from power.attentions(ATTENTIONS)
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


with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    main()
