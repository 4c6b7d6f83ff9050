"""Times on one GPU the kernels that PyTorch calls, into tables for a device file's "measured".

    python3 kernels/torch/ops.py OUT.json [--again DEVICE.json] [part...]

With --again the products are those that a device file has already, and no others.
Columns are those of struct dl_kernel (workloads/workload.h); elements are counted as the workloads count them: every
tensor read or written, in elements of the table's precision.
"""
import json
import random
import statistics
import sys
import time

import torch
from torch.nn import functional as F

from by_parts import time_parts
from images import BETWEEN, between_convolutions, convolutions, joined
from shapes import linears, odd_products, products_of
from timing import DTYPES, PASSES, REPLAYS, Table, plain, take_away


# ---- products ----

def product(m, n, k, step, dtype):
    """dl_kernel's shape of a pass of y[m, n] = x[m, k] w[n, k]^T, and what computes it."""
    x, w, y = (lambda: torch.randn(m, k, device="cuda", dtype=dtype), lambda: torch.randn(n, k, device="cuda", dtype=dtype),
               lambda: torch.randn(m, n, device="cuda", dtype=dtype))
    size = (m * k + n * k + m * n) * dtype.itemsize

    def forward():
        a, b, out = x(), w(), y()
        return (lambda: torch.mm(a, b.t(), out=out)), size

    def input_gradient():
        a, b, out = y(), w(), x()
        return (lambda: torch.mm(a, b, out=out)), size

    def weight_gradient():
        a, b, out = y(), x(), w()
        return (lambda: torch.mm(a.t(), b, out=out)), size

    return {"forward": ((1, m, n, k), forward), "input_gradient": ((1, m, k, n), input_gradient),
            "weight_gradient": ((1, k, n, m), weight_gradient)}[step]


def is_aligned(n, k, precision):
    """Rows that begin at multiples of 16 bytes, for which cuBLAS has its fast kernels. The others draw too little for
    the power limit, and so run at the highest clock in a training step: they are timed at it."""
    return all(length * DTYPES[precision].itemsize % 16 == 0 for length in (n, k))


def gemm(precision, shapes, passes=PASSES):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    tables = {step: Table("gemm", step, precision, ["batch", "m", "n", "k"]) for step in passes}
    for m, n, k in shapes:
        for step in passes:
            shape, make = product(m, n, k, step, DTYPES[precision])
            tables[step].add(shape, make, is_aligned(n, k, precision))
    torch.backends.cuda.matmul.allow_tf32 = False


def odd_gemm(precision, shapes):
    """Those with other kernels, the heads of the shipped models among them."""
    gemm(precision, [(m, n, k) for m, n, k in {*shapes, *linears()} if not is_aligned(n, k, precision)])


def batched(precision):
    table = Table("gemm", "any", precision, ["batch", "m", "n", "k"])
    dtype = DTYPES[precision]
    for batch, m, n, k in [(b, s, s, h) for b in (16, 96, 256) for s in (512, 1024, 2048) for h in (64, 80, 128)] + \
                          [(b, s, h, s) for b in (16, 96) for s in (1024, 2048) for h in (64, 128)] + \
                          [(8, t, n, k) for t in (256, 1024, 4096) for n, k in ((14336, 4096), (4096, 14336), (2048, 7168))]:
        def make():
            a, b = torch.randn(batch, m, k, device="cuda", dtype=dtype), torch.randn(batch, n, k, device="cuda", dtype=dtype)
            out = torch.empty(batch, m, n, device="cuda", dtype=dtype)
            return (lambda: torch.bmm(a, b.transpose(1, 2), out=out)), batch * (m * k + n * k + m * n) * dtype.itemsize
        table.add((batch, m, n, k), make)


def fp8(shapes):
    table = Table("gemm", "forward", "fp8", ["batch", "m", "n", "k"])
    one = torch.ones((), device="cuda")
    for m, n, k in shapes:
        if m % 16 or n % 16 or k % 16:
            continue
        def make():
            a = torch.randn(m, k, device="cuda").to(torch.float8_e4m3fn)
            b = torch.randn(n, k, device="cuda").to(torch.float8_e4m3fn)
            return (lambda: torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16)), m * k + n * k + 2 * m * n
        table.add((1, m, n, k), make)


# ---- attention ----

