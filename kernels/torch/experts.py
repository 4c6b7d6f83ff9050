"""Times on one GPU what a layer of experts does: products of a group, the router, moves of tokens, casts to fp8.

    python3 kernels/torch/experts.py OUT.json [--short] [part...]

Each line has what was done, its shape, the seconds on the device (a replayed graph: no launches in it), the bytes that
it must read and write, the seconds that the host takes to issue it and, but for products, the launches of a call.
"""
import json
import statistics
import sys
import time

import torch
from torch.nn import functional as F

from timing import timed

BF16, FP8, FP8_MOST = torch.bfloat16, torch.float8_e4m3fn, 448.0
STREAMS = 4  # as Transformer Engine spreads the products of a group
# hidden, columns of an expert, experts of a rank, those of the model, those of a token
MODELS = {"qwen3-30b-a3b": (2048, 768, 16, 128, 8), "qwen3-235b-a22b": (4096, 1536, 4, 128, 8),
          "deepseek-v3": (7168, 2048, 4, 256, 8), "mixtral-8x7b": (4096, 14336, 1, 8, 2),
          "gpt-oss-120b": (2880, 2880, 2, 128, 4), "small": (1024, 512, 32, 32, 4)}
TOKENS_OF_AN_EXPERT = (64, 256, 1024, 4096)
TOKENS = (4096, 16384)
lines = []


def random(*shape, dtype=BF16):
    return torch.randn(*shape, device="cuda", dtype=BF16).to(dtype)


def issued(call):
    """Seconds of the host for one call, of which the device has none left to wait for."""
    for _ in range(5):
        call()
    times = []
    for _ in range(9):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    torch.cuda.synchronize()
    return statistics.median(times)


def launches(call):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as prof:
        call()
        torch.cuda.synchronize()
    return sum(event.device_type == torch.autograd.DeviceType.CUDA for event in prof.events())


def note(what, shape, make, loaded=True):
    """make() -> a function that does it on buffers of its own, and the bytes that these have."""
    try:
        seconds, spread = timed(make, loaded)
        call, size = make()
        line = {"what": what} | shape | {"seconds": float(f"{seconds:.4g}"), "spread": float(f"{spread:.2g}"),
                                         "bytes": size, "host_s": float(f"{issued(call):.3g}")}
        lines.append(line if "product" in shape else line | {"launches": launches(call)})
    except (RuntimeError, AttributeError, TypeError, NotImplementedError) as error:
        lines.append({"what": what} | shape | {"error": str(error)[:200]})
        torch.cuda.synchronize()
    torch.cuda.empty_cache()


# ---- products of a group ----

def over_streams(calls, n):
    """One after the other on n streams in turn, which begin and end with the current one."""
    if n == 1:
        return lambda: [call() for call in calls]
    sides = [torch.cuda.Stream() for _ in range(n)]

    def run():
        here = torch.cuda.current_stream()
        for side in sides:
            side.wait_stream(here)
        for i, call in enumerate(calls):
            with torch.cuda.stream(sides[i % n]):
                call()
        for side in sides:
            here.wait_stream(side)
    return run


def operands(m, n, k, step, dtype):
    """Two matrices to multiply, the second as cuBLAS wants it in fp8: column by column."""
    rows, columns, depth = {"forward": (m, n, k), "input_gradient": (m, k, n), "weight_gradient": (n, k, m)}[step]
    if dtype == FP8:
        return random(rows, depth, dtype=FP8), random(columns, depth, dtype=FP8).t()
    if step == "forward":
        return random(m, k), random(n, k).t()
    if step == "input_gradient":
        return random(m, n), random(n, k)
    return random(m, n).t(), random(m, k)


def one_by_one(experts, m, n, k, step, dtype, streams):
    def make():
        one = torch.ones((), device="cuda")
        pairs = [operands(m, n, k, step, dtype) for _ in range(experts)]
        if dtype == FP8:
            calls = [lambda a=a, b=b: torch._scaled_mm(a, b, one, one, out_dtype=BF16, use_fast_accum=step == "forward")
                     for a, b in pairs]
        else:
            outs = [torch.empty(a.shape[0], b.shape[1], device="cuda", dtype=BF16) for a, b in pairs]
            calls = [lambda a=a, b=b, out=out: torch.mm(a, b, out=out) for (a, b), out in zip(pairs, outs)]
        size = sum(a.nbytes + b.nbytes + 2 * a.shape[0] * b.shape[1] for a, b in pairs)
        return over_streams(calls, min(streams, experts)), size
    return make


