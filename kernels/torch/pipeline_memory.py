"""Bytes that PyTorch's allocator hands out and holds for a pipeline stage as nanotron runs it, on one GPU.

    python3 kernels/torch/pipeline_memory.py OUT.json

One tensor rank: layers with RMSNorm, copies for rotary positions, flash attention and a SwiGLU of halves; gradients summed in
fp32, those in bf16 freed after each backward; states of Adam made in the first step; parameters gathered through flat
buffers at the end of a step (ZeRO 1). 1F1B with as many micro-batches in flight as stages; nothing is sent.
"""
import gc
import json
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        y = torch.empty_like(x)
        n = x.shape[0]
        rstd = torch.empty(x.shape[:-1], dtype=torch.float32, device=x.device)
        for a in range(0, n, 512):
            s = x[a:a + 512].float()
            r = s.pow(2).mean(-1).add_(1e-5).rsqrt_()
            rstd[a:a + 512] = r
            y[a:a + 512] = (s * r.unsqueeze(-1)).to(x.dtype) * w
        ctx.save_for_backward(x, w, rstd)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w, r = ctx.saved_tensors
        return torch.empty_like(x).copy_(g), torch.ones_like(w)


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return F.linear(x, w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = g.matmul(w)
        g = g.contiguous()
        gw = g.view(-1, g.shape[-1]).t().matmul(x.reshape(-1, x.shape[-1]))
        return gx, gw


class Rotary(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.clone()


class Layer(nn.Module):
    def __init__(s, h, f, heads):
        super().__init__()

        def p(*n):
            return nn.Parameter(torch.zeros(*n, dtype=torch.bfloat16, device="cuda"))

        s.n1, s.n2, s.qkv, s.o, s.gu, s.down, s.heads = p(h), p(h), p(3 * h, h), p(h, h), p(2 * f, h), p(h, f), heads

    def attend(s, x):
        L, b, h = x.shape
        qkv = Linear.apply(x, s.qkv)
        q, k, v = qkv.view(L, b, 3, s.heads, h // s.heads).permute(2, 1, 0, 3, 4).contiguous()
        kv = torch.cat([k.unsqueeze(0), v.unsqueeze(0)], dim=0).permute(1, 2, 0, 3, 4).contiguous()
        q = Rotary.apply(q)
        k, v = torch.split(kv, 1, dim=2)
        o = F.scaled_dot_product_attention(q.transpose(1, 2), k.squeeze(2).transpose(1, 2), v.squeeze(2).transpose(1, 2), is_causal=True)
        o = o.transpose(1, 2).contiguous().view(b, L, h).transpose(0, 1)
        return Linear.apply(o, s.o)

    def mlp(s, x):
        gu = Linear.apply(x, s.gu)
        g, u = torch.split(gu, gu.shape[-1] // 2, dim=-1)
        return Linear.apply(F.silu(g) * u, s.down)

    def forward(s, x):
        x = s.attend(Norm.apply(x, s.n1)) + x
        return s.mlp(Norm.apply(x, s.n2)) + x


class Stage(nn.Module):
    def __init__(s, layers, h, f, heads, vocab, last):
        super().__init__()
        s.emb = nn.Parameter(torch.zeros(vocab, h, dtype=torch.bfloat16, device="cuda"))
        s.layers = nn.ModuleList([Layer(h, f, heads) for _ in range(layers)])
        s.norm = nn.Parameter(torch.zeros(h, dtype=torch.bfloat16, device="cuda")) if last else None

    def forward(s, t):
        x = F.embedding(t.transpose(0, 1), s.emb)
        for l in s.layers: x = l(x)
        if s.norm is None: return x
        return CE.apply(Linear.apply(Norm.apply(x, s.norm), s.emb).float()).mean()


class CE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, l):
        m = l.max(dim=-1)[0]
        d = l - m.unsqueeze(-1)
        torch.exp(d, out=d)
        z = d.sum(-1)
        d.div_(z.unsqueeze(-1))
        ctx.save_for_backward(d)
        return z

    @staticmethod
    def backward(ctx, g):
        d, = ctx.saved_tensors
        return d.mul_(g.unsqueeze(-1))


def run(layers, h, f, heads, vocab, mb, pp, dp, n_micro, seq=4096, steps=3):
    gc.collect(); torch.cuda.empty_cache(); torch.cuda.reset_peak_memory_stats()
    last = pp == 1
    m = Stage(layers, h, f, heads, vocab, last)
    ps = list(m.parameters()); n = sum(p.numel() for p in ps)
    sums = torch.zeros(n, device="cuda"); master = torch.empty(n // dp, device="cuda")
    cuts, at = [], 0
    for p in ps: cuts.append(sums[at:at + p.numel()]); at += p.numel()
    states, out = None, []
    def forward():
        t = torch.randint(0, vocab, (mb, seq), device="cuda")
        return m(t)

    def backward(y):
        if last: y.backward()
        else: y.backward(torch.empty_like(y))
        for p, s in zip(ps, cuts):
            s.add_(p.grad.view(-1)); p.grad = None
    for step in range(steps):
        q = []
        for _ in range(min(pp - 1, n_micro)): q.append(forward()); torch.cuda.synchronize()
        for _ in range(max(0, n_micro - pp + 1)):
            q.append(forward()); torch.cuda.synchronize(); backward(q.pop(0))
        while q: backward(q.pop(0)); torch.cuda.synchronize()
        before = (torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved())
        if states is None: states = [torch.zeros(max(1, p.numel() // dp), device="cuda") for p in ps for _ in range(2)]
        if dp > 1:
            own = torch.empty(n // dp, dtype=torch.bfloat16, device="cuda")
            parts = [torch.empty_like(own) for _ in range(dp)]
            flat = torch.empty(n // dp * dp, dtype=torch.bfloat16, device="cuda")
            del flat, parts, own
        torch.cuda.synchronize()
        out.append(dict(step=step, allocated=before[0], reserved=before[1], allocated_end=torch.cuda.max_memory_allocated(), reserved_end=torch.cuda.max_memory_reserved()))
    res = dict(layers=layers, h=h, f=f, heads=heads, vocab=vocab, mb=mb, pp=pp, dp=dp, n_micro=n_micro, parameters=n, steps=out)
    print(json.dumps(res), flush=True)
    return res

cases = [  # layers of the stage, hidden, ffn, heads, vocab, micro-batch, stages, replicas, micro-batches
    (16, 2048, 8192, 32, 131072, 1, 1, 64, 4), (16, 2048, 8192, 32, 131072, 2, 1, 16, 4), (28, 3072, 8192, 32, 131072, 1, 1, 16, 4),
    (28, 3072, 8192, 32, 131072, 2, 1, 32, 4), (16, 3072, 8192, 32, 131072, 1, 2, 8, 8), (6, 2048, 8192, 32, 131072, 1, 4, 4, 12),
    (6, 2048, 8192, 32, 131072, 4, 4, 4, 12), (8, 3072, 8192, 32, 131072, 2, 4, 4, 12), (8, 3072, 8192, 32, 131072, 2, 4, 16, 8),
    (9, 4096, 14336, 32, 131072, 1, 4, 8, 12), (5, 4096, 14336, 32, 131072, 1, 8, 2, 20), (5, 4096, 14336, 32, 131072, 1, 8, 4, 20),
    (3, 4096, 14336, 32, 131072, 1, 16, 4, 32), (2, 3072, 8192, 32, 131072, 1, 16, 1, 32), (3, 2048, 8192, 32, 131072, 4, 8, 2, 20)]
results = []
for c in cases:
    try: results.append(run(*c))
    except torch.cuda.OutOfMemoryError as e: print("oom", c, str(e)[:80], flush=True)
    with open(sys.argv[1], "w") as out:
        json.dump(dict(torch=torch.__version__, device=torch.cuda.get_device_name(), results=results), out)
