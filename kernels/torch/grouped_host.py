"""Times what a grouped linear layer takes of the host beside its launches, for 1 to 32 experts in bf16 and in mxfp8.

    python3 kernels/torch/grouped_host.py OUT.json

Own code by likeness to Transformer Engine's GroupedLinear (pytorch/module/grouped_linear.py, pytorch/quantized_tensor.py) as
Megatron-Core calls it: a quantised tensor is an object with copies by rows and by columns and their scales, cut of one
buffer; usages of quantizers are set, weights come from a cache, all is saved for the backward and restored, gradients get
memory that nobody writes, and a hook of the data-parallel wrapper comes for each weight. Neither products nor casts are
launched, but one kernel a pass. What calls into C++ look up is less than there. Chains of four layers, whose tensors are
small, so that the device is never behind; seconds of a layer.
"""
import contextlib
import json
import statistics
import sys
import time

import torch

BF16, SIDE, CHAIN = torch.bfloat16, 64, 4
NOTHING = torch.empty(0, device="cuda", dtype=torch.uint8)
FLAGS = [f"flag{i}" for i in range(16)]  # what the layer keeps in its context beside tensors


def clock(call, repeats=20, inner=4):
    for _ in range(inner):
        call()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for _ in range(inner):
            call()
        times.append((time.perf_counter() - begin) / inner)
        torch.cuda.synchronize()
    return statistics.median(times)


class Quantized:
    """Copies of a tensor by rows and by columns, each with scales."""

    def __init__(self, parts, quantizer, dtype):
        self.rows, self.row_scales, self.columns, self.column_scales = parts
        self.quantizer, self.dtype, self.format, self.swizzled = quantizer, dtype, quantizer.format, False

    def parts(self):
        return [self.rows, self.row_scales, self.columns, self.column_scales]

    def give_up(self):
        tensors = self.parts()
        self.rows = self.row_scales = self.columns = self.column_scales = None
        return tensors, self

    def take_back(self, tensors):
        self.rows, self.row_scales, self.columns, self.column_scales = tensors[:4]
        return tensors[4:]

    def check_usage(self, rows=None, columns=None):
        rows = self.rows is not None if rows is None else rows
        columns = self.columns is not None if columns is None else columns
        if (rows and (self.rows is None or self.row_scales is None)) or (columns and (self.columns is None or self.column_scales is None)):
            raise RuntimeError("a copy is missing")

    def clear(self):
        for part in self.parts():
            if part is not None:
                part.data = NOTHING


class Quantizer:
    def __init__(self):
        self.by_rows = self.by_columns = self.internal = True
        self.format = "e4m3"

    def set_usage(self, *, rows=None, columns=None):
        if rows is not None:
            self.by_rows = rows
        if columns is not None:
            self.by_columns = columns


def quantize(x, splits, quantizers):
    views, n = torch.split(x, splits), len(splits)
    parts = torch.split(torch.empty(4 * n * SIDE, device="cuda", dtype=torch.uint8), SIDE)
    return [Quantized(parts[4 * i : 4 * i + 4], q, v.dtype) for i, (v, q) in enumerate(zip(views, quantizers))]


def to_save(*tensors):
    kept, objects = [], []
    for t in tensors:
        if isinstance(t, Quantized):
            parts, t = t.give_up()
            kept.extend(parts)
            objects.append(t)
        else:
            kept.append(t)
            objects.append(None)
    return kept, objects


def restored(objects, saved):
    tensors, rest = [], list(saved)
    for o in objects:
        if o is None:
            tensors.append(rest[0])
            rest = rest[1:]
        else:
            rest = o.take_back(rest)
            tensors.append(o)
    return tensors


def look_up(*lists):
    for t in (t for tensors in lists for t in tensors):
        for part in t.parts() if isinstance(t, Quantized) else [t]:
            part.data_ptr()


def check_all(tensors, **usage):
    for t in tensors:
        if isinstance(t, Quantized):
            t.check_usage(**usage)


