"""Times what the host takes for a linear layer of PyTorch, and for a block of experts whole and in parts.

    python3 kernels/torch/host_pace.py OUT.json

linear: the forward of torch.nn.Linear, 2,048 to 2,048, 8,192 tokens in bf16, calls in bursts that the device's queue holds.
github.com/NVIDIA/TransformerEngine/issues/2053 has it of GB200, GH200 and DGX H100, so that this host can be set beside those.
block: own code by likeness to Megatron-Core. Whole: norm, two linear layers, router, permutation, collectives, grouped layers,
a sum, and one call of autograd. Parts: the same cut into attention, dispatch, experts and combine on two streams
(core/pipeline_parallel/utils.py, core/models/common/model_chunk_schedule_plan.py): a plan built for each pass, events,
detached inputs, memory freed that other streams know of, a call of autograd for each part, a context of fp8 around each.
Delayed: weight gradients by a later call for each layer (delay_wgrad_compute). Tensors are small, so that the device is never
behind; seconds of a block. An exchange is a kernel here.
"""
import contextlib
import dataclasses
import functools
import json
import queue
import sys
import weakref

import torch
from torch.autograd import Variable

from grouped_host import BF16, SIDE, Layer, clock

COMM, REPEATS = None, 15


def linear_times():
    layer = torch.nn.Linear(2048, 2048, bias=False, device="cuda", dtype=BF16)
    x = torch.randn(8192, 2048, device="cuda", dtype=BF16)
    with_bias = torch.nn.Linear(2048, 2048, device="cuda", dtype=BF16)
    out = {}
    for name, module in (("plain", layer), ("bias", with_bias)):
        out[name] = clock(lambda: module(x), 50, 100)
        with torch.no_grad():
            out[name + "_no_grad"] = clock(lambda: module(x), 50, 100)
    y = torch.zeros(64, device="cuda", dtype=BF16)
    out["mul"] = clock(lambda: torch.mul(y, 2), 50, 100)
    return out


# ---- a block ----


class Copy(torch.autograd.Function):
    """An exchange or a permutation: one kernel each way, nothing saved."""

    @staticmethod
    def forward(ctx, x):
        return torch.mul(x, 1)

    @staticmethod
    def backward(ctx, g):
        return torch.mul(g, 1)


@dataclasses.dataclass
class Recipe:
    margin: int = 0
    fp8_format: str = "e4m3"
    fp8_dpa: bool = False
    fp8_mha: bool = False

    def __repr__(self):
        return f"recipe_type={self.__class__.__name__}, margin={self.margin}, format={str(self.fp8_format).split('.')[0]},"


class State:
    enabled, calibrating, recipe, group, depth, first, graph = False, False, None, None, 0, False, False
    seen = {}


@contextlib.contextmanager
def narrow_context(recipe):
    kept = (State.enabled, State.calibrating, State.recipe, State.group, State.first, State.graph)
    key = f"{str(recipe)}:{None}"
    State.seen[key] = (recipe, None)
    State.enabled, State.calibrating, State.recipe, State.group, State.graph = True, False, recipe, None, False
    State.first = State.depth == 0
    State.depth += 1
    try:
        yield
    finally:
        State.enabled, State.calibrating, State.recipe, State.group, State.first, State.graph = kept
        State.depth -= 1


class Block(torch.nn.Module):
    def __init__(self, experts, narrow):
        super().__init__()
        self.qkv, self.proj = Layer(1, narrow), Layer(1, narrow)
        self.fc1, self.fc2 = Layer(experts, narrow), Layer(experts, narrow)
        self.gate = torch.nn.Parameter(torch.ones(SIDE, device="cuda", dtype=BF16))
        self.norm = torch.nn.Parameter(torch.ones(SIDE, device="cuda", dtype=BF16))
        self.splits, self.narrow, self.recipe = [SIDE] * experts, narrow, Recipe()
        self.rows = SIDE * experts

    def attend(self, x):
        h = self.proj(self.qkv(x * self.norm, [self.rows]), [self.rows]) + x
        weights = (h * self.gate).sum(dim=1)
        return h, Copy.apply(h), weights

    def experts(self, tokens, weights):
        y = self.fc1(Copy.apply(tokens), self.splits)
        return Copy.apply(self.fc2(y * weights[:, None], self.splits))

    def around(self):
        return narrow_context(self.recipe) if self.narrow else contextlib.nullcontext()

    def forward(self, x):
        with self.around():
            h, tokens, weights = self.attend(x)
            y = self.experts(Copy.apply(tokens), Copy.apply(weights))
            return Copy.apply(y) + h


def viewless(t):
    return t if t._base is None else t.clone()


@contextlib.contextmanager
def on(stream, event):
    event.wait(stream)
    try:
        yield
    finally:
        event.record(stream)


def weak(method):
    ref = weakref.WeakMethod(method)
    return lambda *args: ref()(*args)


