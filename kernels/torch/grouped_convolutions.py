"""Times convolutions in groups of few channels on one GPU, and counts the instructions of their largest kernel.

    python3 kernels/torch/grouped_convolutions.py OUT.json [SECONDS]

cuDNN chooses its kernels by trying (torch.backends.cudnn.benchmark). Instructions are of warps, by Nsight Compute (ncu)
where it is installed and may count, for channels last in fp16; `one SHAPE PASS` is what it runs. An instruction of the
matrix units is 16 x 8 x 16 where the kernel's name says so: 4,096 flop.
"""
import csv
import json
import shutil
import subprocess
import sys
import time

import torch

SHAPES = ((32, 4, 56, 128), (64, 4, 56, 64), (32, 8, 28, 128), (64, 8, 28, 64), (32, 16, 14, 128), (32, 32, 7, 128),
          (16, 64, 14, 64), (1, 256, 14, 128))  # groups, channels of each, side of the image, images
KINDS = {"fp16": torch.float16, "bf16": torch.bfloat16, "tf32": torch.float32}
PASSES = ("forward", "input_gradient", "weight_gradient")
MATRIX, ALL = "sm__inst_executed_pipe_tensor.sum", "sm__inst_executed.sum"
CALLS, ROUNDS, COUNTED = 10, 5, (4, 8, 32)


def tensors(shape, precision, channels_last=True):
    groups, channels, side, images = shape
    layout = torch.channels_last if channels_last else torch.contiguous_format
    sizes = ((images, groups * channels, side, side), (groups * channels, channels, 3, 3), (images, groups * channels, side, side))
    x, w, dy = (torch.randn(s, device="cuda", dtype=KINDS[precision]).to(memory_format=layout) for s in sizes)
    return x, w, dy, groups


def call(x, w, dy, groups, which):
    if which == "forward":
        return torch.nn.functional.conv2d(x, w, padding=1, groups=groups)
    wanted = [which == "input_gradient", which == "weight_gradient", False]
    return torch.ops.aten.convolution_backward(dy, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], groups, wanted)


def seconds(args, which):
    for _ in range(8):
        call(*args, which)
    times = []
    for _ in range(ROUNDS):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(CALLS):
            call(*args, which)
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) * 1e-3 / CALLS)
    return sorted(times)[ROUNDS // 2]


def counts(shape, which):
    """Of the kernel with the most matrix instructions; nothing without ncu."""
    ncu = shutil.which("ncu")
    if not ncu:
        return {}
    command = [ncu, "--csv", "--metrics", f"{MATRIX},{ALL}", "--profile-from-start", "off", sys.executable, __file__]
    text = subprocess.run(command + ["one", json.dumps(shape), which], capture_output=True, text=True).stdout
    kernels = {}
    for row in csv.DictReader(line for line in text.splitlines() if line.startswith('"')):
        kernels.setdefault(row["Kernel Name"], {})[row["Metric Name"]] = float(row["Metric Value"].replace(",", ""))
    if not kernels:
        return {}
    name, found = max(kernels.items(), key=lambda k: k[1].get(MATRIX, 0))
    return {"kernel": name, "matrix_instructions": found[MATRIX], "instructions": found[ALL]}


def run_one(shape, which):
    args = tensors(shape, "fp16")
    for _ in range(3):
        call(*args, which)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    call(*args, which)
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def main(out, limit_s):
    torch.backends.cudnn.allow_tf32 = torch.backends.cudnn.benchmark = True
    rows, began = [], time.time()
    for precision in KINDS:
        for shape in SHAPES:
            for which in PASSES:
                for last in (True, False):
                    if time.time() - began > limit_s:
                        break
                    row = dict(zip(("groups", "channels", "side", "batch"), shape))
                    row.update({"precision": precision, "pass": which, "channels_last": last})
                    row["seconds"] = round(seconds(tensors(shape, precision, last), which), 8)
                    if last and precision == "fp16" and shape[1] in COUNTED:
                        row.update(counts(shape, which))
                    rows.append(row)
    with open(out, "w") as f:
        json.dump({"schema": "dlsim/measured/1", "rows": rows}, f, indent=1)


if __name__ == "__main__":
    if sys.argv[1] == "one":
        run_one(json.loads(sys.argv[2]), sys.argv[3])
    else:
        main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 100)
