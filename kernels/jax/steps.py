"""Gradients of GPT and Llama blocks as XLA compiles them for a GPU: Flax, layers in one scan, cuDNN's attention,
products by cuBLASLt alone as MaxText's recipes for GPUs have them, in bf16 or in fp8 by Flax's direct operations.

    python3 kernels/jax/steps.py OUT.json

times the loss alone and with all gradients on one GPU, with weights in bf16 as FSDP gathers them, and sums the kernels of
the latter by name."""
import collections
import dataclasses
import glob
import gzip
import json
import os
import statistics
import sys
import tempfile
import time

os.environ.setdefault("XLA_FLAGS", "--xla_gpu_enable_triton_gemm=false")

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax.linen import fp8_ops


@dataclasses.dataclass(frozen=True)
class Sizes:
    kind: str
    layers: int
    hidden: int
    ffn: int
    heads: int
    kv_heads: int
    head_size: int
    seq: int
    vocab: int


MODELS = {"gpt-5b-cut": Sizes("gpt", 8, 4096, 16384, 32, 32, 128, 2048, 51200),
          "gpt-175b-cut": Sizes("gpt", 2, 12288, 49152, 96, 96, 128, 2048, 51200),
          "llama-8b-cut": Sizes("llama", 8, 4096, 14336, 32, 8, 128, 4096, 32000),
          "llama-70b-cut": Sizes("llama", 3, 8192, 28672, 64, 8, 128, 4096, 32000)}
SAMPLES = {"gpt-5b-cut": 4, "gpt-175b-cut": 2, "llama-8b-cut": 2, "llama-70b-cut": 2}
# recomputation, precision of products
WAYS = [("full", "bf16"), ("none", "bf16"), ("full", "fp8"), ("none", "fp8")]
GROUPS, REPEATS, SCALED, KERNELS = 3, 4, 4, 70
BF16, FP32 = jnp.bfloat16, jnp.float32


def rotary(x):
    seq, half = x.shape[1], x.shape[3] // 2
    angle = jnp.arange(seq)[:, None] * (1e4 ** (-jnp.arange(half) / half))[None]
    cos, sin = (f(angle)[None, :, None].astype(FP32) for f in (jnp.cos, jnp.sin))
    a, b = jnp.split(x.astype(FP32), 2, -1)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1).astype(BF16)


def norm(kind, name):
    made = nn.LayerNorm if kind == "gpt" else nn.RMSNorm
    return made(dtype=BF16, param_dtype=FP32, name=name)


class Block(nn.Module):
    sizes: Sizes
    precision: str

    def dense(self, n, name):
        op = fp8_ops.Fp8DirectDotGeneralOp if self.precision == "fp8" else None
        return nn.Dense(n, use_bias=self.sizes.kind == "gpt", dtype=BF16, param_dtype=BF16, dot_general_cls=op, name=name)

    def attended(self, y):
        m, rows = self.sizes, y.shape[:2]
        q, k, v = (self.dense(n * m.head_size, name)(y).reshape(*rows, n, m.head_size)
                   for name, n in (("q", m.heads), ("k", m.kv_heads), ("v", m.kv_heads)))
        if m.kind != "gpt":
            q, k = rotary(q), rotary(k)
        o = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn")
        return self.dense(m.hidden, "o")(o.reshape(*rows, m.heads * m.head_size))

    def fed_forward(self, y):
        up = self.dense(self.sizes.ffn, "u")(y)
        z = jax.nn.gelu(up) if self.sizes.kind == "gpt" else jax.nn.silu(self.dense(self.sizes.ffn, "g")(y)) * up
        return self.dense(self.sizes.hidden, "w")(z)

    @nn.compact
    def __call__(self, x, _):
        x = x + self.attended(norm(self.sizes.kind, "n1")(x))
        return x + self.fed_forward(norm(self.sizes.kind, "n2")(x)), None


