"""Blocks in the way GPT-NeoX of 2022 and 2023 writes them: fp16, the sequence first, a quarter of each head rotated by
parts, queries, keys and values packed for FlashAttention, biases and residuals added by kernels of their own, attention and
feed-forward side by side; every block recomputed in the backward, between two waits for the device, if asked for.

    python3 kernels/torch/neox.py OUT.json

times forward and backward of embedding, blocks, head and loss on one GPU, and counts what they launch."""
import json
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import passes

# layers, hidden, heads
MODELS = {"pythia-160m": (12, 768, 12), "pythia-410m": (24, 1024, 16), "pythia-1b": (16, 2048, 8),
          "pythia-1.4b": (24, 2048, 16), "pythia-2.8b": (32, 2560, 32)}
SEQ, VOCAB, ROTATED = 2048, 50304, 0.25
CASES = [("pythia-160m", 8), ("pythia-160m", 32), ("pythia-410m", 8), ("pythia-410m", 32), ("pythia-1b", 16),
         ("pythia-1.4b", 8), ("pythia-1.4b", 16), ("pythia-2.8b", 4)]
WARM, REPEATS = 3, 7
LOSS_SCALE = 2.0 ** 16  # else gradients are 0 in fp16, and products of zeros draw less power


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


@torch.compile(dynamic=True)
def bias_gelu(x, bias):
    """One kernel, as TorchScript's fuser made it then; that of today is three times slower than memory."""
    return F.gelu(x + bias, approximate="tanh")


class Attention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads, self.size = heads, hidden // heads
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.dense = nn.Linear(hidden, hidden, bias=False)
        self.bias = nn.Parameter(torch.zeros(hidden))

    def rotated(self, x, cos, sin):
        n = int(ROTATED * self.size)
        turned, rest = x[..., :n], x[..., n:]
        turned = turned * cos + rotate_half(turned) * sin
        return torch.cat((turned, rest), dim=-1)

    def forward(self, x, cos, sin):
        s, b, hidden = x.shape
        q, k, v = torch.split(self.qkv(x).view(s, b, self.heads, 3 * self.size), self.size, dim=-1)
        q, k = self.rotated(q, cos, sin), self.rotated(k, cos, sin)
        q, k, v = (t.transpose(0, 1).reshape(b * s, 1, self.heads, self.size) for t in (q, k, v))
        packed = torch.concat([q, k, v], dim=1).view(b, s, 3, self.heads, self.size)
        q, k, v = (t.transpose(1, 2) for t in packed.unbind(2))
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        context = context.permute(2, 0, 1, 3).contiguous().view(s, b, hidden)
        return self.dense(context), self.bias


