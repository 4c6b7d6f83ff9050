"""Clock and power of kernels on one GPU, each alone: facts for the "power" of a device file.

    python3 kernels/torch/power.py OUT.json [products] [narrow] [attentions] [convolutions] [others] [communication]

A kernel runs for a few milliseconds on a chip that has been idle, at the highest clock, and then until its power has
settled. Printed are its seconds in both, the clock and the watts at the end, the part of its time that goes with the
clock, and the watts beside idle ones that it would draw at the highest: see docs/formats.md. What a device draws in
collectives is taken from kernels with as many blocks as those of NCCL, which copy, or only look whether something came.
"""
import json
import statistics
import subprocess
import sys
import threading
import time

import torch
import triton
import triton.language as tl
from torch.nn import functional as F

FIRST_S, BURST_S, IDLE_S = 8e-3, 50e-3, 0.4
PRODUCTS = [(8192, 8192, 8192), (4096, 12288, 12288), (16384, 4096, 1024), (16384, 1024, 4096), (16384, 3072, 1024), (16384, 5120, 1280),
            (8192, 6400, 1600), (8192, 10240, 2560), (8192, 2560, 10240), (16384, 50257, 1024), (4096, 768, 3072), (2048, 2048, 2048)]
GRADIENTS = [(1024, 4096, 16384), (1600, 6400, 8192), (2560, 10240, 8192)]
ATTENTIONS = [(16, 16, 1024, 64), (8, 25, 1024, 64), (4, 32, 2048, 80)]
CHANNELS, THREADS, PIECE = (16, 24), 512, 8192
CONVOLUTIONS = [(256, 64, 56), (256, 256, 28), (128, 64, 224), (256, 128, 112), (256, 512, 28)]


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def products():
    for m, n, k in PRODUCTS:
        a, b = [random(m, k) for _ in "ab"], random(n, k)
        yield f"gemm {m} {n} {k}", lambda i, a=a, b=b: F.linear(a[i & 1], b)
    for m, n, k in GRADIENTS:
        a, b = random(k, m), [random(k, n) for _ in "ab"]
        yield f"gemm weight_gradient {m} {n} {k}", lambda i, a=a, b=b: a.t() @ b[i & 1]


def narrow():
    """Of fp8, as Transformer Engine calls them: forward with sums that are kept in the tensor cores, backward not."""
    for (m, n, k), fast in ((shape, fast) for shape in PRODUCTS for fast in (True, False)):
        if n % 16:
            continue
        a, b = ([random(size, k).to(torch.float8_e4m3fn) for _ in "ab"] for size in (m, n))
        one = torch.ones((), device="cuda")
        yield f"fp8 gemm{'' if fast else ' exact'} {m} {n} {k}", lambda i, a=a, b=b, one=one, fast=fast: torch._scaled_mm(
            a[i & 1], b[0].t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)


def attentions(shapes=ATTENTIONS):
    for b, h, s, d in shapes:
        q, k, v = (random(b, h, s, d).requires_grad_() for _ in "qkv")
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        g = torch.randn_like(y)
        yield f"attention {b} {h} {s} {d}", lambda i, x=(q.detach(), k.detach(), v.detach()): F.scaled_dot_product_attention(*x, is_causal=True)
        yield f"attention backward {b} {h} {s} {d}", lambda i, y=y, g=g, x=(q, k, v): torch.autograd.grad(y, x, g, retain_graph=True)


def convolutions():
    """Of what a ReLU leaves, as nearly all in a network are: zeros draw less."""
    for b, c, s in CONVOLUTIONS:
        x, w = (t.contiguous(memory_format=torch.channels_last) for t in (F.relu(random(b, c, s, s)), random(c, c, 3, 3)))
        yield f"conv {b} {c} {s} 3x3", lambda i, x=x, w=w: F.conv2d(x, w, padding=1)


def bound_by_memory():
    x, y, w = random(64, 1024, 4096), random(64, 1024, 4096), random(4096)
    yield "copy", lambda i: y.copy_(x)
    yield "gelu", lambda i: F.gelu(x)
    yield "layernorm", lambda i: F.layer_norm(x, (4096,), w, w)
    parameters = [torch.nn.Parameter(random(4096, 4096)) for _ in range(30)]
    for p in parameters:
        p.grad = torch.randn_like(p)
    optimizer = torch.optim.AdamW(parameters)
    yield "adam", lambda i: optimizer.step()


