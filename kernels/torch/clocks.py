"""What kernels take and draw at clocks that nvidia-smi holds: it must be allowed to.

    python3 kernels/torch/clocks.py OUT.json [MHZ]...

Each kernel of power.py until its power has settled; where the limit of power keeps the clock below what was asked for,
the one that was seen counts. Before them, what the chip draws without work. Attention is FlashAttention-2.
"""
import json
import subprocess
import sys
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import power

CLOCKS = [1980, 1755, 1530, 1305, 1080, 855, 630]
KERNELS = ["gemm 8192 8192 8192", "gemm 16384 4096 1024", "gemm 4096 768 3072", "gemm 16384 50257 1024",
           "gemm weight_gradient 1600 6400 8192", "fp8 gemm 8192 8192 8192", "fp8 gemm exact 8192 8192 8192",
           "conv 256 64 56 3x3", "conv 256 512 28 3x3", "copy", "gelu", "layernorm", "adam", "copy by 16 blocks"]
ATTENTIONS = [(2, 32, 8192, 128), (16, 16, 1024, 64)]
SETTLED_S = 1.6


def kernels():
    for part in (power.products, power.narrow, power.convolutions, power.bound_by_memory, power.communication):
        yield from ((name, call) for name, call in part() if name in KERNELS)
    yield from power.attentions(ATTENTIONS)


def idle(watch):
    time.sleep(power.SETTLE_S + power.WATCH_S)
    mhz, watts = watch.means(time.time() - power.WATCH_S, time.time())
    return {"name": "idle", "first_s": 0, "late_s": 0, "clock_mhz": mhz, "watts": watts}


def main():
    watch, rows = power.Watch(), []
    power.SETTLE_S, power.WATCH_S, power.IDLE_S = SETTLED_S - 0.5, 0.5, 0.1
    made = list(kernels())
    for mhz in [int(word) for word in sys.argv[2:]] or CLOCKS:
        subprocess.run(["nvidia-smi", "-lgc", f"{mhz},{mhz}"], check=True, stdout=subprocess.DEVNULL)
        rows.append(idle(watch) | {"asked_mhz": mhz})
        for name, call in made:
            rows.append(power.measured(name, call, watch) | {"asked_mhz": mhz})
            print(json.dumps(rows[-1]), flush=True)
        with open(sys.argv[1], "w") as file:
            json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name(), "rows": rows}, file)
    subprocess.run(["nvidia-smi", "-rgc"], check=True, stdout=subprocess.DEVNULL)
    watch.process.terminate()


with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
    main()