class FeedForward(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.up, self.down = nn.Linear(hidden, 4 * hidden, bias=False), nn.Linear(4 * hidden, hidden, bias=False)
        self.up_bias, self.bias = nn.Parameter(torch.zeros(4 * hidden)), nn.Parameter(torch.zeros(hidden))

    def forward(self, x):
        return self.down(bias_gelu(self.up(x), self.up_bias)), self.bias


def with_bias(x, bias, residual):
    out = F.dropout(x + bias, p=0.0, training=True)
    return out if residual is None else residual + out


class Block(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attention, self.mlp = Attention(hidden, heads), FeedForward(hidden)

    def forward(self, x, cos, sin):
        attended = with_bias(*self.attention(self.norm1(x), cos, sin), None)
        return x + with_bias(*self.mlp(self.norm2(x)), attended)


class Recomputed(torch.autograd.Function):
    """As DeepSpeed's checkpointing with synchronize_checkpoint_boundary."""

    @staticmethod
    def forward(ctx, block, x, cos, sin):
        torch.cuda.synchronize()
        ctx.block, ctx.angles = block, (cos, sin)
        ctx.save_for_backward(x)
        with torch.no_grad():
            out = block(x, cos, sin)
        torch.cuda.synchronize()
        return out

    @staticmethod
    def backward(ctx, gradient):
        torch.cuda.synchronize()
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            out = ctx.block(x, *ctx.angles)
        torch.autograd.backward(out, gradient)
        torch.cuda.synchronize()
        return None, x.grad, None, None


class Model(nn.Module):
    def __init__(self, layers, hidden, heads):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, hidden)
        self.blocks = nn.ModuleList(Block(hidden, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, VOCAB, bias=False)
        n = int(ROTATED * (hidden // heads))
        angle = torch.outer(torch.arange(SEQ).float(), 1e-4 ** (torch.arange(0, n, 2).float() / n))
        angle = torch.cat((angle, angle), dim=-1)[:, None, None, :]
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())

    def forward(self, ids, target, recomputes):
        x = self.tokens(ids).transpose(0, 1).contiguous()
        for block in self.blocks:
            x = Recomputed.apply(block, x, self.cos, self.sin) if recomputes else block(x, self.cos, self.sin)
        logits = self.head(self.norm(x.transpose(0, 1).contiguous()))
        return VocabularyLoss.apply(logits.float(), target).mean() * LOSS_SCALE


class VocabularyLoss(torch.autograd.Function):
    """Cross entropy by parts, as Megatron-LM has it for a vocabulary that is divided over ranks; here it is whole."""

    @staticmethod
    def forward(ctx, logits, target):
        logits = logits.clone()
        logits.sub_(logits.max(dim=-1)[0].unsqueeze(-1))
        flat = logits.view(-1, logits.shape[-1])
        wanted = flat[torch.arange(flat.shape[0], device=flat.device), target.view(-1)].clone().view_as(target)
        exponentials = logits
        torch.exp(logits, out=exponentials)
        total = exponentials.sum(dim=-1)
        exponentials.div_(total.unsqueeze(-1))
        ctx.save_for_backward(exponentials, target)
        return torch.log(total) - wanted

    @staticmethod
    def backward(ctx, gradient):
        softmax, target = ctx.saved_tensors
        flat = softmax.view(-1, softmax.shape[-1])
        flat[torch.arange(flat.shape[0], device=flat.device), target.view(-1)] -= 1
        return softmax.mul_(gradient.unsqueeze(-1)), None


def phases(model, ids, target, recomputes):
    """Seconds of forward and backward on the device, medians."""
    out = []
    for i in range(WARM + REPEATS):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(3)]
        begin = time.perf_counter()
        marks[0].record()
        loss = model(ids, target, recomputes)
        marks[1].record()
        loss.backward()
        marks[2].record()
        torch.cuda.synchronize()
        wall = time.perf_counter() - begin
        model.zero_grad(set_to_none=True)
        if i >= WARM:
            out.append((marks[0].elapsed_time(marks[1]) * 1e-3, marks[1].elapsed_time(marks[2]) * 1e-3, wall))
    return [statistics.median(column) for column in zip(*out)]


def launches(model, ids, target, recomputes):
    """Kernels by name: how many, and their seconds, of forward and backward."""
    result = []
    for part in range(2):
        loss = model(ids, target, recomputes) if part else None
        torch.cuda.synchronize()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            loss.backward() if part else model(ids, target, recomputes)
            torch.cuda.synchronize()
        result.append(passes.launched(profile, letters=160, most=40))
        model.zero_grad(set_to_none=True)
    return result


def main():
    rows = []
    for name, samples in CASES:
        torch.manual_seed(0)
        model = Model(*MODELS[name]).half().cuda()
        ids, target = (torch.randint(VOCAB, (samples, SEQ), device="cuda") for _ in "it")
        for recomputes in (False, True):
            try:
                torch.cuda.reset_peak_memory_stats()
                forward_s, backward_s, wall_s = phases(model, ids, target, recomputes)
                rows.append({"model": name, "samples": samples, "recomputes": recomputes, "forward_s": forward_s, "backward_s": backward_s,
                             "wall_s": wall_s, "peak_bytes": torch.cuda.max_memory_allocated(), "launched": launches(model, ids, target, recomputes)})
                print(name, samples, recomputes, f"{forward_s * 1e3:.2f} + {backward_s * 1e3:.2f} ms of {wall_s * 1e3:.2f}", flush=True)
            except torch.OutOfMemoryError as error:
                print(name, samples, recomputes, str(error)[:60], flush=True)
            torch.cuda.empty_cache()
        del model
        with open(sys.argv[1], "w") as file:
            json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name(), "rows": rows}, file)


main()
