"""GPT-2 small in the way Megatron-LM of 2019 writes it, as DeepSpeedExamples kept it: fp16, scores that are scaled and masked
by kernels of their own, biases added by themselves, the loss on logits in fp32 by parts.

    python3 kernels/torch/megatron_2019.py OUT.json

times forward and backward on one GPU, and the kernels over scores and logits in copies of these."""
import json
import math
import sys

import torch
from torch import nn
from torch.nn import functional as F

LAYERS, HIDDEN, HEADS, SEQ, VOCAB, SAMPLES = 12, 768, 12, 1024, 50304, (4, 16)
WARM, REPEATS, LOSS_SCALE, DROPPED = 3, 20, 1024.0, 0.1


@torch.jit.script
def gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(0.79788456 * x * (1.0 + 0.044715 * x * x)))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(HIDDEN) for _ in "12")
        self.qkv, self.wide = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, 4 * HIDDEN)
        self.projection, self.narrow = nn.Linear(HIDDEN, HIDDEN, bias=False), nn.Linear(4 * HIDDEN, HIDDEN, bias=False)
        self.biases = nn.ParameterList(torch.zeros(HIDDEN) for _ in "12")

    def forward(self, x, mask):
        q, k, v = (t.view(*x.shape[:2], HEADS, -1).permute(0, 2, 1, 3)
                   for t in self.qkv(self.norms[0](x)).split(HIDDEN, dim=-1))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(HIDDEN // HEADS)
        scores = scores * mask - 10000.0 * (1.0 - mask)
        context = torch.matmul(F.dropout(scores.softmax(-1), DROPPED), v).permute(0, 2, 1, 3).contiguous().view_as(x)
        x = x + F.dropout(self.projection(context) + self.biases[0], DROPPED)
        return x + F.dropout(self.narrow(gelu(self.wide(self.norms[1](x)))) + self.biases[1], DROPPED)


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        shifted = logits.clone()
        shifted.sub_(shifted.max(dim=-1, keepdim=True)[0])
        exponentials = shifted.exp()
        total = exponentials.sum(dim=-1, keepdim=True)
        loss = total.log() - shifted.gather(-1, target[..., None])
        ctx.save_for_backward(exponentials.div_(total), target)
        return loss

    @staticmethod
    def backward(ctx, gradient):
        shares, target = ctx.saved_tensors
        shares.scatter_add_(-1, target[..., None], torch.full_like(gradient, -1.0))
        return shares.mul_(gradient), None


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, HIDDEN), nn.Embedding(SEQ, HIDDEN)
        self.blocks, self.norm = nn.ModuleList(Block() for _ in range(LAYERS)), nn.LayerNorm(HIDDEN)

    def forward(self, ids, mask):
        x = F.dropout(self.words(ids) + self.places.weight[None], DROPPED)
        for block in self.blocks:
            x = block(x, mask)
        return Loss.apply(F.linear(self.norm(x), self.words.weight).float(), ids).mean()


def median_s(call):
    times = []
    for i in range(WARM + REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "be")
        begin.record()
        call()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return sorted(times[WARM:])[REPEATS // 2]


def passes_of(model, samples):
    ids = torch.randint(VOCAB, (samples, SEQ), device="cuda")
    mask = torch.ones((1, 1, SEQ, SEQ), device="cuda").tril().half()

    def both():
        model.zero_grad(set_to_none=True)
        (model(ids, mask) * LOSS_SCALE).backward()

    forward_s = median_s(lambda: model(ids, mask))
    return {"samples": samples, "forward_s": forward_s, "backward_s": median_s(both) - forward_s}


def in_copies():
    """Times of kernels over times of a copy in fp16."""
    scores, mask = torch.randn(16, HEADS, SEQ, SEQ, device="cuda").half(), torch.ones(1, 1, SEQ, SEQ, device="cuda").half()
    logits, copy = torch.randn(8 * SEQ, VOCAB, device="cuda").half(), torch.empty_like(scores)
    wide, narrow = logits.float(), torch.empty_like(logits)
    score_s, logit_s = median_s(lambda: copy.copy_(scores)), median_s(lambda: narrow.copy_(logits))
    calls = {"scaled": lambda: scores / 8, "masked": lambda: scores * mask, "softmax": lambda: scores.softmax(-1)}
    of_logits = {"copied": wide.clone, "maximum": lambda: wide.max(dim=-1)[0], "shifted": lambda: wide.sub_(wide[:, :1]),
                 "exponentials": wide.exp, "summed": lambda: wide.sum(-1), "divided": lambda: wide.div_(wide[:, 1:2])}
    return {"score_copy_s": score_s, "logit_copy_s": logit_s, **{name: median_s(call) / score_s for name, call in calls.items()},
            **{name: median_s(call) / logit_s for name, call in of_logits.items()}}


def main():
    model = Model().cuda().half()
    result = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "copies": in_copies(),
              "rows": [passes_of(model, samples) for samples in SAMPLES]}
    with open(sys.argv[1], "w") as file:
        json.dump(result, file, indent=1)


main()
