"""Times on one GPU a router of experts by operations of PyTorch, from logits to weights and a map.

    python3 kernels/torch/plain_router.py OUT.json

Own code with the operations of Megatron-LM where moe_router_fusion is off (core/transformer/moe/router.py and
moe_utils.py): random logits for balance, sigmoid scores with a bias, a loss for balance, a map of tokens and experts.
Recorded as one graph: seconds of the device.
"""
import json
import sys

import torch

from timing import cold_seconds

CALLS, SCALE, TINY = 10, 2.5, 1e-20
SHAPES = ((8192, 128, 6), (32768, 128, 6), (8192, 512, 22), (4096, 512, 22))


class Random(torch.autograd.Function):
    """Values of its own, gradients as they come."""

    @staticmethod
    def forward(ctx, x):
        return x.clone().normal_()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def chosen(scores, k):
    return torch.topk(scores, k=k, dim=1)[1]


def map_of(logits, top):
    return torch.zeros_like(logits).int().scatter(1, top, 1).bool()


def balance_loss(logits, k):
    scores = torch.sigmoid(logits.float())
    scores = scores / (scores.sum(dim=-1, keepdim=True) + TINY)
    tokens = map_of(logits, chosen(scores, k)).sum(dim=0)
    return torch.sum(scores.sum(dim=0) * tokens) * (logits.shape[1] * 1e-4 / (k * logits.shape[0] ** 2))


def route(logits, bias, k, count):
    logits = Random.apply(logits)
    loss = balance_loss(logits, k)
    scores = torch.sigmoid(logits.float()).type_as(logits)
    top = chosen(scores + bias, k)
    weights = torch.gather(scores, 1, top)
    weights = weights / (weights.sum(dim=-1, keepdim=True) + TINY) * SCALE
    with torch.no_grad():
        count += map_of(logits, top).sum(dim=0)
    return torch.zeros_like(logits).scatter(1, top, weights), loss


def seconds(call):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return cold_seconds(graph.replay, CALLS)


def row(tokens, experts, k):
    logits = torch.randn(tokens, experts, device="cuda", requires_grad=True)
    bias, count = (torch.zeros(experts, device="cuda") for _ in range(2))
    gradients = torch.randn(tokens, experts, device="cuda"), torch.ones((), device="cuda")
    forward = seconds(lambda: route(logits, bias, k, count))
    both = seconds(lambda: torch.autograd.grad(route(logits, bias, k, count), [logits], gradients))
    return {"what": "router", "tokens": tokens, "experts": experts, "top_k": k,
            "forward_s": float(f"{forward:.4g}"), "backward_s": float(f"{both - forward:.4g}")}


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        json.dump({"rows": [row(*shape) for shape in SHAPES]}, out, indent=1)
