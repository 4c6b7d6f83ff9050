"""Kernels beside a collective on one GPU: how much longer they take while another kernel holds some of its units.

    python3 kernels/torch/beside.py OUT.json

The other kernel has as many blocks as a collective of NCCL has channels, each with the threads and the shared memory of
one (640 and 82 kB, so that no block of a product fits beside it). It either waits, or copies memory as the collective
does, until it is told to stop. A case is launched again and again for 30 ms before it is timed, three times for 15 ms, of
which the median counts. Products are also timed where cuBLAS is told to leave units alone (cublasSetSmCountTarget, or
PyTorch's carve-out for fp8). OUT.json is as validation/measured/beside.json; the names of kernels are printed.
"""
import ctypes
import json
import statistics
import sys
import time

import cupy
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

WARM_S, TIMED_S, REPEATS = 30e-3, 15e-3, 3
WAITING, COPYING, MARGIN = (4, 8, 16, 24, 32), (4, 16, 32), 16
THREADS, SHARED_BYTES, COPIED_BYTES = 640, 82 * 1024, 1 << 26
HOLD = r'''
extern "C" __global__ void __launch_bounds__(640, 1)
hold(volatile int *stop, int *here, uint4 *from, uint4 *to, unsigned long long per_block, unsigned long long *moved)
{
    extern __shared__ int shared[];
    unsigned long long done = 0, began, ended;
    if (threadIdx.x == 0) { shared[0] = 0; atomicAdd(here, 1); __threadfence_system(); }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
    const uint4 *f = from + blockIdx.x * per_block;
    uint4 *t = to + blockIdx.x * per_block;
    while (*stop == 0) {
        if (!per_block) { __nanosleep(200); continue; }
        for (int piece = 0; piece < 4; piece++) {
            const unsigned long long at = (done + threadIdx.x) % per_block;
            uint4 a = f[at];
            const unsigned long long at2 = (done + 640 + threadIdx.x) % per_block;
            uint4 b = f[at2];
            const unsigned long long at3 = (done + 1280 + threadIdx.x) % per_block;
            uint4 c = f[at3];
            const unsigned long long at4 = (done + 1920 + threadIdx.x) % per_block;
            uint4 d = f[at4];
            t[at] = a; t[at2] = b; t[at3] = c; t[at4] = d;
            done += 2560;
        }
    }
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ended));
    if (threadIdx.x == 0) { moved[2 * blockIdx.x] = done * 16; moved[2 * blockIdx.x + 1] = ended - began; }
}'''
DTYPE = dict(device="cuda", dtype=torch.bfloat16)


class Holder:
    """Blocks beside the kernels that are timed."""

    def __init__(self):
        self.kernel = cupy.RawKernel(HOLD, "hold")
        self.kernel.max_dynamic_shared_size_bytes = SHARED_BYTES
        self.side, self.control = cupy.cuda.Stream(non_blocking=True), cupy.cuda.Stream(non_blocking=True)
        self.stop, self.here = cupy.zeros(1, cupy.int32), cupy.zeros(1, cupy.int32)
        self.one, self.zero = cupy.ones(1, cupy.int32), cupy.zeros(1, cupy.int32)
        self.pinned = cupy.cuda.alloc_pinned_memory(4)  # before anything spins: allocations may wait for it
        self.moved = cupy.zeros(2 * max(WAITING), cupy.uint64)
        self.buffers = [cupy.zeros(max(COPYING) * COPIED_BYTES, cupy.uint8) for _ in range(2)]
        self.blocks = 0

    def put(self, to, value):
        cupy.cuda.runtime.memcpyAsync(to.data.ptr, value.data.ptr, 4, 3, self.control.ptr)
        self.control.synchronize()

    def start(self, blocks, copies):
        torch.cuda.synchronize()
        self.put(self.stop, self.zero)
        self.put(self.here, self.zero)
        self.blocks, self.copies = blocks, copies
        if not blocks:
            return
        with self.side:
            per_block = COPIED_BYTES // 16 if copies else 0
            self.kernel((blocks,), (THREADS,), (self.stop, self.here, self.buffers[0], self.buffers[1], cupy.uint64(per_block), self.moved),
                        shared_mem=SHARED_BYTES)
        for _ in range(4000):
            cupy.cuda.runtime.memcpyAsync(self.pinned.ptr, self.here.data.ptr, 4, 2, self.control.ptr)
            self.control.synchronize()
            if ctypes.c_int.from_address(self.pinned.ptr).value >= blocks:
                return
            time.sleep(0.0005)
        raise RuntimeError("the blocks did not all start")

    def end(self):
        """Returns the bytes a second that it copied: read once and written once."""
        self.put(self.stop, self.one)
        self.side.synchronize()
        if not self.blocks or not self.copies:
            return 0
        moved = self.moved.get()[:2 * self.blocks].astype(float)
        return float(sum(moved[0::2]) / (statistics.mean(moved[1::2]) * 1e-9))


