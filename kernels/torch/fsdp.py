"""Micro-batches of FSDP2 as one rank of eight runs them, on one GPU: the process group is PyTorch's fake one.

    python3 kernels/torch/fsdp.py OUT.json

Gathered parameters are the own shard eight times, copied on the stream of the gathers, so that values are as in training.
Steps: `copied` (no more than that), `nvlink` and `slow`: sixteen blocks as of NCCL copy beside it for as long as the bytes
take at 330 and 100 GB/s. Models: OLMo 2 compiled (norms after, norms of queries and keys over all heads, z-loss), Llama 2 7B
of foundation-model-stack in eager code (2 x 2 rotations in fp32 by mul and sum), Llama 3 8B of torchtitan (complex rotations).
Attention is FlashAttention-2. Rotations and losses are timed alone, too. It was run in two parts.
"""
import json
import sys
import time
import traceback

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore

BEGAN = time.time()
WORLD, LIMIT_S = 8, 300
OUT = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "cases": [], "errors": []}
dev = torch.device("cuda")

HOLD = r'''
extern "C" __global__ void __launch_bounds__(640, 1)
hold(unsigned long long ns, uint4 *from, uint4 *to, unsigned long long per_block)
{
    extern __shared__ int shared[];
    unsigned long long done = 0, began, now;
    if (threadIdx.x == 0) shared[0] = 0;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
    const uint4 *f = from + blockIdx.x * per_block;
    uint4 *t = to + blockIdx.x * per_block;
    do {
        for (int piece = 0; piece < 4; piece++) {
            const unsigned long long at = (done + threadIdx.x) % per_block, at2 = (done + 640 + threadIdx.x) % per_block;
            uint4 a = f[at], b = f[at2];
            t[at] = a; t[at2] = b;
            done += 1280;
        }
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    } while (now - began < ns);
}'''


