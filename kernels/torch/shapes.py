"""Shapes that are timed on a GPU: those of the shipped models, and drawn ones."""
import json
import random


def linears():
    """tokens, outputs, inputs of the linear layers of the shipped models and their tensor-parallel parts."""
    for hidden, ways in ((768, 1), (1024, 1), (1280, 1), (1600, 1), (2304, 1), (2560, 1), (4096, 1), (5120, 1),
                         (4096, 4), (6144, 8), (8192, 8), (12288, 8), (20480, 8), (25600, 8), (6144, 2), (12288, 4)):
        for tokens in (1024, 2048, 4096, 8192, 16384) if hidden <= 2560 else (2048, 4096, 8192):
            part = hidden // ways
            yield tokens, 3 * part, hidden
            yield tokens, hidden, part
            yield tokens, 4 * part, hidden
            yield tokens, hidden, 4 * part
    for tokens, hidden in ((1024, 768), (8192, 768), (8192, 1024), (4096, 1280), (8192, 1600), (2048, 2560),
                           (4096, 4096)):
        yield tokens, 50257, hidden
        yield tokens, 50304, hidden
    for tokens in (2048, 8192):
        for hidden, ffn in ((4096, 14336), (4096, 11008), (8192, 28672 // 8), (16384, 53248 // 8)):
            yield tokens, 2 * ffn, hidden
            yield tokens, hidden, ffn


def odd_products(n, seed):
    draw = random.Random(seed)
    while n:
        m, k, o = (round(2 ** draw.uniform(6, 15)) for _ in range(3))
        if draw.random() < 0.7:
            m, k, o = (max(8, x // 8 * 8) for x in (m, k, o))
        if 1e8 < 2.0 * m * k * o < 2e13:
            n -= 1
            yield m, o, k


def products_of(device_file, precision):
    """What a device file has of forward products, to time it again."""
    with open(device_file) as file:
        tables = json.load(file)["measured"]
    return [tuple(row[1:4]) for t in tables if (t["kernel"], t.get("pass"), t["precision"]) == ("gemm", "forward", precision)
            for row in t["rows"] if row[0] == 1]
