"""Times training steps of what Hugging Face's transformers makes of a config, on one GPU.

    python3 kernels/torch/hugging_face.py OUT.json CASES.json

CASES.json (hugging_face_cases.json beside this file for those of validation/measured/blind_steps.json) lists objects with `config` (as config.json has it, with model_type), samples, seq (0 for images), mode: bf16
(all of it cast), autocast, or either with a c behind it (compiled), optimizer (adamw if absent, fused, or sgd with momentum) and
recompute (each block in PyTorch's checkpoint). `dlsim import` makes a workload of the same config. A case gives the
seconds of a step (steps one after the other, one wait at the end), of its forward, backward and optimizer on the device, the
sum of its kernels and the peak of allocated memory.
"""
import contextlib
import gc
import json
import sys
import time

import torch
import transformers

CLASSES = {"bert": transformers.AutoModelForMaskedLM, "roberta": transformers.AutoModelForMaskedLM, "vit": transformers.AutoModelForImageClassification,
           "dinov2": transformers.AutoModelForImageClassification}
WARM, ROUNDS, STEPS = 3, 3, 4


def optimizer_of(case, parameters):
    if case.get("optimizer") == "sgd":
        return torch.optim.SGD(parameters, lr=1e-5, momentum=0.9)
    return torch.optim.AdamW(parameters, lr=1e-5, fused=case.get("optimizer") == "fused" or None)


def inputs(config, samples, seq, dtype):
    if CLASSES.get(config.model_type) is transformers.AutoModelForImageClassification:
        side = config.image_size
        return {"pixel_values": torch.randn(samples, config.num_channels, side, side, device="cuda", dtype=dtype),
                "labels": torch.randint(config.num_labels, (samples,), device="cuda")}
    ids = torch.randint(config.vocab_size, (samples, seq), device="cuda")
    return {"input_ids": ids, "labels": ids}


class Step:
    def __init__(self, case):
        options = {key: value for key, value in case["config"].items() if key not in ("model_type", "architectures")}
        config = transformers.AutoConfig.for_model(case["config"]["model_type"], **options)
        is_cast, is_compiled = not case["mode"].startswith("autocast"), case["mode"].endswith("c")
        dtype = torch.bfloat16 if is_cast else torch.float32
        with torch.device("cuda"):
            self.model = CLASSES.get(config.model_type, transformers.AutoModelForCausalLM).from_config(config, dtype=dtype)
        self.model.train()
        self.model.config.use_cache = False
        if case.get("recompute"):
            self.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if is_compiled:
            self.model = torch.compile(self.model)
        self.optimizer = optimizer_of(case, self.model.parameters())
        self.inputs = inputs(config, case["samples"], case["seq"], dtype)
        self.cast = contextlib.nullcontext if is_cast else (lambda: torch.autocast("cuda", torch.bfloat16))

    def forward(self):
        with self.cast():
            self.loss = self.model(**self.inputs).loss

    def backward(self):
        self.loss.backward()

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad()

    def __call__(self):
        self.forward()
        self.backward()
        self.update()


def step_seconds(step):
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
        seconds.append((time.perf_counter() - start) / STEPS)
    return sorted(seconds)[ROUNDS // 2]


def parts_seconds(step):
    parts = []
    for _ in range(ROUNDS):
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(4)]
        marks[0].record()
        for mark, part in zip(marks[1:], (step.forward, step.backward, step.update)):
            part()
            mark.record()
        torch.cuda.synchronize()
        parts.append([before.elapsed_time(after) * 1e-3 for before, after in zip(marks, marks[1:])])
    return sorted(parts)[ROUNDS // 2]


def kernel_seconds(step):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    return sum(e.device_time for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA) * 1e-6


def measure(case):
    before = torch.cuda.memory_allocated()
    step = Step(case)
    for _ in range(WARM):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    return {"step_s": step_seconds(step), "peak_bytes": torch.cuda.max_memory_allocated() - before, "parts_s": parts_seconds(step),
            "kernel_s": kernel_seconds(step)}


def main(out, cases, measured=measure):
    rows = []
    with open(cases) as file:
        cases = json.load(file)
    for case in cases:
        rows.append(case | measured(case))
        gc.collect()
        torch.cuda.empty_cache()
        torch._dynamo.reset()
        with open(out, "w") as file:
            json.dump(rows, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