def batch(f, n):
    a, b = torch.cuda.Event(True), torch.cuda.Event(True)
    a.record()
    for _ in range(n):
        f()
    b.record()
    b.synchronize()
    return a.elapsed_time(b) * 1e-3


def seconds(f):
    one_s = batch(f, 3) / 3
    batch(f, max(int(WARM_S / one_s), 1))
    n = max(int(TIMED_S / one_s), 3)
    return statistics.median(batch(f, n) / n for _ in range(REPEATS))


def products():
    shapes = ((4096, 4096, 4096), (8192, 4096, 4096), (8192, 11008, 4096), (8192, 4096, 11008), (4096, 11008, 4096), (8192, 13824, 5120),
              (8192, 5120, 13824), (8192, 8192, 8192), (8192, 28672, 8192), (16384, 14336, 4096), (2048, 4096, 4096), (8192, 5120, 5120),
              (8192, 1536, 12288), (8192, 6144, 12288), (8192, 12288, 6144), (8192, 3584, 8192), (16384, 2048, 2048))
    for m, n, k in shapes:
        a, b = torch.randn(m, k, **DTYPE), torch.randn(n, k, **DTYPE)
        yield "product", f"gemm {m} {n} {k}", lambda a=a, b=b: F.linear(a, b)
    for m, n, k in ((8192, 4096, 4096), (8192, 11008, 4096), (8192, 28672, 8192)):
        g, x = torch.randn(m, n, **DTYPE), torch.randn(m, k, **DTYPE)
        yield "product", f"gemm weights {m} {n} {k}", lambda g=g, x=x: g.t() @ x
        w = torch.randn(n, k, **DTYPE)
        yield "product", f"gemm inputs {m} {n} {k}", lambda g=g, w=w: g @ w


def narrow_products():
    one = torch.ones((), device="cuda")
    for m, n, k in ((8192, 4096, 4096), (8192, 11008, 4096), (8192, 8192, 8192), (8192, 28672, 8192), (8192, 12288, 6144), (16384, 14336, 4096)):
        a, b = torch.randn(m, k, **DTYPE).to(torch.float8_e4m3fn), torch.randn(n, k, **DTYPE).to(torch.float8_e4m3fn)
        yield "fp8 product", f"fp8 gemm {m} {n} {k}", lambda a=a, b=b: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)


