"""What kernels take and draw at clocks that nvidia-smi holds: it must be allowed to.

    python3 kernels/torch/clocks.py OUT.json [MHZ]...

Each kernel of power.py until its power has settled; where the limit of power keeps the clock below what was asked for,
the one that was seen counts. Before them, what the chip draws without work. Attention is FlashAttention-2.
"""
import subprocess
import sys

from torch.nn.attention import SDPBackend, sdpa_kernel

import power

CLOCKS = [1980, 1755, 1530, 1305, 1080, 855, 630]
KERNELS = ["gemm 8192 8192 8192", "gemm 16384 4096 1024", "gemm 4096 768 3072", "gemm 16384 50257 1024",
           "gemm weight_gradient 1600 6400 8192", "fp8 gemm 8192 8192 8192", "fp8 gemm exact 8192 8192 8192",
           "conv 256 64 56 3x3", "conv 256 512 28 3x3", "copy", "gelu", "layernorm", "adam", "copy by 16 blocks"]
ATTENTIONS = [(2, 32, 8192, 128), (16, 16, 1024, 64)]
SETTLE_S, WATCH_S = 1.1, 0.5


def kernels():
    yield from power.named(KERNELS, power.products, power.narrow, power.convolutions, power.bound_by_memory,
                           power.communication)
    yield from power.attentions(ATTENTIONS)


def hold(mhz):
    subprocess.run(["nvidia-smi", "-lgc", f"{mhz},{mhz}"], check=True, stdout=subprocess.DEVNULL)


def main():
    clocks = [int(word) for word in sys.argv[2:]] or CLOCKS
    power.over("asked_mhz", clocks, hold, list(kernels()), power.Watch(SETTLE_S, WATCH_S), sys.argv[1])
    subprocess.run(["nvidia-smi", "-rgc"], check=True, stdout=subprocess.DEVNULL)


with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    main()
