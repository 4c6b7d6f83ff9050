"""Puts the tables of ops.py into a device file's "measured".

    python3 kernels/torch/merge.py OPS.json... topologies/devices/NAME.json

A table of a later OPS.json replaces the same one of an earlier. Only what struct dl_kernel has is kept of the columns;
a table without a pass holds for all of them.
"""
import json
import sys

COLUMNS = {"gemm": ["batch", "m", "n", "k"], "conv": ["batch", "m", "n", "k"],
           "attention": ["batch", "m", "n", "k", "causal", "kv_share"]}
LIBRARY = {"gemm": "cuBLAS", "conv": "cuDNN", "attention": "cuDNN"}
LINE = 118


def number(x):
    return "%d" % x if x == int(x) else ("%g" % x).replace("e-0", "e-")


def table_of(raw):
    columns = COLUMNS.get(raw["kernel"], ["elements"]) + ["seconds", "spread"]
    places = [raw["columns"].index(c) for c in columns]
    rows = {}
    for row in raw["rows"]:
        values = [row[i] for i in places]
        if values[-2] > 0:
            rows[tuple(values[:-2])] = values
    head = {key: raw[key] for key in ("kernel", "pass", "precision") if raw.get(key) != "batched"}
    return head | {"library": LIBRARY.get(raw["kernel"], "PyTorch"), "columns": columns, "rows": sorted(rows.values())}


def text_of(table):
    lines, line = [], "     "
    for row in table["rows"]:
        cell = " [" + ",".join(number(x) for x in row) + "],"
        if len(line) + len(cell) > LINE:
            lines.append(line)
            line = "     "
        line += cell
    lines.append(line.rstrip(","))
    head = ", ".join(f'"{key}": "{table[key]}"' for key in ("kernel", "pass", "precision", "library") if key in table)
    return f'    {{{head},\n     "columns": {json.dumps(table["columns"])},\n     "rows": [\n' + "\n".join(lines) + "\n    ]}"


def main():
    *sources, device = sys.argv[1:]
    tables = {}
    for source in sources:
        with open(source) as file:
            for raw in json.load(file)["measured"]:
                tables[raw["kernel"], raw["pass"], raw["precision"]] = table_of(raw)
    with open(device) as file:
        head, old, _ = file.read().rstrip().partition(',\n  "measured": [')
    if not old:
        head = head.removesuffix("}").rstrip()
    with open(device, "w") as file:
        file.write(head + ',\n  "measured": [\n' + ",\n".join(text_of(t) for t in tables.values()) + "\n  ]\n}\n")


main()
