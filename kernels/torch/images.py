"""Tables of what PyTorch does with images, channels last: convolutions of torchvision's networks and what stands between."""
import torch
from torch.nn import functional as F

from models import network
from timing import DTYPES, PASSES, Table, plain, take_away


def layers_of(names, kinds):
    """Every layer of these kinds in these networks with the shape of its input at one sample."""
    seen = {}
    for name in names:
        net = network(name).cuda()
        def note(module, inputs, output):
            seen.setdefault((repr(module), tuple(inputs[0].shape[1:])), (module, tuple(inputs[0].shape[1:]), tuple(output.shape[1:])))
        hooks = [m.register_forward_hook(note) for m in net.modules() if isinstance(m, kinds)]
        with torch.no_grad():
            net.eval()(torch.randn(1, 3, 224, 224, device="cuda"))
        for hook in hooks:
            hook.remove()
    return list(seen.values())


def convolutions(precision, batches, names, only_groups=False):
    dtype = DTYPES[precision]
    tables = {step: Table("conv", step, precision, ["batch", "m", "n", "k", "samples", "height", "window", "stride"]) for step in PASSES}
    for conv, (c, h, w), (o, oh, ow) in layers_of(names, torch.nn.Conv2d):
        for batch in batches if conv.groups > 1 or not only_groups else ():
            window = conv.kernel_size[0] * conv.kernel_size[1]
            m, n, k = batch * oh * ow, o // conv.groups, c // conv.groups * window
            tail = (batch, h, conv.kernel_size[0], conv.stride[0])
            size = batch * (c * h * w + o * oh * ow) * dtype.itemsize
            def tensors():
                like = dict(device="cuda", dtype=dtype)
                return (torch.randn(batch, c, h, w, **like).to(memory_format=torch.channels_last),
                        torch.randn(conv.weight.shape, **like).to(memory_format=torch.channels_last),
                        torch.randn(batch, o, oh, ow, **like).to(memory_format=torch.channels_last))
            def make_forward():
                x, weight, _ = tensors()
                return (lambda: F.conv2d(x, weight, None, conv.stride, conv.padding, conv.dilation, conv.groups)), size
            def make_backward(mask):
                x, weight, g = tensors()
                return (lambda: torch.ops.aten.convolution_backward(g, x, weight, None, conv.stride, conv.padding, conv.dilation,
                                                                    False, [0, 0], conv.groups, mask)), size
            tables["forward"].add((conv.groups, m, n, k, *tail), make_forward, loaded=False)
            if c > 3:
                tables["input_gradient"].add((conv.groups, m, k, n, *tail), lambda: make_backward([True, False, False]), loaded=False)
            tables["weight_gradient"].add((conv.groups, k, n, m, *tail), lambda: make_backward([False, True, False]), loaded=False)


def windows_of(pool):
    """That hold an input, on average."""
    return (pool.kernel_size / pool.stride) ** 2


BETWEEN = {"batchnorm": torch.nn.BatchNorm2d, "pool": torch.nn.MaxPool2d, "mean_pool": torch.nn.AvgPool2d}


def between_convolutions(precision, batches, names, kinds=BETWEEN):
    """Max pools compare, which goes with the clock: they are timed at the highest, as they run in a training step."""
    dtype = DTYPES[precision]
    image = lambda *shape: torch.randn(*shape, device="cuda", dtype=dtype).to(memory_format=torch.channels_last).requires_grad_()
    for name, kind in kinds.items():
        ahead, back = (Table(name, step, precision, ["rows", "channels", "width", "elements"])
                       for step in ("forward", "backward"))
        for module, (c, h, w), (o, oh, ow) in layers_of(names, kind):
            layer, width = (module, windows_of(module)) if name != "batchnorm" else (type(module)(c).cuda().train(), c)
            for batch in batches:
                elements, left = batch * c * h * w, batch * o * oh * ow
                counts = (3 * elements, 5 * elements) if name == "batchnorm" else (elements + left, 2 * elements + left)
                def make_forward():
                    x = image(batch, c, h, w).detach()
                    return (lambda: layer(x)), 2 * elements * dtype.itemsize
                def make_both():
                    x = image(batch, c, h, w)
                    g = torch.randn_like(layer(x))
                    wanted = [x, *layer.parameters()]
                    return (lambda: torch.autograd.grad(layer(x), wanted, g)), 4 * elements * dtype.itemsize
                ahead.add((batch * h * w, c, width, counts[0]), make_forward, loaded=name != "pool")
                back.add((batch * h * w, c, width, counts[1]), make_both, loaded=name != "pool")
        take_away(ahead, back, 3)


PART = 32  # channels, as DenseNet's layers add


def joined(precision):
    """Parts put side by side, channels last, and gradients of parts, which are views, added."""
    dtype = DTYPES[precision]
    planes = [(b * s * s, c) for b in (16, 64, 256) for c, s in ((128, 56), (256, 56), (384, 28), (768, 14), (1024, 7))]
    like = lambda rows, channels: torch.randn(1, rows, 1, channels, device="cuda", dtype=dtype).permute(0, 3, 1, 2)

    def concat(r, w):
        parts = [like(r, PART) for _ in range(w // PART)]
        return lambda: torch.cat(parts, 1)
    plain("concat", precision, planes, 2, concat)

    def add(r, w):
        a, b = like(r, 512), like(r, 512)
        return lambda: a[:, :w] + b[:, w:2 * w]
    plain("add_slices", precision, [(r, PART) for r in (12544, 50176, 200704, 802816)] + [(50176, 256), (200704, 128)], 3, add, "any")
