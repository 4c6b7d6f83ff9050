"""Times the reader of MLPerf HPC's DeepCAM: batches of two samples, by workers of a DataLoader.

    python3 kernels/torch/readers.py OUT.json

What each worker does to a sample is that of mlcommons/hpc, deepcam/src/deepCam/data: an HDF5 file of 768 x 1152 pixels of
16 variables is read, shifted, scaled and turned to channels first. Files stay in memory. Several processes at once are
the devices of a node."""
import json
import os
import subprocess
import sys
import tempfile
import time

import h5py
import numpy as np
import torch

SHAPE, FILES, BATCHES = (768, 1152, 16), 16, 32
CASES = ((1, 1), (1, 2), (1, 4), (2, 2), (4, 2), (4, 4))  # processes, workers of each


def make_files(folder):
    rng = np.random.default_rng(0)
    for i in range(FILES):
        with h5py.File(f"{folder}/{i}.h5", "w") as file:
            file["climate/data"] = rng.random(SHAPE, dtype=np.float32)
            file["climate/labels_0"] = rng.integers(0, 3, SHAPE[:2])


class Samples(torch.utils.data.Dataset):
    def __init__(self, folder):
        self.folder = folder
        self.shift, self.scale = (np.random.rand(1, 1, SHAPE[2]).astype(np.float32) for _ in range(2))

    def __len__(self):
        return 2 * BATCHES

    def __getitem__(self, index):
        with h5py.File(f"{self.folder}/{index % FILES}.h5", "r") as file:
            data, label = file["climate/data"][..., list(range(SHAPE[2]))], file["climate/labels_0"][...]
        return np.transpose(self.scale * (data - self.shift), (2, 0, 1)), label


def batch_s(folder, workers):
    """The pace of batches that are copied to the device as they come, and when the first one is there."""
    torch.set_num_threads(1)
    torch.zeros(1, device="cuda")
    begin, there = time.perf_counter(), []
    for data, label in torch.utils.data.DataLoader(Samples(folder), 2, num_workers=workers, pin_memory=True):
        data.to("cuda"), label.to("cuda")
        torch.cuda.synchronize()
        there.append(time.perf_counter())
    steady = there[BATCHES // 4:]
    return {"batch_s": (steady[-1] - steady[0]) / (len(steady) - 1), "first_s": there[0] - begin}


def timed(folder, processes, workers):
    jobs = [subprocess.Popen([sys.executable, __file__, folder, str(workers)], stdout=subprocess.PIPE, text=True)
            for _ in range(processes)]
    rows = [json.loads(job.communicate()[0].splitlines()[-1]) for job in jobs]
    mean = {key: sum(row[key] for row in rows) / len(rows) for key in rows[0]}
    return {"processes": processes, "workers": workers} | mean


def main():
    if len(sys.argv) > 2:
        print(json.dumps(batch_s(sys.argv[1], int(sys.argv[2]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        make_files(folder)
        rows = [timed(folder, *case) for case in CASES]
    with open(sys.argv[1], "w") as file:
        json.dump({"torch": torch.__version__, "h5py": h5py.__version__, "cpus": os.cpu_count(), "rows": rows}, file)


main()