class Part:
    def __init__(self, call, stream, event, state, name, frees, later=()):
        self.call, self.run, self.back = call, weak(self.forward_part), weak(self.backward_part)
        self.stream, self.event, self.state, self.name, self.frees, self.later = stream, event, state, name, frees, later
        self.detached, self.before = (), ()

    def detach(self, t):
        d = viewless(t).detach()
        d.requires_grad = t.requires_grad
        self.before, self.detached = self.before + (t,), self.detached + (d,)
        return d

    def forward_part(self, *args):
        return self.call(self, *args)

    def backward_part(self, outputs, gradients):
        gradients = gradients + tuple(e.grad for e in self.detached)
        Variable._execution_engine.run_backward(
            tensors=outputs + self.before, grad_tensors=gradients, keep_graph=False, create_graph=False, inputs=tuple(),
            allow_unreachable=True, accumulate_grad=True)
        return gradients

    def forward(self, inputs):
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        with on(self.stream, self.event):
            torch.cuda.nvtx.range_push(f"{self.name} forward")
            with torch.cuda.stream(self.stream):
                self.inputs = [viewless(e).detach() for e in inputs]
                for mine, given in zip(self.inputs, inputs):
                    mine.requires_grad = given.requires_grad
                data = self.run(*self.inputs)
                self.output = tuple(viewless(e) for e in data) if isinstance(data, tuple) else viewless(data)
            torch.cuda.nvtx.range_pop()
        if self.frees:
            for e in inputs:
                e.record_stream(self.stream)
                e.untyped_storage().resize_(0)
        return self.output

    def backward(self, gradients):
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        with on(self.stream, self.event):
            torch.cuda.nvtx.range_push(f"{self.name} backward")
            with torch.cuda.stream(self.stream):
                outputs = self.output if isinstance(self.output, tuple) else (self.output,)
                gradients = self.back(outputs, gradients)
            torch.cuda.nvtx.range_pop()
        for g in gradients:
            g.record_stream(self.stream)
        result = tuple(e.grad for e in self.inputs)
        self.inputs = self.output = None
        return result[0] if len(result) == 1 else result

    def weights(self):
        with torch.cuda.nvtx.range(f"{self.name} wgrad"):
            for layer in self.later:
                layer.weight_gradients()


class Kept:
    pass


def plan(block, comp):
    """What is built for each pass of a chunk: closures of a layer and their nodes."""
    event, state = torch.cuda.Event(), Kept()

    def attend(node, x):
        h, tokens, weights = block.attend(x)
        state.residual = node.detach(h)
        return tokens, weights

    def dispatch(node, tokens, weights):
        state.weights = node.detach(Copy.apply(weights))
        return Copy.apply(tokens)

    def experts(node, tokens):
        return block.experts(tokens, state.weights)

    def combine(node, y):
        out = Copy.apply(y) + state.residual
        state.residual.record_stream(torch.cuda.current_stream())
        state.residual = None
        return out

    attention, grouped = (block.qkv, block.proj), (block.fc1, block.fc2)
    calls = ((attend, comp, "attn", False, attention), (dispatch, COMM, "dispatch", True, ()),
             (experts, comp, "mlp", True, grouped), (combine, COMM, "combine", True, ()))
    return [Part(call, stream, event, state, name, frees, later) for call, stream, name, frees, later in calls]


class Delayed(Layer):
    """Puts what a weight gradient needs aside, and launches it when called."""

    def __init__(self, n, narrow):
        super().__init__(n, narrow)
        self.store, self.hooks = queue.Queue(), [lambda: None]

    def forward(self, x, splits):
        y = super().forward(x, splits)
        if y.requires_grad:
            y.register_hook(lambda g: self.store.put([[g], functools.partial(torch.mul, g, 2)]))
        return y

    def weight_gradients(self):
        with torch.cuda.nvtx.range("grouped wgrad"):
            tensors, call = self.store.get(block=False)
            call()
            for w in [getattr(self, f"weight{i}") for i in range(self.n)]:
                w.grad_added_to_main_grad = True
            for hook in self.hooks:
                hook()
            del tensors


def times_of(experts, narrow, delayed):
    chain = 3
    blocks = [Block(experts, narrow) for _ in range(chain)]
    if delayed:
        for b in blocks:
            b.qkv, b.proj, b.fc1, b.fc2 = (Delayed(n, narrow) for n in (1, 1, experts, experts))
    x = torch.randn(SIDE * experts, SIDE, device="cuda", dtype=BF16, requires_grad=True)
    ones, comp = torch.ones_like(x), torch.cuda.current_stream()

    def whole():
        y = x
        for b in blocks:
            y = b(y)
        return y

    def in_parts():
        y, plans = x, [plan(b, comp) for b in blocks]
        for b, parts in zip(blocks, plans):
            y = y.clone() if y is x else y
            for part in parts:
                with b.around():
                    y = part.forward(y)
        return y, plans

    def back(plans):
        g = ones
        for parts in reversed(plans):
            for part in reversed(parts):
                g = part.backward(g)
                if delayed:
                    part.weights()

    both = lambda: back(in_parts()[1])
    row = {"experts": experts, "precision": "mxfp8" if narrow else "bf16", "delayed": delayed}
    row["parts_forward_s"] = clock(in_parts, REPEATS) / chain
    row["parts_both_s"] = clock(both, REPEATS) / chain
    if not delayed:
        row["whole_forward_s"] = clock(whole, REPEATS) / chain
        row["whole_both_s"] = clock(lambda: torch.autograd.backward(whole(), ones), REPEATS) / chain
    return row


if __name__ == "__main__":
    COMM = torch.cuda.Stream()
    result = {"torch": torch.__version__, "linear": linear_times(), "blocks": []}
    print(result["linear"], flush=True)
    for repeat in range(2):
        for experts in (8, 16):
            for narrow in (False, True):
                for delayed in (False, True):
                    result["blocks"].append(dict(times_of(experts, narrow, delayed), run=repeat))
                    print(result["blocks"][-1], flush=True)
    result["linear_again"] = linear_times()
    print(result["linear_again"])
    json.dump(result, open(sys.argv[1], "w"), indent=1)
