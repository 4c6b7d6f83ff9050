"""Times training steps of MLPerf HPC's CosmoFlow and DeepCAM on one GPU, and each of their layers alone.

    python3 kernels/torch/hpc_steps.py OUT.json [--layers] [--untuned] [MODEL or MODE ...]

CosmoFlow of rounds 1.0 to 3.0 has windows of 3 in each direction, that of round 0.7 ("cosmoflow-0.7") windows of 2. Modes
are amp (autocast to fp16 with a scaled loss), tf32 and fp32; layouts are channels last or first. --untuned takes the first
algorithm that cuDNN proposes, where others are tried out (cudnn.benchmark), which takes minutes for DeepCAM."""
import contextlib
import json
import sys

import torch
from torch import nn
from torch.nn import functional as F

import timing
from passes import measured

MODES = ("amp", "tf32", "fp32")
# model, mode, channels last, samples
CASES = ([("cosmoflow", "amp", True, n) for n in (1, 2, 4, 8, 16)] + [("cosmoflow", "amp", False, n) for n in (1, 4)]
         + [("cosmoflow", mode, last, n) for mode in ("tf32", "fp32") for last in (True, False) for n in (1, 4)]
         + [("cosmoflow-0.7", mode, last, n) for mode in ("amp", "fp32") for last in (True, False) for n in (1, 4)]
         + [("deepcam", "amp", True, n) for n in (1, 2, 4, 8)] + [("deepcam", "amp", False, n) for n in (1, 2)]
         + [("deepcam", mode, last, n) for mode in ("tf32", "fp32") for last in (True, False) for n in (1, 2)])
LAYER_CASES = (("cosmoflow", "amp", 1), ("cosmoflow", "amp", 4), ("cosmoflow", "tf32", 2), ("cosmoflow-0.7", "amp", 2),
               ("deepcam", "amp", 2), ("deepcam", "tf32", 1))
SLOPE = 0.3


class CosmoFlow(nn.Module):
    def __init__(self, window):
        super().__init__()
        widths = [4] + [32 << i for i in range(5)]
        self.convs = nn.ModuleList(nn.Conv3d(a, b, window, padding=1 if window == 3 else 0) for a, b in zip(widths, widths[1:]))
        self.pads = nn.ConstantPad3d((0, 1) * 3, 0.0) if window == 2 else nn.Identity()
        self.activation, self.pool = nn.LeakyReLU(SLOPE), nn.MaxPool3d(2, 2)
        self.dense = nn.ModuleList(nn.Linear(a, b) for a, b in ((64 * 512, 128), (128, 64), (64, 4)))

    def forward(self, x, target):
        for conv in self.convs:
            x = self.pool(self.activation(conv(self.pads(x))))
        x = x.permute(0, 2, 3, 4, 1).flatten(1)
        for layer in self.dense[:2]:
            x = F.dropout(self.activation(layer(x)), 0.5)
        return F.mse_loss(torch.tanh(self.dense[2](x)) * 1.2, target)


def normed(*layers, width, relu=True):
    return [*layers, nn.BatchNorm2d(width)] + ([nn.ReLU(inplace=True)] if relu else [])


def separable(inside, outside, stride=1, dilation=1):
    return [nn.Conv2d(inside, inside, 3, stride, dilation, dilation, groups=inside, bias=False),
            nn.Conv2d(inside, outside, 1, bias=False)]


class Block(nn.Module):
    """Separable convolutions beside a way past them; the last of them, in some blocks, has no batch norm."""

    def __init__(self, inside, outside, first, reps, stride=1, has_last=False, relu=True):
        super().__init__()
        ways, width = [], inside
        for i in range(reps):
            wider = outside if first or i == reps - 1 else inside
            ways += normed(*separable(width, wider), width=wider, relu=i < reps - 1)
            width = wider
        if stride > 1 or has_last:
            ways += separable(outside, outside, stride)
        self.way = nn.Sequential(*ways)
        self.past = nn.Sequential(*normed(nn.Conv2d(inside, outside, 1, stride, bias=False), width=outside, relu=False)) \
            if inside != outside or stride > 1 else nn.Identity()
        self.relu = nn.ReLU(inplace=True) if relu else nn.Identity()

    def forward(self, x):
        out = self.way(x)
        out += self.past(x)
        return self.relu(out)


