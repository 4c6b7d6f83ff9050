"""Times on one GPU two blocks of Llama 2 7B in bf16, with attention in one kernel, and as Hugging Face's transformers write
it out: scores in memory, divided, masked by a sum, a softmax in fp32.

    python3 kernels/torch/eager_attention.py OUT.json

Own code with the operations of models/llama/modeling_llama.py. Seconds of the forward and of forward and backward, one
after the other; the peak of the memory; the kernels of both passes.
"""
import json
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

from decoders import Attention, Gated, NormByHand, rotate_half
from passes import launched

HIDDEN, FFN, HEADS, TOKENS, SAMPLES, BLOCKS = 4096, 11008, 32, 4096, 2, 2
WARM, REPEATS = 3, 10


class WrittenOut(Attention):
    mask = None

    def forward(self, x, cos, sin):
        b, s, hidden = x.shape
        q, k, v = (part(x).view(b, s, self.heads, self.size).transpose(1, 2) for part in (self.q, self.k, self.v))
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.size) + self.mask
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
        return self.o(torch.matmul(weights, v).transpose(1, 2).reshape(b, s, hidden))


class Block(nn.Module):
    def __init__(self, attention):
        super().__init__()
        self.norms = nn.ModuleList(NormByHand(HIDDEN) for _ in "ab")
        self.attention, self.gated = attention(HIDDEN, HEADS, HEADS, True), Gated(HIDDEN, FFN)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norms[0](x), cos, sin)
        return x + self.gated(self.norms[1](x))


def seconds(call):
    for _ in range(WARM):
        call()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(REPEATS):
        call()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e-3 / REPEATS


def measured(attention):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    with torch.device("cuda"):
        blocks = [Block(attention) for _ in range(BLOCKS)]
        x = torch.randn(SAMPLES, TOKENS, HIDDEN, requires_grad=True)
        cos, sin = (torch.randn(TOKENS, HIDDEN // HEADS) for _ in "cs")
    gradient = torch.randn_like(x)

    def forward():
        y = x
        for block in blocks:
            y = block(y, cos, sin)
        return y

    def both():
        forward().backward(gradient)

    out = {"forward_s": seconds(forward), "both_s": seconds(both), "peak_bytes": torch.cuda.max_memory_allocated()}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        both()
        torch.cuda.synchronize()
    return out | launched(profile)


def main():
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        WrittenOut.mask = torch.full((TOKENS, TOKENS), torch.finfo(torch.bfloat16).min).triu(1).expand(SAMPLES, 1, -1, -1)
    rows = {"flash": measured(Attention), "written out": measured(WrittenOut)}
    for name, row in rows.items():
        print(name, {key: value for key, value in row.items() if key != "top"}, flush=True)
    with open(sys.argv[1], "w") as file:
        json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name(), "rows": rows}, file)


main()
