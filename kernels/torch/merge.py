"""Puts the tables of ops.py into a device file's "measured".

    python3 kernels/torch/merge.py [--keep] OPS.json... topologies/devices/NAME.json

With --keep the file keeps what it has of shapes that are in no OPS.json. Without it, what was timed replaces all tables
of a file; where the device file names files of its tables, those of kinds that were not timed stay as they are.
A shape that stands in several OPS.json gets the geometric mean of its times and their distance as spread: the clock of
a GPU follows the power of what ran before, so runs in different orders tell more than one. Only what struct dl_kernel
has is kept of the columns; a table without a pass ("any") holds for all of them. Where the device file names files of
its tables, kinds of kernels go into theirs. A file of more than 200 KB is not written: leave out shapes that others tell
enough of.
"""
import json
import math
import os
import shutil
import sys
import tempfile

import shapes

COLUMNS = {"gemm": ["batch", "m", "n", "k"], "conv": ["batch", "m", "n", "k", "window", "stride"],
           "attention": ["batch", "m", "n", "k", "causal", "kv_share", "dropout"],
           **{name: ["width", "elements"] for name in ("layernorm", "rmsnorm", "softmax", "bias", "pool", "batchnorm")}}
KINDS = {"gemm": "gemm", "grouped_gemm": "gemm", "attention": "attention", "conv": "conv"}  # others are "memory"
NAMES = {"width": "n"}  # of a row of a matrix; of a pool the windows that hold an input
LIBRARY = {"gemm": "cuBLAS", "conv": "cuDNN", "attention": "cuDNN"}
LINE = 118
MOST_BYTES = 200_000


def number(x):
    """The shorter of two forms."""
    if x == int(x):
        return "%d" % x
    digits, exponent = ("%.5e" % x).split("e")
    return min("%g" % x, f"{digits.rstrip('0').rstrip('.')}e{int(exponent)}", key=len)


def columns_of(raw):
    """Those of its shapes that are kept; only attention with dropout tells of it."""
    return [c for c in COLUMNS.get(raw["kernel"], ["elements"]) if c != "dropout" or c in raw["columns"]]


def points_of(raw):
    """Shape -> (seconds, spread)."""
    places = [raw["columns"].index(c) for c in columns_of(raw) + ["seconds", "spread"]]
    rows = ([row[i] for i in places] for row in raw["rows"])
    return {tuple(shape): (seconds, spread) for *shape, seconds, spread in rows if seconds > 0}


def rounded(seconds, spread):
    """To what the spread leaves of them."""
    digits = 3 if spread >= 0.01 else 4
    return [float(f"{seconds:.{digits}g}"), float(f"{spread:.{2 if spread >= 0.1 else 1}g}")]


def mean_of(times):
    seconds = [s for s, _ in times]
    mean = math.exp(sum(map(math.log, seconds)) / len(seconds))
    return rounded(mean, max((max(seconds) - min(seconds)) / mean, *(x for _, x in times), 0))


def table_of(raws):
    """One table of all that were timed of the same kernel, pass and precision."""
    first, times = raws[0], {}
    for raw in raws:
        for shape, time in points_of(raw).items():
            times.setdefault(shape, []).append(time)
    columns = [NAMES.get(c, c) for c in columns_of(first)] + ["seconds", "spread"]
    head = {key: first[key] for key in ("kernel", "pass", "precision") if first.get(key) != "any"}
    return without_ones(head | {"library": LIBRARY.get(first["kernel"], "PyTorch"), "columns": columns,
                                "rows": sorted([*shape, *mean_of(t)] for shape, t in times.items())})


def without_ones(table):
    """A batch that is not told is 1."""
    if table["columns"][0] != "batch" or any(row[0] != 1 for row in table["rows"]):
        return table
    return table | {"columns": table["columns"][1:], "rows": [row[1:] for row in table["rows"]]}


def text_of(table):
    lines, line = [], ""
    for row in table["rows"]:
        cell = "[" + ",".join(number(x) for x in row) + "],"
        if len(line) + len(cell) > LINE:
            lines.append(line)
            line = ""
        line += cell
    lines.append(line.rstrip(","))
    head = ", ".join(f'"{key}": "{table[key]}"' for key in ("kernel", "pass", "precision", "library") if key in table)
    return f'    {{{head},\n     "columns": {json.dumps(table["columns"])}, "rows": [\n' + "\n".join(lines) + "\n    ]}"


def add_rows(tables, more):
    """Into the table of the same head, where rows of the same shape give way."""
    same = [t for t in tables if all(t.get(key) == more.get(key) for key in ("kernel", "pass", "precision", "columns"))]
    if not same:
        tables.append(more)
        return
    shapes = {tuple(row[:-2]): row for row in same[0]["rows"] + more["rows"]}
    same[0]["rows"] = [shapes[shape] for shape in sorted(shapes)]


def replace(path, text):
    """All of it or nothing, through a new file that nobody can have prepared; a link stays, and so does the mode."""
    target = os.path.realpath(path)
    with tempfile.NamedTemporaryFile("w", dir=os.path.dirname(target), delete=False) as file:
        try:
            file.write(text)
            file.flush()
            shutil.copymode(target, file.name)
            os.replace(file.name, target)
        except BaseException:
            os.unlink(file.name)
            raise


def with_tables(path, tables):
    """The text of the file with these tables in place of what it has."""
    with open(path) as file:
        text = file.read().rstrip()
    head, old, _ = text.partition(',\n  "measured": [')
    if not old:
        head = head.removesuffix("}").rstrip()
    text = head + ',\n  "measured": [\n' + ",\n".join(map(text_of, tables)) + "\n  ]\n}\n"
    if len(text) > MOST_BYTES:
        sys.exit(f"merge.py: {path} would have {len(text)} bytes, more than {MOST_BYTES}")
    return text


def places_of(device):
    """Path of the file for tables of a kind, as far as the device file names any."""
    with open(device) as file:
        named = [t for t in json.load(file).get("measured", []) if "file" in t]
    return {t["kernels"]: shapes.path_of(device, t["file"]) for t in named}


def main():
    *sources, device = [word for word in sys.argv[1:] if word != "--keep"]
    found = {}
    for source in sources:
        with open(source) as file:
            for raw in json.load(file)["measured"]:
                found.setdefault((raw["kernel"], raw["pass"], raw["precision"], *columns_of(raw)), []).append(raw)
    tables = list(shapes.tables_of(device)) if "--keep" in sys.argv else []
    for raws in found.values():
        add_rows(tables, table_of(raws))
    places, by_path = places_of(device), {}
    for table in tables:
        by_path.setdefault(places.get(KINDS.get(table["kernel"], "memory"), device), []).append(table)
    if places and device in by_path:
        sys.exit(f"merge.py: {device} names no file for {by_path[device][0]['kernel']}")
    texts = {path: with_tables(path, its) for path, its in by_path.items()}
    for path, text in texts.items():
        replace(path, text)


main()
