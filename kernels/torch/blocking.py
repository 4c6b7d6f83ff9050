"""What CUDA_LAUNCH_BLOCKING=1 adds to each launch: the same eager layers with and without it.

    python3 kernels/torch/blocking.py

starts itself eight times (blocking or not, small or large kernels, twice) and writes $OUT/blocking.json. A host that runs ahead needs wall/launches of the small layers for one launch; where launches block, the device is idle for
(wall - busy) / launches between two kernels. The difference is what the wait itself takes."""
import json
import os
import subprocess
import sys
import time


def child(size):
    import torch
    from torch.utils.checkpoint import checkpoint
    hidden, tokens, heads, layers = {"small": (256, 256, 4, 8), "large": (4096, 4096, 32, 4)}[size]
    dev, half = "cuda", torch.float16
    torch.manual_seed(0)

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.n1, self.n2 = torch.nn.LayerNorm(hidden), torch.nn.LayerNorm(hidden)
            self.qkv, self.out = torch.nn.Linear(hidden, 3 * hidden), torch.nn.Linear(hidden, hidden)
            self.up, self.down = torch.nn.Linear(hidden, 4 * hidden), torch.nn.Linear(4 * hidden, hidden)

        def forward(self, x):
            y = self.n1(x)
            q, k, v = self.qkv(y).view(tokens, heads, -1).transpose(0, 1).chunk(3, -1)
            scores = torch.baddbmm(torch.empty(1, 1, 1, dtype=half, device=dev), q, k.transpose(1, 2), beta=0, alpha=0.1)
            p = torch.nn.functional.dropout(torch.softmax(scores, -1), 0.1)
            y = torch.bmm(p, v).transpose(0, 1).reshape(tokens, hidden)
            x = x + torch.nn.functional.dropout(self.out(y), 0.1)
            y = torch.nn.functional.gelu(self.up(self.n2(x)))
            return x + torch.nn.functional.dropout(self.down(y), 0.1)

    model = torch.nn.ModuleList([Layer() for _ in range(layers)]).to(dev, half)
    x = torch.randn(tokens, hidden, device=dev, dtype=half, requires_grad=True)

    def step():
        y = x
        for layer in model:
            y = checkpoint(layer, y, use_reentrant=True)
        y.backward(torch.ones_like(y))

    for _ in range(5):
        step()
    torch.cuda.synchronize()
    walls = []
    for _ in range(30):
        t = time.perf_counter()
        step()
        torch.cuda.synchronize()
        walls.append(time.perf_counter() - t)
    from torch.profiler import profile, ProfilerActivity
    with profile(activities=[ProfilerActivity.CUDA]) as prof:
        step()
        torch.cuda.synchronize()
    kernels = [e for e in prof.events() if str(e.device_type).endswith("CUDA") and not e.name.startswith("Context")]
    busy = sum(getattr(e, "device_time", 0) or e.time_range.elapsed_us() for e in kernels) * 1e-6
    walls.sort()
    print(json.dumps({"launches": len(kernels), "busy_s": busy, "wall_s": walls[len(walls) // 2], "least_s": walls[0],
                      "most_s": walls[-1], "torch": torch.__version__, "device": torch.cuda.get_device_name()}))


if len(sys.argv) > 1:
    child(sys.argv[1])
    sys.exit()
out = {}
for repeat in range(2):
    for size in ("small", "large"):
        for blocking in (0, 1):
            env = dict(os.environ, CUDA_LAUNCH_BLOCKING=str(blocking))
            done = subprocess.run([sys.executable, __file__, size], env=env, capture_output=True, text=True)
            name = f"{size} {'blocking' if blocking else 'ahead'} {repeat}"
            try:
                r = json.loads(done.stdout.strip().splitlines()[-1])
            except Exception:
                r = {"error": done.stderr[-800:]}
            else:
                r["wall_us_per_launch"] = 1e6 * r["wall_s"] / r["launches"]
                r["idle_us_per_launch"] = 1e6 * (r["wall_s"] - r["busy_s"]) / r["launches"]
            out[name] = r
            print(name, r, flush=True)
os.makedirs(os.environ.get("OUT", "."), exist_ok=True)
json.dump(out, open(os.path.join(os.environ.get("OUT", "."), "blocking.json"), "w"), indent=1)