@triton.jit
def move(source, target, pieces, PIECE: tl.constexpr):
    for i in range(tl.program_id(0), pieces, tl.num_programs(0)):
        at = i * PIECE + tl.arange(0, PIECE)
        tl.store(target + at, tl.load(source + at))


@triton.jit
def wait(flag, seen, rounds, PIECE: tl.constexpr):
    found = tl.zeros((PIECE,), tl.int32)
    for _ in range(rounds):
        found += tl.load(flag + tl.arange(0, PIECE) % 8, volatile=True)
    tl.store(seen + tl.arange(0, PIECE), found)


def communication():
    x, y = (torch.ones(1 << 28, device="cuda", dtype=torch.int32) for _ in "xy")
    for n in CHANNELS:
        grid, how = (n,), {"PIECE": PIECE, "num_warps": THREADS // 32}
        yield f"copy by {n} blocks", lambda i, grid=grid, how=how: move[grid](x, y, x.numel() // PIECE, **how)
        yield f"wait of {n} blocks", lambda i, grid=grid, how=how: wait[grid](x, y, 20000, **how | {"PIECE": THREADS})


def named(names, *parts):
    for part in parts:
        yield from ((name, call) for name, call in part() if name in names)


class Watch:
    """What the driver says, every 50 ms: time, clock in MHz, watts, which are means of one second."""

    def __init__(self, settle_s=1.2, watch_s=1.0):
        self.settle_s, self.watch_s = settle_s, watch_s
        self.log = []
        self.process = subprocess.Popen(["nvidia-smi", "--query-gpu=clocks.sm,power.draw", "--format=csv,noheader,nounits",
                                         "--loop-ms=50"], stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.log.append((time.time(), *map(float, line.split(","))))

    def means(self, begin, end):
        seen = [row for row in self.log if begin < row[0] < end]
        return statistics.mean(row[1] for row in seen), statistics.mean(row[2] for row in seen)

    def idle(self):
        time.sleep(self.settle_s + self.watch_s)
        return self.means(time.time() - self.watch_s, time.time())


def burst(call, n):
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for i in range(n):
        call(i)
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e-3 / n


def measured(name, call, watch):
    for i in range(3):
        call(i)
    torch.cuda.synchronize()
    time.sleep(IDLE_S)
    once = burst(call, 3)
    first = burst(call, max(3, int(FIRST_S / once)))
    begin, late = time.time(), []
    settled = begin + watch.settle_s
    while time.time() < settled + watch.watch_s:
        seconds = burst(call, max(3, int(BURST_S / once)))
        if time.time() > settled:
            late.append(seconds)
    clock, watts = watch.means(settled, settled + watch.watch_s)
    return {"name": name, "first_s": first, "late_s": statistics.median(late), "clock_mhz": clock, "watts": watts}


def save(path, **found):
    with open(path, "w") as file:
        json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name()} | found, file)


def over(key, values, set_to, kernels, watch, path):
    """An idle chip and each kernel under each of the values that set_to sets; what was found is saved after each value."""
    rows = []
    for value in values:
        set_to(value)
        clock, watts = watch.idle()
        rows.append({"name": "idle", key: value, "clock_mhz": clock, "watts": watts})
        for name, call in kernels:
            try:
                row = measured(name, call, watch) | {key: value}
            except Exception as error:  # one kernel that fails costs no others
                row = {"name": name, key: value, "error": repr(error)[:300]}
            rows.append(row)
            print(json.dumps(row), flush=True)
        save(path, rows=rows)
    watch.process.terminate()


def main():
    watch = Watch()
    torch.zeros(1, device="cuda")
    highest, idle = watch.idle()
    print(f"idle: {idle:.0f} W at {highest:.0f} MHz", flush=True)
    rows = []
    parts = {"products": products, "narrow": narrow, "attentions": attentions, "convolutions": convolutions,
             "others": bound_by_memory, "communication": communication}
    for part in sys.argv[2:] or parts:
        for name, call in parts[part]():
            row = measured(name, call, watch)
            clock, slower = row["clock_mhz"] / highest, row["late_s"] / row["first_s"]
            row["clock_share"] = (slower - 1) / (1 / clock - 1) if clock < 0.99 else None
            row["watts_at_highest"] = (row["watts"] - idle) * slower / clock
            rows.append(row)
            print(json.dumps(row), flush=True)
    save(sys.argv[1], idle_watts=idle, highest_mhz=highest, kernels=rows)
    watch.process.terminate()


if __name__ == "__main__":
    main()
