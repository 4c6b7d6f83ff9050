"""Times one call on a GPU, as it runs in the midst of a training step: see timed(); and tables of such calls."""
import math
import statistics
import time

import torch

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "tf32": torch.float32}
PASSES = ("forward", "input_gradient", "weight_gradient")
CACHE_BYTES = 120e6        # twice the L2 of the chip: what rotates does not stay
MOST_BYTES = 24e9          # of all copies of one point
REPLAYS, LEAST_CALLS, MOST_CALLS = 5, 2, 256
TARGET_S = 4e-3            # of one replay, at least, where calls are short
LOAD_SIZE = 8192           # of the square product that keeps the chip as hot as training does
FIRST_LOADS, LOADS = 12, 4  # before a point, and before each of its replays
LONG_S, RESTS = 0.3e-3, 8  # calls that throttle themselves within a replay; what it takes to cool, over its seconds

_load = []


def load(n):
    """The clock follows the power of what ran before: large products give every point the same past."""
    if not _load:
        _load.extend(torch.randn(LOAD_SIZE, LOAD_SIZE, device="cuda", dtype=torch.bfloat16) for _ in "abc")
    for _ in range(n):
        torch.mm(_load[0], _load[1], out=_load[2])


def prepare(loaded, once, repeat):
    """Before a replay of so many calls of once seconds."""
    if loaded:
        load(LOADS)
    elif once > LONG_S:
        torch.cuda.synchronize()
        time.sleep(RESTS * repeat * once)


def timed(make, loaded):
    """make() -> a function that runs one call on buffers of its own, and their bytes. Seconds and relative spread.

    The median over replays of a CUDA graph of calls on rotating buffers that together exceed the cache, so it holds no
    launch time; each replay, if loaded, after products that load the chip, else at the highest clock.
    """
    call, size = make()
    copies = max(1, min(math.ceil(CACHE_BYTES / max(size, 1)), 64, int(MOST_BYTES / max(size, 1))))
    calls = [call] + [make()[0] for _ in range(copies - 1)]
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for one in calls[:2] * 2:
            one()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    calls[0]()
    torch.cuda.synchronize()
    once = time.perf_counter() - begin
    repeat = max(LEAST_CALLS, min(MOST_CALLS, int(TARGET_S / max(once, 1e-6))))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(repeat):
            calls[i % copies]()
    graph.replay()
    load(FIRST_LOADS if loaded else 0)
    times = []
    for _ in range(REPLAYS):
        prepare(loaded, once, repeat)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end) * 1e-3 / repeat)
    del graph
    return statistics.median(times), (max(times) - min(times)) / statistics.median(times)


def cold_seconds(call, calls):
    """The median of so many calls, each after other bytes have filled the cache, and queued so that no launch shows."""
    call()
    cold, times = torch.empty(256 << 20, dtype=torch.int8, device="cuda"), []
    for _ in range(calls):
        cold.zero_()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(200000)
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) * 1e-3)
    return sorted(times)[calls // 2]


class Table:
    every = []

    def __init__(self, kernel, step, precision, columns):
        self.head = {"kernel": kernel, "pass": step, "precision": precision}
        self.columns, self.rows, self.seen = columns, [], set()
        Table.every.append(self)

    def add(self, shape, make, loaded=True):
        if shape in self.seen:
            return
        self.seen.add(shape)
        try:
            seconds, spread = timed(make, loaded)
            self.rows.append([*shape, float(f"{seconds:.4g}"), float(f"{spread:.2g}")])
        except (RuntimeError, torch.OutOfMemoryError) as error:
            print(self.head, shape, str(error)[:100], flush=True)
            torch.cuda.synchronize()
        torch.cuda.empty_cache() if torch.cuda.memory_reserved() > 60e9 else None

    def json(self):
        return self.head | {"columns": [*self.columns, "seconds", "spread"], "rows": self.rows}


def take_away(ahead, both, n):
    """The forward from what was timed with it; the first n columns tell which rows belong together."""
    first = {tuple(r[:n]): r[-2] for r in ahead.rows}
    both.rows = [[*r[:-2], float(f"{r[-2] - first[tuple(r[:n])]:.4g}"), r[-1]] for r in both.rows if tuple(r[:n]) in first]


def plain(name, precision, sizes, count, make_of, step="forward"):
    table = Table(name, step, precision, ["rows", "width", "elements"])
    for rows, width in sizes:
        def make():
            return make_of(rows, width), count * rows * width * DTYPES[precision].itemsize
        table.add((rows, width, round(count * rows * width)), make)