def grouped_products():
    for groups, m, n, k in ((8, 8192, 14336, 4096), (8, 16384, 4096, 14336), (32, 16384, 1408, 2048)):
        a, b = torch.randn(m, k, **DTYPE), torch.randn(groups, n, k, **DTYPE)
        ends = torch.arange(1, groups + 1, device="cuda", dtype=torch.int32) * (m // groups)
        yield "grouped product", f"grouped gemm {groups} {m} {n} {k}", lambda a=a, b=b, e=ends: torch._grouped_mm(a, b.transpose(-2, -1), offs=e)


def attention_with(backend, word, shape):
    q = torch.randn(*shape, **DTYPE, requires_grad=True)
    name = f"{word} {' '.join(map(str, shape))}"

    def forward(x):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(x, x, x, is_causal=True)

    out, still = forward(q), q.detach()
    gradient = torch.randn_like(out)
    yield "attention", name, lambda: forward(still)
    yield "attention", f"{name} backward", lambda: torch.autograd.grad(out, q, gradient, retain_graph=True)


def attentions():
    for shape in ((2, 32, 4096, 128), (1, 32, 8192, 128), (4, 16, 2048, 128)):
        yield from attention_with(SDPBackend.CUDNN_ATTENTION, "cuDNN attention", shape)
    yield from attention_with(SDPBackend.FLASH_ATTENTION, "FlashAttention-2", (2, 32, 4096, 128))


def convolutions():
    for images, channels, size in ((256, 64, 56), (256, 256, 28), (128, 128, 112)):
        x = torch.randn(images, channels, size, size, **DTYPE).to(memory_format=torch.channels_last)
        w = torch.randn(channels, channels, 3, 3, **DTYPE).to(memory_format=torch.channels_last)
        yield "convolution", f"conv {images} {channels} {size}", lambda x=x, w=w: F.conv2d(x, w, padding=1)


def memory_passes():
    x = torch.randn(8192, 11008, **DTYPE)
    y, z, w = torch.empty_like(x), torch.randn(8192, 4096, **DTYPE), torch.ones(4096, **DTYPE)
    yield "memory", "copy 8192 11008", lambda: y.copy_(x)
    yield "memory", "silu 8192 11008", lambda: F.silu(x)
    yield "memory", "add 8192 11008", lambda: x + y
    yield "memory", "layernorm 8192 4096", lambda: F.layer_norm(z, (4096,), w, w)
    yield "memory", "cast 8192 11008", lambda: x.float()
    compiled = torch.compile(lambda a: F.rms_norm(a + a.roll(1, 0), (4096,), w))
    yield "memory", "compiled norm 8192 4096", lambda: compiled(z)
    p = torch.nn.Parameter(torch.randn(200_000_000, device="cuda"))
    p.grad = torch.randn_like(p)
    adam = torch.optim.AdamW([p], fused=True)
    yield "memory", "fused AdamW 200000000", adam.step


class Margin:
    """Units that products leave alone."""

    def __init__(self):
        self.library = ctypes.CDLL("libcublas.so.13" if torch.version.cuda.startswith("13") else "libcublas.so.12")
        self.units = torch.cuda.get_device_properties(0).multi_processor_count

    def set(self, margin):
        handle = ctypes.c_void_p(torch.cuda.current_blas_handle())
        target = ctypes.c_int(self.units - margin if margin else 0)
        if self.library.cublasSetSmCountTarget(handle, target):
            raise RuntimeError("cublasSetSmCountTarget refused")
        torch._C._set_sm_carveout_experimental(margin or None)


def kernels_of(f):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        f()
        torch.cuda.synchronize()
    return [e.name[:120] for e in profile.events() if e.device_type == torch.autograd.DeviceType.CUDA]


def timed(holder, f, blocks, copies):
    holder.start(blocks, copies)
    try:
        taken_s = seconds(f)
    finally:
        rate = holder.end()
    return {"units": blocks, "copies_bytes_per_s": round(rate, -9), "seconds": taken_s}


def row_of(holder, margin, case):
    kind, name, f = case
    for _ in range(5):
        f()
    torch.cuda.synchronize()
    row = {"kind": kind, "name": name, "alone": [timed(holder, f, 0, False)["seconds"]], "beside": []}
    for copies, counts in ((False, WAITING), (True, COPYING)):
        row["beside"] += [timed(holder, f, k, copies) for k in counts]
    if "product" in kind and margin:
        margin.set(MARGIN)
        for blocks, copies in ((0, False), (MARGIN, False), (MARGIN, True)):
            for _ in range(3):
                f()
            row["beside"].append({"margin": MARGIN, **timed(holder, f, blocks, copies)})
        margin.set(0)
    row["alone"].append(timed(holder, f, 0, False)["seconds"])
    return row


def columns_of(row):
    alone = [{"units": 0, "copies_bytes_per_s": 0, "seconds": seconds} for seconds in row["alone"]]
    return [[row["kind"], row["name"], b["units"], b.get("margin", 0), b["copies_bytes_per_s"], float(f"{b['seconds']:.4g}")]
            for b in alone + row["beside"]]


def write(path, rows):
    source = (f"PyTorch {torch.__version__} (CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}) on one "
              f"{torch.cuda.get_device_name()}, by kernels/torch/beside.py: kernels called again and again while another kernel holds "
              "units as NCCL's channels do, waiting or copying memory. Rows: the first two of a kernel are of it alone, before and "
              "after; margin: units that cuBLAS is told to leave alone")
    columns = ["kind", "kernel", "units_held", "margin_units", "copied_bytes_per_s", "seconds"]
    with open(path, "w") as file:
        lines = ",\n".join(f"    {json.dumps(line)}" for row in rows for line in columns_of(row))
        file.write(f'{{\n  "schema": "dlsim/measured/1",\n  "source": {json.dumps(source)},\n  "columns": {json.dumps(columns)},\n'
                   f'  "rows": [\n{lines}\n  ]\n}}\n')


def report(row):
    alone_s = statistics.mean(row["alone"])
    ratios = [f"{'margin ' if 'margin' in b else ''}{b['units']}{' copying %.2f TB/s' % (b['copies_bytes_per_s'] / 1e12) if b['copies_bytes_per_s'] else ''}: "
              f"{b['seconds'] / alone_s:.3f}" for b in row["beside"]]
    print(f"{row['name']}: {alone_s:.3e} s, again {row['alone'][1] / row['alone'][0]:.3f}; " + ", ".join(ratios), flush=True)


def main(path):
    holder, rows = Holder(), []
    try:
        margin = Margin()
    except OSError as why:
        print("no margin:", why)
        margin = None
    with torch.cuda.stream(torch.cuda.Stream()):
        for cases in (products, attentions, memory_passes, narrow_products, grouped_products, convolutions):
            try:
                for case in cases():
                    row = row_of(holder, margin, case)
                    rows.append(row)
                    report(row)
                    print("   ", *kernels_of(case[2]), flush=True)
                    write(path, rows)
            except Exception as why:
                print(cases.__name__, "failed:", repr(why)[:600], flush=True)
                if margin:
                    margin.set(0)


main(sys.argv[1])
