"""Lists the kernels of a training step of what Hugging Face's transformers makes of a config, and what autograd keeps of it.

    python3 kernels/torch/hugging_face_kernels.py OUT.json CASES.json

CASES.json is as for hugging_face.py, best with models of two blocks (hugging_face_kernels_cases.json beside this file: those
that rules of strategies/software/pytorch-transformers*.json were counted on). A case gives `ops`, each operation of PyTorch
with the shapes of what it is given and its kernels with their microseconds; `saved`, the shape, type and bytes of each tensor
that is kept for the backward; and the peak of allocated memory. Steps are few, so clocks are those of a device that is cool.
Those rules were counted in November 2026 by an earlier form of this script, which did the same; this form has not run yet.
"""
import sys

import torch

import hugging_face


def saved_tensors(step):
    parameters = {p.untyped_storage().data_ptr() for p in step.model.parameters()}
    saved = {}

    def pack(x):
        storage = x.untyped_storage()
        if x.is_cuda and storage.data_ptr() not in parameters:
            saved.setdefault(storage.data_ptr(), [list(x.shape), str(x.dtype).removeprefix("torch."), storage.nbytes()])
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        step.forward()
    step.backward()
    step.update()
    return list(saved.values())


def operations(step):
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities, record_shapes=True) as profile:
        step()
        torch.cuda.synchronize()
    return [[e.name, str(e.input_shapes), [[k.name, k.duration] for k in e.kernels]] for e in profile.events() if e.kernels]


def measure(case):
    before = torch.cuda.memory_allocated()
    step = hugging_face.Step(case)
    for _ in range(hugging_face.WARM):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    return {"peak_bytes": peak, "saved": saved_tensors(step), "ops": operations(step)}


hugging_face.main(*sys.argv[1:], measured=measure)