def at_once(experts, m, n, k):
    def make():
        a, b = random(experts * m, k), random(experts, n, k).transpose(1, 2)
        ends = torch.arange(m, experts * m + 1, m, device="cuda", dtype=torch.int32)
        torch.cuda.synchronize()  # `ends` must be there for other streams too
        return (lambda: torch._grouped_mm(a, b, offs=ends)), a.nbytes + b.nbytes + 2 * experts * m * n
    return make


def at_once_fp8(experts, m, n, k):
    def make():
        a, b = random(experts * m, k, dtype=FP8), random(experts, n, k, dtype=FP8).transpose(1, 2)
        ends = torch.arange(m, experts * m + 1, m, device="cuda", dtype=torch.int32)
        of_rows, of_columns = torch.ones(experts * m, device="cuda"), torch.ones(experts, n, device="cuda")
        torch.cuda.synchronize()
        return (lambda: torch._scaled_grouped_mm(a, b, of_rows, of_columns, offs=ends, out_dtype=BF16,
                                                 use_fast_accum=True)), a.nbytes + b.nbytes + 2 * experts * m * n
    return make


def groups(short):
    for model, (hidden, ffn, experts, _, _) in MODELS.items():
        for m in TOKENS_OF_AN_EXPERT[::2 if short else 1]:
            for product, n, k in (("fc1", 2 * ffn, hidden), ("fc2", hidden, ffn)):
                if experts * m * n > 4e9:
                    continue
                shape = {"model": model, "product": product, "experts": experts, "m": m, "n": n, "k": k}
                for step in ("forward", "input_gradient", "weight_gradient")[:1 if short else 3]:
                    for dtype in (BF16, FP8):
                        for streams in (1, STREAMS):
                            narrow = "fp8" if dtype == FP8 else "bf16"
                            note(f"products {narrow}", shape | {"pass": step, "streams": streams},
                                 one_by_one(experts, m, n, k, step, dtype, streams))
                note("grouped bf16", shape | {"pass": "forward"}, at_once(experts, m, n, k))
                note("grouped fp8", shape | {"pass": "forward"}, at_once_fp8(experts, m, n, k))


# ---- router and moves ----

def routes(short):
    for model, (hidden, _, _, experts, top_k) in MODELS.items():
        for tokens in TOKENS[:1 if short else 2]:
            shape = {"model": model, "tokens": tokens, "hidden": hidden, "experts": experts, "top_k": top_k}
            scores = 4 * tokens * experts

            def wide():
                x, w = random(tokens, hidden), random(experts, hidden)
                return (lambda: F.linear(x.float(), w.float())), x.nbytes * 5 + w.nbytes * 5 + scores

            def narrow():
                x, w = random(tokens, hidden), random(experts, hidden)
                return (lambda: F.linear(x, w)), x.nbytes + w.nbytes + scores // 2

            def choose():
                x = torch.randn(tokens, experts, device="cuda")

                def call():
                    weight, chosen = torch.topk(torch.softmax(x, -1), top_k)
                    weight = weight / weight.sum(-1, keepdim=True)
                    mask = torch.zeros_like(x, dtype=torch.int8).scatter_(1, chosen, 1)
                    return torch.zeros_like(x).scatter_(1, chosen, weight), mask, mask.sum(0)
                return call, 3 * scores

            def balance():
                x, counts = torch.randn(tokens, experts, device="cuda"), torch.randn(experts, device="cuda")
                return (lambda: (torch.softmax(x, -1).sum(0) * counts).sum() * 1e-3), 2 * scores

            for what, make in (("router fp32", wide), ("router bf16", narrow), ("top_k", choose), ("balance", balance)):
                note(what, shape, make)