def attention(precision):
    shapes = [(b, h, s, d, True, 1) for b, h in ((1, 8), (1, 16), (2, 16), (4, 12), (8, 12), (8, 16), (8, 25), (16, 16), (4, 32), (2, 12), (32, 12))
              for s in (512, 1024, 2048, 4096) for d in (64, 128) if b * h * s * s < 3e9]
    shapes += [(b, 32, s, 80, True, 1) for b in (1, 2, 4) for s in (1024, 2048)]
    shapes += [(b, 16, 2048, d, True, 1) for b in (1, 4) for d in (96, 160)] + [(4, 20, 1024, 64, True, 1)]
    shapes += [(b, 16, s, d, False, 1) for b in (2, 16) for s in (512, 2048) for d in (64, 128)]
    shapes += [(1, 32, 8192, 128, True, 0.25), (1, 8, 8192, 128, True, 0.125), (2, 32, 4096, 128, True, 0.25),
               (1, 16, 8192, 128, True, 1), (1, 16, 16384, 128, True, 1), (1, 8, 32768, 128, True, 1)]
    attentions(precision, shapes, 0)


def attention_with_dropout(precision):
    shapes = [(b, h, 1024, 64, True, 1) for b, h in ((1, 12), (8, 12), (32, 12), (2, 16), (16, 16), (4, 20), (8, 25))]
    shapes += [(b, 32, 2048, 80, True, 1) for b in (1, 4)] + [(b, 16, 2048, 128, True, 1) for b in (1, 4)]
    shapes += [(16, 16, 512, 64, True, 1), (2, 16, 4096, 64, True, 1), (2, 16, 4096, 128, True, 1), (4, 16, 2048, 96, True, 1)]
    shapes += [(16, 16, 512, 64, False, 1), (4, 16, 2048, 64, False, 1), (2, 16, 2048, 128, False, 1)]
    attentions(precision, shapes, DROPPED)


def attention_of_images(precision):
    """As encoders have it, of fp32: by a kernel of its own."""
    shapes = [(b, h, s, d, False, 1) for b, h, s, d in ((8, 12, 197, 64), (32, 12, 197, 64), (128, 12, 197, 64), (512, 12, 197, 64),
              (256, 12, 50, 64), (1024, 12, 50, 64), (256, 12, 64, 64), (128, 12, 100, 64), (256, 12, 128, 64),
              (64, 16, 197, 64), (16, 16, 512, 64), (4, 16, 1024, 64), (64, 16, 256, 80), (16, 16, 512, 128), (2, 16, 2048, 128))]
    attentions(precision, shapes, 0)


DROPPED = 0.1


def attentions(precision, shapes, dropped):
    """With dropout it is bound by random numbers, which go with the clock: it is timed at the highest."""
    dtype = DTYPES[precision]
    columns = ["batch", "m", "n", "k", "causal", "kv_share", *(["dropout"] if dropped else [])]
    forward, backward = (Table("attention", step, precision, columns) for step in ("forward", "backward"))
    for b, h, s, d, causal, share in shapes:
        def tensors():
            q = torch.randn(b, h, s, d, device="cuda", dtype=dtype, requires_grad=True)
            k, v = (torch.randn(b, int(h * share), s, d, device="cuda", dtype=dtype, requires_grad=True) for _ in "kv")
            return q, k, v
        size = b * h * s * d * dtype.itemsize * 4

        def run(q, k, v):
            return F.scaled_dot_product_attention(q, k, v, dropout_p=dropped, is_causal=causal, enable_gqa=share < 1)

        def make_forward():
            q, k, v = (x.detach() for x in tensors())
            return (lambda: run(q, k, v)), size

        def make_both():
            q, k, v = tensors()
            g = torch.randn(b, h, s, d, device="cuda", dtype=dtype)
            return (lambda: torch.autograd.grad(run(q, k, v), (q, k, v), g)), 2 * size
        shape = (b * h, s, s, d, int(causal), share, *([1] if dropped else []))
        forward.add(shape, make_forward, loaded=not dropped)
        backward.add(shape, make_both, loaded=not dropped)
    take_away(forward, backward, len(columns))


# ---- bound by memory ----

PARTED = 64  # rows between two that become neighbours


