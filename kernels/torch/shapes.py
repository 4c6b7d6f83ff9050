"""Shapes that are timed on a GPU: those of the shipped models, and drawn ones."""
import json
import os
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
    for tokens, hidden in ((32768, 768), (16384, 1024), (1024, 1280), (16384, 1600), (1024, 1600)):
        yield tokens, 50257, hidden
    for hidden, qkv, into, out_of, ways in grouped_and_gated():
        for tokens in (2048, 4096, 8192):
            yield tokens, qkv // ways, hidden
            yield tokens, hidden, hidden // ways
            yield tokens, into // ways, hidden
            yield tokens, hidden, out_of // ways
    for hidden, vocab in ((4096, 32000), (4096, 128256), (8192, 32000 // 8), (8192, 128256 // 8), (7168, 50368)):
        yield 4096, vocab, hidden


def grouped_and_gated():
    """hidden, outputs of the attention's first product, of the feed-forward's first, inputs of its second, ways."""
    for ways in (1, 2):
        yield 4096, 3 * 4096, 2 * 11008, 11008, ways   # llama2-7b
        yield 4096, 6144, 2 * 14336, 14336, ways       # llama3-8b, mixtral-8x7b
        yield 5120, 3 * 5120, 2 * 13824, 13824, ways   # llama2-13b
    for ways in (1, 2, 4):
        yield 7168, 3 * 7168, 28672, 28672, ways       # mpt-30b
    for ways in (2, 4, 8):
        yield 8192, 10240, 2 * 28672, 28672, ways      # llama2-70b, llama3-70b
    yield 16384, 18432, 2 * 53248, 53248, 8            # llama3-405b


def odd_products(n, seed):
    draw = random.Random(seed)
    while n:
        m, k, o = (round(2 ** draw.uniform(6, 15)) for _ in range(3))
        if draw.random() < 0.7:
            m, k, o = (max(8, x // 8 * 8) for x in (m, k, o))
        if 1e8 < 2.0 * m * k * o < 2e13:
            n -= 1
            yield m, o, k


def tables_of(device_file):
    """Its "measured", with tables of other files in the place of their names."""
    with open(device_file) as file:
        for table in json.load(file).get("measured", []):
            yield from tables_of(path_of(device_file, table["file"])) if "file" in table else [table]


def path_of(device_file, name):
    """Of a file of tables that a device file names."""
    folder = os.path.dirname(device_file)
    return os.path.join(folder, name) if "/" in name else os.path.join(folder, "measured", name + ".json")


def products_of(device_file, precision):
    """What a device file has of forward products, to time it again."""
    tables = [t for t in tables_of(device_file)
              if (t["kernel"], t.get("pass"), t["precision"]) == ("gemm", "forward", precision)]
    rows = [dict(zip(t["columns"], row)) for t in tables for row in t["rows"]]
    return [(row["m"], row["n"], row["k"]) for row in rows if row.get("batch", 1) == 1]
