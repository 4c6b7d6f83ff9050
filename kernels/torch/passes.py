"""Times a training step on one GPU: an object with model, forward, backward and update."""
import collections
import statistics
import time

import torch

WARM, REPEATS = 3, 8
PHASES = ("forward", "backward", "update")


class Step:
    """With an optimizer and, after its forward, a loss."""

    def backward(self):
        self.loss.backward()
        self.loss = None

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def whole(step):
    for name in PHASES:
        getattr(step, name)()


def elapsed(step):
    """Seconds of each phase on the device while steps follow one another without a wait."""
    marks = [[torch.cuda.Event(enable_timing=True) for _ in range(len(PHASES) + 1)] for _ in range(REPEATS)]
    for of_step in marks:
        of_step[0].record()
        for name, mark in zip(PHASES, of_step[1:]):
            getattr(step, name)()
            mark.record()
    torch.cuda.synchronize()
    steady = marks[REPEATS // 2:]
    return {name + "_elapsed_s": statistics.median(m[i].elapsed_time(m[i + 1]) * 1e-3 for m in steady)
            for i, name in enumerate(PHASES)}


def phases(step):
    """Seconds of each phase with a wait after it, and what its host part takes."""
    out = collections.defaultdict(list)
    for _ in range(REPEATS):
        for name in PHASES:
            torch.cuda.synchronize()
            begin = time.perf_counter()
            getattr(step, name)()
            issued = time.perf_counter()
            torch.cuda.synchronize()
            out[name + "_s"].append(time.perf_counter() - begin)
            out[name + "_host_s"].append(issued - begin)
    return {key: statistics.median(values) for key, values in out.items()}


def launched(profile, letters=110, most=25):
    """Kernels that a profiler saw, their seconds and the largest of them, by so many letters of their names."""
    total = collections.defaultdict(lambda: [0, 0.0])
    for event in profile.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            total[event.name][0] += 1
            total[event.name][1] += event.device_time * 1e-6
    top = sorted(total.items(), key=lambda item: -item[1][1])[:most]
    return {"kernels": sum(n for n, _ in total.values()), "busy_s": sum(s for _, s in total.values()),
            "top": [[name[:letters], n, round(s, 7)] for name, (n, s) in top]}


def profiled(step):
    """What each phase launches."""
    out = {}
    for name in PHASES:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            getattr(step, name)()
            torch.cuda.synchronize()
        out[name] = launched(profile)
    return out


def measured(step, quick):
    """Seconds of a step and of its phases, the peak of its memory and, unless quick, what it launches."""
    for _ in range(WARM):
        whole(step)
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        for _ in range(REPEATS):
            whole(step)
        torch.cuda.synchronize()
        times.append((time.perf_counter() - begin) / REPEATS)
    row = {"step_s": statistics.median(times), "spread": (max(times) - min(times)) / min(times)}
    row["peak_bytes"] = torch.cuda.max_memory_allocated()
    row["parameters"] = sum(p.numel() for p in step.model.parameters())
    row |= elapsed(step) | phases(step)
    if not quick:
        row["profile"] = profiled(step)
    return row