class Grouped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, args, *weights):
        splits, narrow, module, quantizers = args
        view = x.reshape(-1, SIDE)
        if narrow:
            for q in quantizers[0] + quantizers[1]:
                q.set_usage(rows=True, columns=x.requires_grad)
            inputs = quantize(view, splits, quantizers[0])
            used = [module.cached(w, q, f"weight{i}") for i, (w, q) in enumerate(zip(weights, quantizers[1]))]
        else:
            inputs, used = torch.split(view, splits), [w if w.dtype == BF16 else w.to(BF16) for w in weights]
        result = torch.empty([sum(splits), SIDE], dtype=BF16, device="cuda")
        look_up(used, inputs)
        torch.mul(view, 2, out=result)
        check_all(inputs, rows=True, columns=True)
        check_all(used, columns=True)
        copies = [Quantized(u.parts(), u.quantizer, u.dtype) if narrow else u for u in used]  # the cache keeps its own
        kept, ctx.objects = to_save(*inputs, *copies, *weights)
        ctx.save_for_backward(*kept)
        ctx.gradients = [lambda w=w: w.main_grad for w in weights]
        for flag in FLAGS:
            setattr(ctx, flag, True)
        ctx.splits, ctx.narrow, ctx.quantizers, ctx.shape = splits, narrow, quantizers[2], x.shape
        return result.view(-1, *x.shape[1:-1], SIDE)

    @staticmethod
    def backward(ctx, gradient):
        with torch.cuda.nvtx.range("grouped backward"):
            tensors, n = restored(ctx.objects, ctx.saved_tensors), len(ctx.splits)
            inputs, used, weights = tensors[:n], tensors[n : 2 * n], tensors[2 * n :]
            sums, view = [f() for f in ctx.gradients], gradient.contiguous().view(-1, SIDE)
            if ctx.narrow:
                for q in ctx.quantizers:
                    q.set_usage(rows=True, columns=True)
                gradients = quantize(view, ctx.splits, ctx.quantizers)
            else:
                gradients = torch.split(view, ctx.splits)
            result = torch.empty((sum(ctx.splits), SIDE), dtype=BF16, device="cuda")
            check_all(used, columns=True)
            look_up(used, gradients)
            torch.mul(view, 2, out=result)
            look_up(inputs, gradients, sums)
            for x in inputs:
                if isinstance(x, Quantized):
                    x.clear()
            unwritten = []
            for w in weights:
                w.grad_added_to_main_grad = True
                unwritten.append(torch.empty(w.main_grad.shape, dtype=w.dtype, device=torch.cuda.current_device()))
        return (result.view(ctx.shape), None, *unwritten)


class Layer(torch.nn.Module):
    def __init__(self, n, narrow):
        super().__init__()
        self.n, self.narrow, self.cache, self.nodes, self.buckets = n, narrow, {}, [], {}
        self.quantizers = [[Quantizer() for _ in range(n)] for _ in range(3)]
        for i in range(n):
            w = torch.nn.Parameter(torch.zeros(SIDE, SIDE, device="cuda", dtype=BF16))
            w.main_grad, w.grad_added_to_main_grad = torch.zeros_like(w), False
            self.register_parameter(f"weight{i}", w)
            self.hook(w)

    def hook(self, w):
        self.buckets[w] = set()

        def ready(*unused):
            if w in self.buckets:
                if w.grad is not None and not w.grad_added_to_main_grad:
                    w.main_grad.add_(w.grad)
                w.grad = None
                self.buckets[w].add(w)

        node = w.expand_as(w).grad_fn.next_functions[0][0]
        node.register_hook(ready)
        self.nodes.append(node)

    def cached(self, w, q, name):
        found = self.cache.get(name)
        if found is None or (q.by_rows and found.rows is None) or (q.by_columns and found.columns is None):
            found = self.cache[name] = quantize(w.detach(), [SIDE], [q])[0]
        return found

    @contextlib.contextmanager
    def named(self, x):
        torch.cuda.nvtx.range_push("grouped forward")
        yield x
        torch.cuda.nvtx.range_pop()

    def forward(self, x, splits):
        with torch.cuda.device(next(self.parameters()).device), self.named(x) as x:
            weights = [getattr(self, f"weight{i}") for i in range(self.n)]
            if self.narrow:
                for q in (q for each in self.quantizers for q in each):
                    q.internal = True
            return Grouped.apply(x, (splits, self.narrow, self, [list(q) for q in self.quantizers]), *weights)


def timed(n, precision):
    layers, splits = [Layer(n, precision == "mxfp8") for _ in range(CHAIN)], [SIDE] * n
    x = torch.randn(SIDE * n, SIDE, device="cuda", dtype=BF16, requires_grad=True)

    def forward():
        y = x
        for layer in layers:
            y = layer(y, splits)
        return y

    ones, forward_s = torch.ones_like(x), clock(forward)
    all_s = clock(lambda: torch.autograd.backward(forward(), ones))
    return {"precision": precision, "experts": n, "forward_s": forward_s / CHAIN, "backward_s": (all_s - forward_s) / CHAIN}


if __name__ == "__main__":
    rows = [timed(n, precision) for precision in ("bf16", "mxfp8") for n in (1, 4, 8, 16, 32)]
    for row in rows:
        print(row)
    json.dump({"torch": torch.__version__, "rows": rows}, open(sys.argv[1], "w"), indent=1)
