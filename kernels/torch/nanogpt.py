"""Times steps of GPT on one GPU as minGPT and nanoGPT of 2022 write it, and as nanoGPT does since.

    python3 kernels/torch/nanogpt.py OUT.json [--small]

Scores are in memory and GELU is by parts, or each is one kernel; all is cast to bf16, or autocast surrounds the forward.
--small: models of 512 tokens and 16,384 words in fp16, with a scaled loss, as Languini Kitchen has them.
"""
import collections
import json
import math
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

HIDDEN, HEADS = 768, 12
Size = collections.namedtuple("Size", "layers vocabulary tokens samples tied")
NANOGPT = Size(12, 50304, 1024, 12, True)
CASES = [(NANOGPT, parts, numbers, way) for way in ("eager", "compiled") for parts in (True, False)
         for numbers in ("autocast", "bf16") if (way, numbers) != ("compiled", "bf16")]
SMALL = [(Size(layers, 16384, 512, samples, False), True, "scaled", way)
         for layers, samples, way in [(12, 128, "compiled"), (12, 64, "compiled"), (12, 1, "compiled"), (4, 272, "compiled"),
                                      (4, 1, "compiled"), (12, 16, "eager"), (12, 1, "eager"), (4, 1, "eager")]]


class GeluByParts(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class Attention(nn.Module):
    def __init__(self, tokens, parts):
        super().__init__()
        self.parts, self.qkv, self.projection = parts, nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.register_buffer("mask", torch.tril(torch.ones(tokens, tokens)).view(1, 1, tokens, tokens))

    def forward(self, x):
        samples, tokens, hidden = x.size()
        q, k, v = (t.view(samples, tokens, HEADS, hidden // HEADS).transpose(1, 2) for t in self.qkv(x).split(hidden, dim=2))
        if self.parts:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            scores = scores.masked_fill(self.mask[:, :, :tokens, :tokens] == 0, float("-inf"))
            context = F.softmax(scores, dim=-1) @ v
        else:
            context = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.projection(context.transpose(1, 2).contiguous().view(samples, tokens, hidden))


class Block(nn.Module):
    def __init__(self, tokens, parts):
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN), Attention(tokens, parts)
        self.mlp = nn.Sequential(nn.Linear(HIDDEN, 4 * HIDDEN), GeluByParts() if parts else nn.GELU(approximate="tanh"),
                                 nn.Linear(4 * HIDDEN, HIDDEN))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    def __init__(self, size, parts):
        super().__init__()
        self.tokens, self.places = nn.Embedding(size.vocabulary, HIDDEN), nn.Embedding(size.tokens, HIDDEN)
        self.blocks = nn.ModuleList(Block(size.tokens, parts) for _ in range(size.layers))
        self.norm, self.head = nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, size.vocabulary, bias=False)
        if size.tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.places(torch.arange(tokens.size(1), device=tokens.device))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.view(-1))


def timed(size, parts, numbers, way):
    model = Gpt(size, parts).cuda()
    model = model.bfloat16() if numbers == "bf16" else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    scaler = torch.amp.GradScaler(enabled=numbers == "scaled")
    run = torch.compile(model) if way == "compiled" else model
    tokens, targets = (torch.randint(size.vocabulary, (size.samples, size.tokens), device="cuda") for _ in range(2))

    def step():
        with torch.autocast("cuda", torch.float16 if numbers == "scaled" else torch.bfloat16, numbers != "bf16"):
            loss = run(tokens, targets)
        optimizer.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()

    for _ in range(6):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    seconds = []
    for _ in range(12):
        torch.cuda.synchronize()
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)[6], torch.cuda.max_memory_allocated()


def main():
    rows = []
    for case in SMALL if "--small" in sys.argv else CASES:
        torch.cuda.empty_cache()
        torch.compiler.reset()
        rows.append([*case, *timed(*case)])
        print(*rows[-1], flush=True)
        with open(sys.argv[1], "w") as file:
            json.dump(rows, file)


main()
