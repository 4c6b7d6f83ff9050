"""Times training steps on one GPU as PyTorch runs them, and counts what they launch.

    python3 kernels/torch/steps.py OUT.json [--quick] [--families] [NAME, MODE, WAY or SAMPLES ...]

NAME is a model, MODE bf16 (all of it cast), autocast or tf32, SAMPLES those of a batch, instead of the ones listed here;
WAY says how it is written or run: transformers (as that library writes a decoder), fused (the fused AdamW), compiled
(torch.compile), nchw (channels first). --families lists decoders, encoders, vision transformers and networks of groups instead of GPT and CNNs;
--quick leaves the profiler out.
Each case gives the seconds of a step (steps one after the other, one wait at the end), of its forward, backward and
optimizer, as they pass on the device meanwhile (elapsed) and with a wait after each, the peak of allocated memory, and,
by the profiler, kernels and their seconds by phase.
"""
import contextlib
import json
import sys
import time

import torch

import decoders
import encoders
import models
import passes

WAYS = ("transformers", "fused", "compiled", "nchw")
LANGUAGE = models.GPT | models.SHARD | decoders.DECODERS | encoders.BERT
MODES = {name: ("bf16", "autocast") for name in LANGUAGE} | {name: ("autocast", "tf32") for name in models.IMAGES}


DECODER_BATCHES = {"tinyllama-1.1b": (1, 4, 8), "llama3.2-1b": (1, 4), "llama3.2-3b": (1, 4), "llama2-7b": (1, 2),
                   "llama3-8b-2k": (1, 2), "mixtral-1b": (1, 4), "moe-8-1": (8, 32), "moe-16-4": (8, 16), "moe-32-2": (8, 24),
                   "smollm-360m": (4, 12), "qwen2.5-1.5b": (1, 3), "mistral-7b": (1,)}
BERT_BATCHES = {"bert-base": (8, 32), "bert-large": (4, 16)}
# under autocast, with TF32
IMAGE_BATCHES = {"vit-b16": ((128, 192, 256), (64, 128)), "vit-l16": ((64, 96, 128), (32, 64)),
                 "resnext50": ((128, 192, 256, 384), (64, 128, 256)), "resnext101": ((64, 96, 128, 192, 256), (32, 64, 128)),
                 "wide-resnet50": ((96, 128, 256, 512), (64, 128)), "wide-resnet101": ((96, 128, 192, 256), (32, 64, 128)),
                 "resnet101": ((192, 256), (64, 128))}
PURE_BATCHES = {"vit-b16": (128, 256, 512), "vit-l16": (64, 128, 256)}


def families():
    """As cases, the compiled ones last."""
    for name, batches in DECODER_BATCHES.items():
        for batch in batches:
            yield name, batch, "bf16", 0.0, False
            yield name, batch, "bf16", 0.0, False, "transformers"
        yield name, batches[-1], "bf16", 0.0, False, "fused"
        if decoders.DECODERS[name][1] < 4000:
            yield name, batches[-1], "autocast", 0.0, False
            yield name, batches[-1], "autocast", 0.0, False, "transformers"
    for name, batches in BERT_BATCHES.items():
        for mode in ("bf16", "autocast"):
            for batch in batches:
                yield name, batch, mode, 0.0, False
            yield name, batches[-1], mode, 0.1, False
    for name, (batches, of_tf32) in IMAGE_BATCHES.items():
        for batch in batches:
            yield name, batch, "autocast", 0.0, False
        for batch in of_tf32:
            yield name, batch, "tf32", 0.0, False
        for batch in PURE_BATCHES.get(name, ()):
            yield name, batch, "bf16", 0.0, False
    for batch in (128, 256):
        yield "resnet50", batch, "autocast", 0.0, False, "nchw"
        yield "resnet50", batch, "tf32", 0.0, False, "nchw"
    for name, batches in (DECODER_BATCHES | BERT_BATCHES).items():
        if name not in decoders.DECODERS or not decoders.DECODERS[name][-2]:  # experts choose by values, which no graph can hold
            yield name, batches[-1], "bf16", 0.0, False, "compiled"
    for name in ("vit-b16", "resnext50", "wide-resnet50"):
        for batch in (128, 256):
            yield name, batch, "autocast", 0.0, False, "compiled"