class Model(nn.Module):
    sizes: Sizes
    recompute: str
    precision: str

    @nn.compact
    def __call__(self, ids):
        m = self.sizes
        x = nn.Embed(m.vocab, m.hidden, dtype=BF16, param_dtype=BF16)(ids)
        if m.kind == "gpt":
            x = x + self.param("positions", nn.initializers.normal(0.02), (m.seq, m.hidden), BF16)
        block = Block
        if self.recompute == "full":
            block = nn.remat(Block, policy=jax.checkpoint_policies.nothing_saveable, prevent_cse=False)
        layers = nn.scan(block, variable_axes={"params": 0, "_overwrite_with_gradient": 0}, split_rngs={"params": True}, length=m.layers)
        x, _ = layers(m, self.precision)(x, None)
        logits = nn.Dense(m.vocab, use_bias=False, dtype=BF16, param_dtype=BF16)(norm(m.kind, "last")(x)).astype(FP32)
        return (jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, ids[..., None], -1)[..., 0]).mean()


def median_s(call):
    """Of one call, among several that are dispatched ahead."""
    for _ in range(2):
        jax.block_until_ready(call())
    out = []
    for _ in range(GROUPS):
        begin = time.perf_counter()
        for _ in range(REPEATS):
            last = call()
        jax.block_until_ready(last)
        out.append((time.perf_counter() - begin) / REPEATS)
    return statistics.median(out)


def kernels_of(call):
    """Name, launches and microseconds in one call, the longest first."""
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder, create_perfetto_trace=True):
            jax.block_until_ready(call())
        with gzip.open(glob.glob(folder + "/**/perfetto_trace.json.gz", recursive=True)[0]) as file:
            events = json.load(file)["traceEvents"]
    streams = {(e["pid"], e.get("tid")) for e in events if e.get("name") == "thread_name" and "Stream" in e["args"]["name"]}
    sums = collections.defaultdict(lambda: [0, 0.0])
    for e in events:
        if e.get("ph") == "X" and (e["pid"], e["tid"]) in streams:
            sums[e["name"]][0] += 1
            sums[e["name"]][1] += e["dur"]
    rows = sorted(([name[:120], n, round(us, 1)] for name, (n, us) in sums.items()), key=lambda r: -r[2])
    return {"n": sum(r[1] for r in rows), "us": sum(r[2] for r in rows), "longest": rows[:KERNELS]}


def with_scales(gradients, p, ids):
    """In fp8: scales of a few steps. With the first ones gradients are 0, and products of zeros draw less power."""
    scales = "_overwrite_with_gradient"
    for _ in range(SCALED if scales in p else 0):
        p = p | {scales: gradients(p, ids)[1][scales]}
    return p


def timed(name, recompute, precision):
    sizes, samples, key = MODELS[name], SAMPLES[name], jax.random.PRNGKey(0)
    model = Model(sizes, recompute, precision)
    ids = jax.random.randint(key, (samples, sizes.seq), 0, sizes.vocab)
    p = jax.jit(model.init)(key, ids)
    forward, gradients = jax.jit(model.apply), jax.jit(jax.value_and_grad(model.apply, allow_int=True))
    p = with_scales(gradients, p, ids)
    return {"model": name, "samples": samples, "recompute": recompute, "precision": precision,
            "forward_s": median_s(lambda: forward(p, ids)), "gradients_s": median_s(lambda: gradients(p, ids)),
            "kernels": kernels_of(lambda: gradients(p, ids))}


def main():
    rows = []
    for way in WAYS:
        for name in MODELS:
            try:
                rows.append(timed(name, *way))
                print({k: v for k, v in rows[-1].items() if k != "kernels"}, flush=True)
            except jax.errors.JaxRuntimeError as error:
                if "RESOURCE_EXHAUSTED" not in str(error):
                    raise
                print(name, *way, "does not fit", flush=True)
            jax.clear_caches()
            with open(sys.argv[1], "w") as file:
                json.dump({"jax": jax.__version__, "device": jax.devices()[0].device_kind, "rows": rows}, file)


main()