def strided(precision):
    """A copy whose rows lie apart, as where samples and tokens change places: PyTorch moves element by element."""
    def copy(rows, width):
        x = torch.randn(PARTED, rows // PARTED, width, device="cuda", dtype=DTYPES[precision]).transpose(0, 1)
        return lambda: x.contiguous()
    plain("strided_copy", precision, [(1600, 768), (6400, 768), (25600, 768), (102400, 768), (51200, 2304)], 2, copy, "any")



def memory(name, precision, make_of, sizes, forward_counts, backward_counts):
    """make_of(rows, width, dtype) -> inputs that need gradients, other inputs, function; counts in units of rows x width."""
    dtype = DTYPES[precision]
    columns = ["rows", "width", "elements"]
    ahead, back = Table(name, "forward", precision, columns), Table(name, "backward", precision, columns)
    for rows, width in sizes:
        unit = rows * width
        def make_forward():
            wanted, rest, function = make_of(rows, width, dtype)
            wanted = [x.detach() for x in wanted]
            return (lambda: function(*wanted, *rest)), forward_counts * unit * dtype.itemsize

        def make_both():
            wanted, rest, function = make_of(rows, width, dtype)
            out = function(*wanted, *rest)
            g = torch.randn_like(out)
            return (lambda: torch.autograd.grad(function(*wanted, *rest), wanted, g)), (forward_counts + backward_counts) * unit * dtype.itemsize
        ahead.add((rows, width, round(forward_counts * unit)), make_forward)
        back.add((rows, width, round(backward_counts * unit)), make_both)
    take_away(ahead, back, 2)


def leaf(*shape, dtype):
    return torch.randn(*shape, device="cuda", dtype=dtype, requires_grad=True)


SIZES = [(t, h) for t in (1024, 4096, 16384) for h in (768, 1024, 1600, 2560, 4096, 8192, 12288)] + [(333, 777), (2048, 25600)]
WIDE = [(t, h) for t in (1024, 4096, 8192) for h in (3072, 6400, 10240, 16384)] + [(333, 777)]


def add_of(rows, width, dtype):
    a, b, out = (torch.randn(rows, width, device="cuda", dtype=dtype) for _ in "abc")
    return lambda: torch.add(a, b, out=out)


def memory_kernels(precision):
    memory("layernorm", precision, lambda r, w, d: ([leaf(r, w, dtype=d), leaf(w, dtype=d), leaf(w, dtype=d)], [],
           lambda x, g, b: F.layer_norm(x, (w,), g, b)), SIZES, 2, 5)
    memory("rmsnorm", precision, lambda r, w, d: ([leaf(r, w, dtype=d), leaf(w, dtype=d)], [],
           lambda x, g: F.rms_norm(x, (w,), g)), SIZES[::3], 2, 5)
    memory("softmax", precision, lambda r, w, d: ([leaf(r, w, dtype=d)], [], lambda x: F.softmax(x, -1)),
           [(r, w) for r in (12288, 98304) for w in (512, 1024, 2048, 4096)], 2, 3)
    memory("gelu", precision, lambda r, w, d: ([leaf(r, w, dtype=d)], [], F.gelu), WIDE, 2, 3)
    memory("swiglu", precision, lambda r, w, d: ([leaf(r, 2 * w, dtype=d)], [], lambda x: F.silu(x[:, :x.shape[1] // 2]) * x[:, x.shape[1] // 2:]),
           WIDE[::2], 3, 5)
    memory("dropout", precision, lambda r, w, d: ([leaf(r, w, dtype=d)], [], lambda x: F.dropout(x, 0.1)), SIZES[::2], 2.5, 2.5)
    plain("residual", precision, SIZES[::2], 3, lambda r, w: add_of(r, w, DTYPES[precision]), "any")
    memory("relu", precision, lambda r, w, d: ([leaf(r, w, dtype=d)], [], F.relu), WIDE[::2], 2, 3)


def autocast_kernels():
    """Kernels of two types, which PyTorch does not vectorize: bf16 to fp32, and fp32 plus bf16."""
    sizes = [(2 ** i, 1024) for i in range(6, 19, 2)]

    def widen(r, w):
        a, b = torch.empty(r, w, device="cuda", dtype=torch.bfloat16), torch.empty(r, w, device="cuda")
        return lambda: b.copy_(a)
    plain("widen", "bf16", sizes, 3, widen, "any")

    def add(r, w):
        a, b, out = (torch.empty(r, w, device="cuda", dtype=dtype) for dtype in (torch.float32, torch.bfloat16, torch.float32))
        return lambda: torch.add(a, b, out=out)
    plain("mixed_add", "bf16", sizes, 5, add, "any")


def copies_and_updates():
    def copy(r, w):
        a, b = (torch.empty(r, w, device="cuda", dtype=torch.bfloat16) for _ in "ab")
        return lambda: b.copy_(a)
    plain("copy", "bf16", [(2 ** i, 1024) for i in range(4, 20)], 2, copy, "any")

    def cast(r, w):
        a, b = torch.empty(r, w, device="cuda"), torch.empty(r, w, device="cuda", dtype=torch.bfloat16)
        return lambda: b.copy_(a)
    plain("cast", "bf16", [(2 ** i, 1024) for i in range(6, 18, 2)], 3, cast, "any")

    def embed(r, w):
        table, ids = torch.randn(50257, w, device="cuda"), torch.randint(50257, (r,), device="cuda")
        return lambda: F.embedding(ids, table)
    plain("embedding", "fp32", SIZES[::2], 2, embed)

    def embed_gradient(r, w):
        g, ids = torch.randn(r, w, device="cuda"), torch.randint(50257, (r,), device="cuda")
        return lambda: torch.ops.aten.embedding_dense_backward(g, ids, 50257, -1, False)
    plain("embedding", "fp32", SIZES[::2], 3, embed_gradient, "weight_gradient")


def biases(precision):
    """Added to what a convolution gives, channels last: products add theirs themselves; and the sums of gradients."""
    dtype = DTYPES[precision]
    planes = [(b * s * s, c) for b in (16, 128, 512) for c, s in ((64, 55), (192, 27), (256, 13), (64, 224), (256, 56), (512, 14))
              if b * s * s * c < 2e9]

    def add(r, w):
        x, bias = torch.randn(1, r, 1, w, device="cuda", dtype=dtype).permute(0, 3, 1, 2), torch.randn(w, device="cuda", dtype=dtype)
        return lambda: x.add_(bias.view(1, w, 1, 1))
    plain("bias", precision, planes, 2, add)

    def sums(r, w):
        x = torch.randn(r, w, device="cuda", dtype=dtype)
        return lambda: x.sum(0)
    plain("bias", precision, SIZES + WIDE + planes, 1, sums, "weight_gradient")


def cross_entropy():
    """As autocast does it: the softmax in bf16, the mean of the losses in fp32."""
    for precision in ("bf16", "fp32"):
        def loss(x, t):
            with torch.autocast("cuda", torch.bfloat16, enabled=x.dtype == torch.bfloat16):
                return F.cross_entropy(x, t)
        memory("cross_entropy", precision, lambda r, w, d: ([leaf(r, w, dtype=d)], [torch.randint(w, (r,), device="cuda")], loss),
               [(1024, 50257), (4096, 50257), (8192, 50257), (24576, 50257), (4096, 32000), (2048, 128256)], 4, 4)


def optimizers():
    """Of a list of tensors as a model has them; rows are tensors, width their elements. Not as graphs: only large ones,
    whose launches hide behind the kernels."""
    kinds = {"foreach_adam": lambda p: torch.optim.AdamW(p, lr=1e-5), "adam": lambda p: torch.optim.AdamW(p, lr=1e-5, fused=True),
             "momentum": lambda p: torch.optim.SGD(p, lr=1e-5, momentum=0.9)}
    units = {"foreach_adam": 20, "adam": 7, "momentum": 5}  # values read or written for each parameter, at least: by all kernels, or by one
    for kind, precision in [(kind, "fp32") for kind in kinds] + [("adam", "bf16")]:
        table = Table(kind, "forward", precision, ["rows", "width", "elements"])
        for tensors, width in ((4, 1 << 24), (16, 1 << 24), (64, 1 << 23), (64, 1 << 25), (16, 1 << 28)):
            parameters = [torch.randn(width, device="cuda", dtype=DTYPES[precision], requires_grad=True) for _ in range(tensors)]
            for p in parameters:
                p.grad = torch.randn_like(p)
            optimizer = kinds[kind](parameters)
            for _ in range(3):
                optimizer.step()
            times = []
            for _ in range(REPLAYS):
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record()
                for _ in range(4):
                    optimizer.step()
                end.record()
                end.synchronize()
                times.append(start.elapsed_time(end) * 1e-3 / 4)
            seconds = statistics.median(times)
            table.rows.append([tensors, width, tensors * width * units[kind], float(f"{seconds:.4g}"), float(f"{(max(times) - min(times)) / seconds:.2g}")])
            del parameters, optimizer, p
            torch.cuda.empty_cache()


# ---- the host ----

def host_seconds():
    """Of one call as the host issues it, with the device kept busy elsewhere: it is not waited for."""
    x = torch.randn(64, 64, device="cuda", requires_grad=True)
    linear, norm = torch.nn.Linear(64, 64).cuda(), torch.nn.LayerNorm(64).cuda()
    y = torch.randn(64, 64, device="cuda")
    def cast_linear():
        with torch.autocast("cuda", torch.bfloat16):
            linear(x)
    calls = {"add": lambda: y + y, "linear": lambda: linear(x), "layernorm": lambda: norm(x), "autocast_linear": cast_linear,
             "linear_and_gradient": lambda: linear(x).sum().backward(), "sum_and_gradient": lambda: x.sum().backward()}
    out = {}
    for name, call in calls.items():
        for _ in range(200):
            call()
        torch.cuda.synchronize()
        times = []
        for _ in range(20):
            begin = time.perf_counter()
            for _ in range(50):
                call()
            times.append((time.perf_counter() - begin) / 50)
            torch.cuda.synchronize()
        out[name] = statistics.median(times)
    return out


def transfers():
    out = {}
    for size in (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 28):
        host, device = torch.empty(size, dtype=torch.uint8, pin_memory=True), torch.empty(size, dtype=torch.uint8, device="cuda")
        for name, call in (("to_device", lambda: device.copy_(host, non_blocking=True)), ("to_host", lambda: host.copy_(device, non_blocking=True))):
            times = []
            for _ in range(7):
                start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                start.record(); call(); end.record(); end.synchronize()
                times.append(start.elapsed_time(end) * 1e-3)
            out[f"{name} {size}"] = statistics.median(times)
    return out


def shapes_to_time(device_file):
    """A function of the precision; in another order every time: see merge.py."""
    def shapes(precision, every):
        chosen = (products_of(device_file, precision) if device_file
                  else [*linears(), *odd_products(150, 1), *odd_products(150, 2)][::every])
        random.Random(time.time()).shuffle(chosen)
        return chosen
    return shapes


PARTS_OF_PARTS = {"odd gemm bf16", "pools bf16", "pools fp32"}  # only where they are asked for


def parts_of(shapes):
    groups = ["resnext50_32x4d", "resnext101_64x4d"]
    cnns = ["resnet50", "resnet152", "vgg19", "alexnet", "googlenet", "densenet121"]
    return {"gemm bf16": lambda: gemm("bf16", shapes("bf16", 1)), "attention": lambda: attention("bf16"),
            "odd gemm bf16": lambda: odd_gemm("bf16", shapes("bf16", 1)), "attention with dropout": lambda: attention_with_dropout("bf16"),
            "memory bf16": lambda: memory_kernels("bf16"), "memory fp32": lambda: memory_kernels("fp32"),
            "by parts": lambda: time_parts(memory), "copies": copies_and_updates, "autocast": autocast_kernels, "cross entropy": cross_entropy, "optimizers": optimizers,
            "grouped conv bf16": lambda: convolutions("bf16", (64, 128, 256), groups, True),
            "grouped conv tf32": lambda: convolutions("tf32", (32, 64, 128), groups, True),
            "attention tf32": lambda: attention_of_images("tf32"), "strided bf16": lambda: strided("bf16"), "strided fp32": lambda: strided("fp32"),
            "conv bf16": lambda: convolutions("bf16", (64, 256), cnns), "conv tf32": lambda: convolutions("tf32", (128,), cnns),
            "between bf16": lambda: between_convolutions("bf16", (64, 512), cnns),
            "between fp32": lambda: between_convolutions("fp32", (32, 256), cnns),
            "pools bf16": lambda: between_convolutions("bf16", (64, 512), cnns, {"pool": BETWEEN["pool"]}),
            "pools fp32": lambda: between_convolutions("fp32", (32, 256), cnns, {"pool": BETWEEN["pool"]}),
            "joined bf16": lambda: joined("bf16"), "joined fp32": lambda: joined("fp32"),
            "bias bf16": lambda: biases("bf16"), "bias fp32": lambda: biases("fp32"),
            "batched": lambda: batched("bf16"), "fp8": lambda: fp8(list(linears())[::6]),
            "fp16": lambda: gemm("fp16", shapes("fp16", 12), ("forward",)), "tf32": lambda: gemm("tf32", shapes("tf32", 6)),
            "fp32": lambda: gemm("fp32", shapes("fp32", 25), ("forward",))}


def main():
    begin, out, words = time.time(), sys.argv[1], sys.argv[2:]
    again = words[1] if words[:1] == ["--again"] else None
    wanted = words[2:] if again else words
    extra = {"host_s": host_seconds(), "transfer_s": transfers()}
    parts = parts_of(shapes_to_time(again))
    for name, part in parts.items():
        if name not in (wanted or parts.keys() - PARTS_OF_PARTS):
            continue
        part()
        torch.cuda.empty_cache()
        print(f"{time.time() - begin:6.1f} s  {name}: {sum(len(t.rows) for t in Table.every)} points", flush=True)
        with open(out, "w") as file:
            json.dump({"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "device": torch.cuda.get_device_name(),
                       **extra, "measured": [t.json() for t in Table.every if t.rows]}, file)


main()