class Mean(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(2048, 256, 1, bias=False)
        self.scale, self.bias = nn.Parameter(torch.ones(256, 1, 1)), nn.Parameter(torch.zeros(256, 1, 1))

    def forward(self, x):
        one = F.relu(self.scale * self.conv(F.adaptive_avg_pool2d(x, 1)) + self.bias)
        return torch.tile(one, (1, 1, *x.shape[2:]))


def upsampled(inside, outside):
    return nn.ConvTranspose2d(inside, outside, 3, 2, 1, 1, bias=False)


class DeepCam(nn.Module):
    def __init__(self):
        super().__init__()
        conv = lambda a, b, k=3, s=1, d=1: nn.Conv2d(a, b, k, s, d * (k // 2), d, bias=False)
        seq = lambda *layers: nn.Sequential(*layers)
        self.begin = seq(*normed(conv(16, 32, s=2), width=32), *normed(conv(32, 64), width=64),
                         Block(64, 128, True, 2, 2, relu=False))
        self.middle = seq(nn.ReLU(), Block(128, 256, True, 2, 2), Block(256, 728, True, 2, 2),
                          *(Block(728, 728, True, 3) for _ in range(16)), Block(728, 1024, False, 2, has_last=True, relu=False),
                          *normed(*separable(1024, 1536, 1, 2), width=1536), *normed(*separable(1536, 1536, 1, 2), width=1536),
                          *normed(*separable(1536, 2048, 1, 2), width=2048))
        self.pyramid = nn.ModuleList([seq(*normed(conv(2048, 256, 1 if d == 1 else 3, d=d), width=256)) for d in (1, 6, 12, 18)] + [Mean()])
        self.joined = seq(*normed(conv(5 * 256, 256, 1), width=256), *normed(upsampled(256, 256), width=256),
                          *normed(upsampled(256, 256), width=256))
        self.low = seq(*normed(conv(128, 48, 1), width=48))
        self.end = seq(*normed(conv(304, 256), width=256), *normed(conv(256, 256), width=256), nn.Conv2d(256, 256, 1),
                       *normed(upsampled(256, 256), width=256), upsampled(256, 3))

    def forward(self, x, target):
        low = self.begin(x)
        x = self.middle(low)
        x = self.joined(torch.cat([way(x) for way in self.pyramid], 1))
        return F.cross_entropy(self.end(torch.cat((x, self.low(low)), 1)), target)


MODELS = {"cosmoflow": lambda: CosmoFlow(3), "cosmoflow-0.7": lambda: CosmoFlow(2), "deepcam": DeepCam}


def inputs(name, samples):
    if name == "deepcam":
        return torch.randn(samples, 16, 768, 1152, device="cuda"), torch.randint(3, (samples, 768, 1152), device="cuda")
    return torch.randn(samples, 4, 128, 128, 128, device="cuda"), torch.rand(samples, 4, device="cuda")


def format_of(name, last):
    if not last:
        return torch.contiguous_format
    return torch.channels_last if name == "deepcam" else torch.channels_last_3d


class Step:
    def __init__(self, name, mode, last, samples):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = mode == "tf32"
        self.model = MODELS[name]().cuda().to(memory_format=format_of(name, last))
        x, target = inputs(name, samples)
        self.inputs = x.to(memory_format=format_of(name, last)), target
        self.optimizer = (torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True) if name == "deepcam"
                          else torch.optim.SGD(self.model.parameters(), lr=1e-4, momentum=0.9))
        self.scaler = torch.amp.GradScaler("cuda", enabled=mode == "amp")
        self.cast = mode == "amp"

    def forward(self):
        with torch.autocast("cuda", torch.float16) if self.cast else contextlib.nullcontext():
            self.loss = self.model(*self.inputs)

    def backward(self):
        self.scaler.scale(self.loss).backward()
        self.loss = None

    def update(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)


def layers_of(name, last):
    """Every layer with the shape of its input at one sample, and how often it is there."""
    net, seen = MODELS[name]().cuda().to(memory_format=format_of(name, last)), {}
    kinds = (nn.Conv2d, nn.Conv3d, nn.ConvTranspose2d, nn.BatchNorm2d, nn.LeakyReLU, nn.ReLU, nn.MaxPool3d, nn.ConstantPad3d)

    def note(module, given, out):
        key = repr(module), tuple(given[0].shape[1:])
        seen.setdefault(key, [module, 0])[1] += 1
    for module in net.modules():
        if isinstance(module, kinds):
            module.register_forward_hook(note)
    with torch.no_grad():
        net.eval()(*inputs(name, 1))
    return [(key, *value) for key, value in seen.items()]


def gradients(conv, x, g, mask):
    """Of a convolution's input, or of its weights, as autograd asks for them."""
    spread = getattr(conv, "output_padding", (0,) * len(conv.stride))
    return lambda: torch.ops.aten.convolution_backward(g, x, conv.weight, [conv.out_channels] if mask[2] else None, conv.stride, conv.padding,
                                                       conv.dilation, conv.transposed, spread, conv.groups, mask)


def calls_of(module, x, is_conv):
    """What is timed of a layer, by name: each makes a call on buffers of its own."""
    def forward():
        with torch.no_grad():
            module(x)
    if not is_conv:
        leaf, g = x.clone().requires_grad_(), torch.randn_like(module(x))
        return {"forward": forward, "both": lambda: torch.autograd.grad(module(leaf), [leaf, *module.parameters()], g)}
    g = torch.randn_like(module(x)).detach()
    return {"forward": forward, "input_gradient": gradients(module, x, g, [True, False, False]),
            "weight_gradient": gradients(module, x, g, [False, True, module.bias is not None])}


def layer_times(name, mode, samples, last=True):
    """Seconds of each pass of each layer alone."""
    torch.backends.cudnn.allow_tf32 = mode == "tf32"
    dtype, rows = torch.float16 if mode == "amp" else torch.float32, []
    for (text, shape), module, times in layers_of(name, last):
        is_conv = isinstance(module, nn.modules.conv._ConvNd)
        module = module.train().to(dtype) if is_conv else module.train()
        if hasattr(module, "inplace"):
            module.inplace = False
        form = format_of("deepcam" if len(shape) == 3 else "cosmoflow", last) if len(shape) > 2 else torch.contiguous_format
        row = {"layer": text, "input": shape, "times": times}
        for wanted in ("forward", "input_gradient", "weight_gradient") if is_conv else ("forward", "both"):
            def make():
                x = torch.randn(samples, *shape, device="cuda", dtype=dtype).to(memory_format=form)
                return calls_of(module, x, is_conv)[wanted], 2 * x.numel() * x.element_size()
            try:
                row[wanted] = timing.timed(make, False)[0]
            except RuntimeError as error:
                row[wanted] = str(error)[:80]
                torch.cuda.synchronize()
        rows.append(row)
    return {"model": name, "mode": mode, "samples": samples, "rows": rows}


def chosen(cases):
    names, modes = ([word for word in sys.argv[2:] if word in words] for words in (MODELS, MODES))
    return [case for case in cases if case[0] in (names or MODELS) and case[1] in (modes or MODES)]


def timed_step(case):
    torch.manual_seed(0)
    row = dict(zip(("model", "mode", "channels_last", "samples"), case)) | measured(Step(*case), False)
    print(*case, f"step {row['step_s'] * 1e3:.2f} ms, busy {sum(p['busy_s'] for p in row['profile'].values()) * 1e3:.2f}", flush=True)
    return row


def main():
    torch.backends.cudnn.benchmark = "--untuned" not in sys.argv
    out = {"torch": torch.__version__, "cudnn": torch.backends.cudnn.version(), "device": torch.cuda.get_device_name(), "rows": [], "layers": []}
    jobs = [("rows", timed_step, case) for case in chosen(CASES)]
    jobs += [("layers", lambda of: layer_times(*of), case) for case in chosen(LAYER_CASES) if "--layers" in sys.argv]
    for where, do, case in jobs:
        try:
            out[where].append(do(case))
        except RuntimeError as error:  # out of memory, too
            print(*case, str(error)[:120], flush=True)
        torch.cuda.empty_cache()
        with open(sys.argv[1], "w") as file:
            json.dump(out, file)


main()
