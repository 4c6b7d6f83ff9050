"""Times steps of a decoder on one GPU with each block computed again before its backward, by torch.utils.checkpoint.

    python3 kernels/torch/recompute.py OUT.json

It stops once all that the backward keeps is there again, unless it is the reentrant one, which does all of the block.
"""
import gc
import json
import sys

import torch
from torch.utils.checkpoint import checkpoint

import models
import passes

MODEL, SAMPLES = "tinyllama-1.1b", 8
CASES = [(way, again) for way in ("eager", "compiled") for again in ("none", "needed", "all") if (way, again) != ("compiled", "all")]


class Step(passes.Step):
    def __init__(self, way, again):
        self.model, self.inputs = models.make(MODEL, SAMPLES, 0.0)
        self.model = self.model.bfloat16()
        for block in self.model.blocks if again != "none" else ():
            block.forward = self.recomputed(block.forward, reentrant=again == "all")
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-5)
        if way == "compiled":
            self.model = torch.compile(self.model)

    @staticmethod
    def recomputed(forward, reentrant):
        return lambda *inputs: checkpoint(forward, *inputs, use_reentrant=reentrant)

    def forward(self):
        self.loss = self.model(*self.inputs)


def main():
    rows = []
    for way, again in CASES:
        gc.collect()  # blocks refer to themselves through their forward
        rows.append({"way": way, "again": again} | passes.measured(Step(way, again), quick=True))
        print(way, again, f"step {rows[-1]['step_s'] * 1e3:.1f} ms", f"peak {rows[-1]['peak_bytes'] / 1e9:.2f} GB", flush=True)
        with open(sys.argv[1], "w") as file:
            json.dump({"torch": torch.__version__, "device": torch.cuda.get_device_name(), "rows": rows}, file)


main()