def indices(tokens, experts, top_k):
    """Of copies sorted by expert: the token of each; and where the copies of each token are."""
    chosen = torch.rand(tokens, experts, device="cuda").topk(top_k).indices.flatten()
    order = torch.argsort(chosen, stable=True)
    return order // top_k, torch.argsort(order).view(tokens, top_k)


def moves(short):
    for model, (hidden, ffn, _, experts, top_k) in MODELS.items():
        for tokens in TOKENS[:1 if short else 2]:
            shape = {"model": model, "tokens": tokens, "hidden": hidden, "experts": experts, "top_k": top_k}
            rows = 2 * tokens * hidden
            token, place = indices(tokens, experts, top_k)

            def permute():
                x = random(tokens, hidden)
                out = torch.empty(tokens * top_k, hidden, device="cuda", dtype=BF16)
                return (lambda: torch.index_select(x, 0, token, out=out)), rows * (1 + top_k)

            def unpermute():
                x, out = random(tokens * top_k, hidden), torch.zeros(tokens, hidden, device="cuda", dtype=BF16)
                return (lambda: out.index_add_(0, token, x)), rows * (1 + top_k)

            def unpermute_sorted():
                x, w = random(tokens * top_k, hidden), random(tokens, top_k, 1)
                return (lambda: (x[place] * w).sum(1)), rows * (1 + top_k)

            def sort_chunks():
                x = random(tokens * top_k, hidden)
                parts = x.split([tokens * top_k // 64] * 64)
                order = [i // 8 + i % 8 * 8 for i in range(64)]
                return (lambda: torch.cat([parts[i] for i in order])), 2 * rows * top_k

            def weigh():
                x, w = random(tokens * top_k, 2 * ffn), torch.rand(tokens * top_k, 1, device="cuda")
                return (lambda: (F.silu(x[:, :ffn]) * x[:, ffn:] * w).to(BF16)), x.nbytes * 3 // 2

            for what, make in (("permute", permute), ("unpermute by index_add", unpermute), ("weighted swiglu", weigh),
                               ("unpermute by gather", unpermute_sorted), ("sort_chunks", sort_chunks)):
                note(what, shape, make)
            note("indices", shape, lambda: ((lambda: indices(tokens, experts, top_k)), 8 * tokens * top_k))


# ---- casts ----

def casts(short):
    sizes = [(rows, width) for width in (768, 2048, 4096, 7168) for rows in (256, 1024, 4096, 16384)]
    for rows, width in sizes[::4 if short else 1]:
        shape, size = {"rows": rows, "width": width}, 2 * rows * width
        scale = torch.ones((), device="cuda")

        def largest():
            x = random(rows, width)
            return (lambda: torch.linalg.vector_norm(x, float("inf"))), size

        def cast():
            x, out = random(rows, width), torch.empty(rows, width, device="cuda", dtype=FP8)
            return (lambda: out.copy_(x * scale)), size * 3 // 2

        def transpose():
            x = random(rows, width, dtype=FP8).view(torch.uint8)
            return (lambda: x.t().contiguous()), size

        for what, make in (("largest", largest), ("cast", cast), ("transpose", transpose)):
            note(what, shape, make)
    whole = torch.compile(cast_both_ways)
    for rows, width in sizes[::4 if short else 1]:
        def both():
            x, scale = random(rows, width), torch.ones((), device="cuda")
            return (lambda: whole(x, scale)), 2 * rows * width + 2 * rows * width
        note("cast both ways, compiled", {"rows": rows, "width": width}, both)


def cast_both_ways(x, scale):
    narrow = (x * scale).clamp(-FP8_MOST, FP8_MOST).to(FP8)
    return narrow, narrow.t().contiguous()


PARTS = {"groups": groups, "routes": routes, "moves": moves, "casts": casts}


def main():
    begin, out, words = time.time(), sys.argv[1], sys.argv[2:]
    for name in [word for word in words if word in PARTS] or PARTS:
        PARTS[name]("--short" in words)
        print(f"{time.time() - begin:6.1f} s  {name}: {len(lines)} lines", flush=True)
        with open(out, "w") as file:
            about = {"torch": torch.__version__, "device": torch.cuda.get_device_name()}
            json.dump(about | {"lines": lines}, file, indent=0)


main()