def cases():
    """name, batch, mode, dropout, cudnn.benchmark, and perhaps one of WAYS"""
    for name, batches in {"gpt2-125m": (1, 4, 8, 16, 32), "gpt2-355m": (1, 4, 8, 16), "gpt2-774m": (1, 4, 8, 16),
                          "gpt2-1.5b": (1, 2, 4, 8, 16), "gpt3-2.7b": (1, 2, 4), "gpt3-6.7b": (1, 2)}.items():
        for mode in ("bf16", "autocast"):
            for batch in batches:
                yield name, batch, mode, 0.0, False
    for mode in ("bf16", "autocast"):
        for name in ("gpt2-125m", "gpt2-1.5b"):
            yield name, 8, mode, 0.1, False
        for name in models.SHARD:
            for batch in (1, 4):
                yield name, batch, mode, 0.0, False
    for name in ("resnet50", "resnet152", "vgg19", "alexnet", "googlenet", "densenet121"):
        for batch in (32, 64, 256):
            yield name, batch, "autocast", 0.0, False
        yield name, 128, "tf32", 0.0, False
    for name in ("resnet50", "vgg19"):
        yield name, 256, "autocast", 0.0, True
        yield name, 128, "tf32", 0.0, True


class Step(passes.Step):
    def __init__(self, name, batch, mode, dropout, benchmark, way=None):
        torch.backends.cudnn.benchmark = benchmark
        torch.backends.cuda.matmul.allow_tf32 = mode == "tf32"
        self.model, self.inputs = models.make(name, batch, dropout, way == "transformers")
        if mode == "bf16":
            self.model = self.model.bfloat16()
            self.inputs = tuple(x.bfloat16() if x.is_floating_point() else x for x in self.inputs)
        self.optimizer = (torch.optim.SGD(self.model.parameters(), lr=1e-4, momentum=0.9) if name in models.CNN
                          else torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=way == "fused" or None))
        if way == "nchw":
            self.model = self.model.to(memory_format=torch.contiguous_format)
            self.inputs = tuple(x.contiguous() for x in self.inputs)
        if way == "compiled":
            self.model = torch.compile(self.model)
        self.cast = mode == "autocast"

    def forward(self):
        with torch.autocast("cuda", torch.bfloat16) if self.cast else contextlib.nullcontext():
            self.loss = self.model(*self.inputs)


def measure(case, quick):
    return dict(zip(("model", "batch", "mode", "dropout", "benchmark", "way"), case)) | passes.measured(Step(*case), quick)


def chosen(words):
    """The cases that the words of the command line name: all that are listed, or models with samples of their own."""
    names = [word for word in words if word in MODES]
    modes = [word for word in words if word in ("bf16", "autocast", "tf32")]
    batches = [int(word) for word in words if word.isdigit()]
    every = ([(name, batch, mode, 0.0, False) for name in names or MODES for mode in MODES[name] for batch in batches]
             if batches else families() if "--families" in words else cases())
    ways = [word for word in words if word in WAYS]
    return [case for case in every if case[0] in (names or MODES) and case[2] in (modes or case)
            and (not ways or case[-1] in ways)]


def main():
    out, words = sys.argv[1], sys.argv[2:]
    rows = []
    for case in chosen(words):
        begin = time.time()
        try:
            rows.append(measure(case, "--quick" in words))
            print(*case, f"step {rows[-1]['step_s'] * 1e3:.2f} ms", f"peak {rows[-1]['peak_bytes'] / 1e9:.2f} GB",
                  f"took {time.time() - begin:.1f} s", flush=True)
        except torch.OutOfMemoryError as error:
            print(*case, str(error)[:80], flush=True)
        torch.cuda.empty_cache()
        with open(out, "w") as file:
            json.dump({"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(),
                       "device": torch.cuda.get_device_name(), "rows": rows}, file)


main()