class Wire:
    def __init__(self):
        self.rate = None
        try:
            import cupy
            self.cupy = cupy
            self.kernel = cupy.RawKernel(HOLD, "hold")
            self.kernel.max_dynamic_shared_size_bytes = 82 * 1024
            self.a, self.b = (cupy.zeros(16 << 26, cupy.uint8) for _ in range(2))
        except Exception as e:
            OUT["errors"].append(f"no cupy: {e}")
            self.cupy = None

    def take(self, n_bytes):
        if not self.rate or not self.cupy:
            return
        ns = int(n_bytes * (WORLD - 1) / WORLD / self.rate * 1e9)
        with self.cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream):
            self.kernel((16,), (640,), (self.cupy.uint64(ns), self.a, self.b, self.cupy.uint64((1 << 26) // 16)), shared_mem=82 * 1024)


WIRE = Wire()
_gather, _scatter = dist.all_gather_into_tensor, dist.reduce_scatter_tensor


def _named(args, kwargs):
    tensors = list(args[:2])
    for k in ("output_tensor", "output", "input_tensor", "input"):
        if k in kwargs:
            tensors.append(kwargs[k])
    return tensors[0], tensors[1]


def gather(*args, **kwargs):
    out, inp = _named(args, kwargs)
    with torch.no_grad():
        out.view(WORLD, -1).copy_(inp.view(1, -1).expand(WORLD, -1))
    WIRE.take(out.numel() * out.element_size())
    return _gather(*args, **kwargs)


def scatter(*args, **kwargs):
    out, inp = _named(args, kwargs)
    with torch.no_grad():
        out.copy_(inp.view(-1)[:out.numel()].view_as(out))
    WIRE.take(inp.numel() * inp.element_size())
    return _scatter(*args, **kwargs)


dist.all_gather_into_tensor, dist.reduce_scatter_tensor = gather, scatter


class FullNorm(nn.Module):
    """RMSNorm in fp32, as OLMo-core's (full_precision) and foundation-model-stack's (use_high_precision_pow)."""

    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        f = x.float()
        f = f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * f.type_as(x)


class OlmoBlock(nn.Module):
    def __init__(self, d, heads, ffn):
        super().__init__()
        self.heads, self.size = heads, d // heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.w1, self.w3, self.w2 = nn.Linear(d, ffn, bias=False), nn.Linear(d, ffn, bias=False), nn.Linear(ffn, d, bias=False)
        self.qn, self.kn, self.an, self.fn = (FullNorm(d) for _ in range(4))

    def rotate(self, t, sin, cos):
        f = t.float()
        a, b = f.view(*f.shape[:-1], 2, -1).unbind(-2)
        return (f * cos + torch.cat((-b, a), -1) * sin).type_as(t)

    def forward(self, x, sin, cos):
        n, s, d = x.shape
        q, k = (m(w(x)).view(n, s, self.heads, self.size) for m, w in ((self.qn, self.q), (self.kn, self.k)))
        v = self.v(x).view(n, s, self.heads, self.size)
        q, k = self.rotate(q, sin, cos), self.rotate(k, sin, cos)
        a = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.an(self.o(a.transpose(1, 2).reshape(n, s, d)))
        return x + self.fn(self.w2(F.silu(self.w1(x)) * self.w3(x)))


class FmsBlock(nn.Module):
    def __init__(self, d, heads, ffn):
        super().__init__()
        self.heads, self.size = heads, d // heads
        self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.w1, self.w3, self.w2 = nn.Linear(d, ffn, bias=False), nn.Linear(d, ffn, bias=False), nn.Linear(ffn, d, bias=False)
        self.an, self.fn = FullNorm(d), FullNorm(d)

    def rotate(self, t, m):
        f = t.float().view(*t.shape[:-1], -1, 2)
        return m.mul(f.unsqueeze(-2)).sum(5).flatten(3).type_as(t)

    def forward(self, x, m, _):
        n, s, d = x.shape
        r = x
        x = self.an(x)
        q, k, v = (w(x).view(n, s, self.heads, self.size) for w in (self.q, self.k, self.v))
        q, k = self.rotate(q, m), self.rotate(k, m)
        a = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = self.o(a.transpose(1, 2).reshape(n, s, d)) + r
        r = x
        x = self.fn(x)
        return self.w2(F.silu(self.w1(x)) * self.w3(x)) + r


class TitanBlock(nn.Module):
    """torchtitan's: rotations by complex numbers, keys and values repeated."""

    def __init__(self, d, heads, ffn):
        super().__init__()
        self.heads, self.kv, self.size = heads, 8, d // heads
        self.q, self.o = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.k, self.v = (nn.Linear(d, self.kv * self.size, bias=False) for _ in range(2))
        self.w1, self.w3, self.w2 = nn.Linear(d, ffn, bias=False), nn.Linear(d, ffn, bias=False), nn.Linear(ffn, d, bias=False)
        self.an, self.fn = FullNorm(d), FullNorm(d)

    def repeat(self, t):
        n, s, h, e = t.shape
        return t[:, :, :, None, :].expand(n, s, h, self.heads // self.kv, e).reshape(n, s, self.heads, e)

    def forward(self, x, f, _):
        n, s, d = x.shape
        h = self.an(x)
        q, k, v = self.q(h).view(n, s, -1, self.size), self.k(h).view(n, s, -1, self.size), self.v(h).view(n, s, -1, self.size)
        q, k = rotate_complex(q, f), rotate_complex(k, f)
        k, v = self.repeat(k), self.repeat(v)
        a = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        x = x + self.o(a.transpose(1, 2).contiguous().view(n, s, d))
        h = self.fn(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


def rotate_complex(t, f):
    c = torch.view_as_complex(t.float().reshape(*t.shape[:-1], -1, 2))
    return torch.view_as_real(c * f).flatten(3).type_as(t)


def wide_loss(logits, labels):
    return F.cross_entropy(logits.float().view(-1, logits.shape[-1]), labels.view(-1))


class Model(nn.Module):
    def __init__(self, block, layers, d, heads, ffn, vocab):
        super().__init__()
        self.embed = nn.Embedding(vocab, d)
        self.blocks = nn.ModuleList(block(d, heads, ffn) for _ in range(layers))
        self.norm, self.head = FullNorm(d), nn.Linear(d, vocab, bias=False)

    def forward(self, tokens, one, two):
        x = self.embed(tokens)
        for b in self.blocks:
            x = b(x, one, two)
        return self.head(self.norm(x))


def z_loss(logits, labels):
    f = logits.float().view(-1, logits.shape[-1])
    z = f.logsumexp(-1)
    return F.cross_entropy(f, labels.view(-1), reduction="sum") / f.shape[0] + 1e-5 * z.pow(2).mean()


def plain_loss(logits, labels):
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), labels.view(-1))


def angles(kind, seq, size):
    freq = 1.0 / (500000 ** (torch.arange(0, size, 2, device=dev).float() / size))
    t = torch.outer(torch.arange(seq, device=dev).float(), freq)
    if kind == "titan":
        return torch.polar(torch.ones_like(t), t)[None, :, None, :], None
    if kind == "olmo":
        t = torch.cat((t, t), -1)
        return t.sin()[None, :, None, :], t.cos()[None, :, None, :]
    m = torch.stack([t.cos(), -t.sin(), t.sin(), t.cos()], 2).view(*t.shape, 2, 2)
    return m[None, :, None], None


def build(kind, block, layers, d, heads, ffn, vocab, compiled, reduce):
    with torch.device("meta"):
        m = Model(block, layers, d, heads, ffn, vocab)
    if compiled:
        for b in m.blocks:
            b.compile()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=reduce)
    for b in m.blocks:
        fully_shard(b, mp_policy=policy)
    if kind != "fms":
        fully_shard(m.head, mp_policy=policy)
    fully_shard(m, mp_policy=policy)
    m.to_empty(device=dev)
    with torch.no_grad():
        for n, p in m.named_parameters():
            local = p.to_local()
            local.fill_(1.0) if p.ndim == 1 else local.normal_(0, 0.02)
    return m


def timed(step, n):
    step()
    torch.cuda.synchronize()
    a, b = torch.cuda.Event(True), torch.cuda.Event(True)
    a.record()
    host = time.perf_counter()
    for _ in range(n):
        step()
    host = time.perf_counter() - host
    b.record()
    b.synchronize()
    return a.elapsed_time(b) * 1e-3 / n, host / n


def profile(step):
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as run
    with run(activities=[ProfilerActivity.CUDA]) as p:
        step()
        torch.cuda.synchronize()
    rows = {}
    for e in p.events():
        if e.device_type == torch.autograd.DeviceType.CUDA:
            r = rows.setdefault(e.name[:160], [0, 0.0])
            r[0] += 1
            r[1] += e.time_range.elapsed_us()
    return sorted(([k, c, round(u, 1)] for k, (c, u) in rows.items()), key=lambda r: -r[2])[:45]


def save():
    with open(sys.argv[1], "w") as f:
        json.dump(OUT, f, indent=1)


def alone(name, f, inputs, n=12):
    """Forward and backward of a function, on its own."""
    def forward():
        return f(*inputs)
    out = forward()
    g = torch.ones_like(out)
    wanted = [i for i in inputs if i.requires_grad]

    def backward():
        torch.autograd.grad(out, wanted, g, retain_graph=True)

    for _ in range(3):
        forward(), backward()
    times = []
    for one in (forward, backward):
        torch.cuda.synchronize()
        a, b = torch.cuda.Event(True), torch.cuda.Event(True)
        a.record()
        for _ in range(n):
            one()
        b.record()
        b.synchronize()
        times.append(a.elapsed_time(b) * 1e-3 / n)
    OUT.setdefault("alone", []).append([name, *times])
    save()


def lone_kernels():
    bf = dict(device=dev, dtype=torch.bfloat16, requires_grad=True)
    for n, s, h in ((2, 4096, 32), (1, 8192, 32), (4, 4096, 16)):
        f, _ = angles("titan", s, 128)
        alone(f"complex rotation {n} {s} {h} 128", rotate_complex, (torch.randn(n, s, h, 128, **bf), f))
    for tokens, words in ((16384, 100352), (8192, 100352), (8192, 128256)):
        labels = torch.randint(0, words, (tokens,), device=dev)
        alone(f"loss {tokens} {words}", lambda x, l=labels: wide_loss(x, l), (torch.randn(tokens, words, **bf),))
        torch.cuda.empty_cache()
        alone(f"loss and z-loss {tokens} {words}", lambda x, l=labels: z_loss(x, l), (torch.randn(tokens, words, **bf),))
        torch.cuda.empty_cache()


def case(name, kind, block, shape, samples, compiled, reduce, n):
    layers, d, heads, ffn, vocab = shape
    t0 = time.time()
    m = build(kind, block, layers, d, heads, ffn, vocab, compiled, reduce)
    seq = 8192 if kind == "titan" else 4096
    one, two = angles(kind, seq, d // heads)
    tokens = torch.randint(0, vocab, (samples, seq), device=dev)
    loss_of = {"olmo": torch.compile(z_loss), "titan": wide_loss, "fms": plain_loss}[kind]

    def step():
        loss_of(m(tokens, one, two), tokens).backward()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    entry = {"case": name, "layers": layers, "samples": samples, "ready_s": round(time.time() - t0, 1), "steps": {}}
    OUT["cases"].append(entry)
    for word, rate in (("copied", None), ("nvlink", 330e9), ("slow", 100e9)):
        if time.time() - BEGAN > LIMIT_S:
            break
        WIRE.rate = rate
        torch.cuda.reset_peak_memory_stats()
        device_s, host_s = timed(step, n)
        entry["steps"][word] = {"device_s": device_s, "host_s": host_s, "peak_gb": torch.cuda.max_memory_allocated() / 1e9}
        save()
    WIRE.rate = None
    entry["kernels"] = profile(step)
    save()
    for p in m.parameters():
        p.grad = None


def main():
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=WORLD)
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    torch.backends.cuda.enable_math_sdp(False)
    fp32, bf16 = torch.float32, torch.bfloat16
    lone_kernels()
    plans = [("fms 7B eager", "fms", FmsBlock, (32, 4096, 32, 11008, 32000), 2, False, bf16, 4),
             ("OLMo 2 1B compiled", "olmo", OlmoBlock, (18, 2048, 16, 5632, 100352), 4, True, fp32, 8),
             ("OLMo 2 7B compiled", "olmo", OlmoBlock, (32, 4096, 32, 11008, 100352), 2, True, fp32, 4),
             ("titan 8B eager", "titan", TitanBlock, (32, 4096, 32, 14336, 128256), 1, False, fp32, 4),
             ("titan 8B compiled", "titan", TitanBlock, (32, 4096, 32, 14336, 128256), 1, True, fp32, 4)]
    for plan in plans:
        if time.time() - BEGAN > LIMIT_S - 25:
            OUT["errors"].append(f"no time for {plan[0]}")
            continue
        try:
            case(*plan)
        except Exception:
            OUT["errors"].append(f"{plan[0]}: {traceback.format_exc()[-1500:]}")
        torch.cuda.empty_cache()
        save()
    OUT["wall_s"] = round(time.time() - BEGAN, 1)
    save()
    print(json.dumps({k: v for k, v in OUT.items() if k != "cases"}), [(c["case"], c["steps"]) for c in OUT["cases"]])


main()
