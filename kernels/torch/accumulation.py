"""What gradients of several micro-batches take on one GPU: autograd's sums, and DDP's buckets with one rank.

    python3 kernels/torch/accumulation.py OUT.json [--quick]

Each case is a model, samples of a micro-batch, how it is cast and what is around it: nothing, DDP, or DDP with gradients as
views of its buckets. Steps have 1, 2 and 4 micro-batches, fewer with DDP, which sums in the last alone (no_sync in the
others). DDP is built with one rank over NCCL, so that it copies into buckets and back and sums nothing with others. As
steps.py beside it each case gives seconds of a step and of its phases, the peak of allocated memory and, unless quick,
what it launches with two micro-batches.
"""
import contextlib
import gc
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import models
import passes

WAYS = {"plain": (1, 2, 4), "ddp": (1, 2), "views": (1,)}  # with micro-batches


def cases():
    """name, samples of a micro-batch, mode, way"""
    for mode in ("bf16", "autocast"):
        for name, samples in (("gpt2-125m", 16), ("gpt2-355m", 8), ("gpt2-1.5b", 4), ("llama3.2-1b", 4)):
            for way in WAYS:
                yield name, samples, mode, way
    for way in WAYS:
        yield "resnet50", 256, "autocast", way


class Step(passes.Step):
    def __init__(self, name, samples, mode, way, micro_batches):
        self.model, self.inputs = models.make(name, samples, 0.0, False)
        if mode == "bf16":
            self.model = self.model.bfloat16()
        if way != "plain":
            self.model = DistributedDataParallel(self.model, device_ids=[0], gradient_as_bucket_view=way == "views")
        self.optimizer = (torch.optim.SGD(self.model.parameters(), lr=1e-4, momentum=0.9) if name in models.CNN
                          else torch.optim.AdamW(self.model.parameters(), lr=1e-5))
        self.way, self.micro_batches, self.cast = way, micro_batches, mode == "autocast"

    def one(self, last):
        alone = contextlib.nullcontext() if last or self.way == "plain" else self.model.no_sync()
        with alone:
            with torch.autocast("cuda", torch.bfloat16) if self.cast else contextlib.nullcontext():
                loss = self.model(*self.inputs)
            loss.backward()

    def forward(self):
        """All micro-batches but the last."""
        for _ in range(self.micro_batches - 1):
            self.one(False)

    def backward(self):
        """The last, whole."""
        self.one(True)


def main():
    out, quick = sys.argv[1], "--quick" in sys.argv
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29511", "RANK": "0", "WORLD_SIZE": "1"}
    dist.init_process_group("nccl")
    rows = []
    for case in cases():
        for micro_batches in WAYS[case[-1]]:
            begin = time.time()
            profiled = not quick and micro_batches == 2
            row = passes.measured(Step(*case, micro_batches), quick=not profiled)
            rows.append(dict(zip(("model", "samples", "mode", "way"), case)) | {"micro_batches": micro_batches} | row)
            print(*case, micro_batches, f"step {row['step_s'] * 1e3:.2f} ms, last {row['backward_elapsed_s'] * 1e3:.2f} ms, "
                  f"peak {row['peak_bytes'] / 1e9:.3f} GB, took {time.time() - begin:.1f} s", flush=True)
            gc.collect()
            torch.cuda.empty_cache()
            with open(out, "w") as file:
                json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name(), "rows": rows}, file)
    dist.destroy_process_group()


main()
