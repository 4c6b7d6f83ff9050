"""`dlsim run --print-program`: the kernels and collectives of a step, one by one."""

from __future__ import annotations

import re
import tempfile
from typing import Any

import pandas as pd

from .program import call_in

STAGE = re.compile(r"stage (\d+)")
PASS = re.compile(r"# chunk (\d+), (.+)")
END = "# end of the step"
FIGURES = ("device_s", "host_s", "flop")


def _figures(line: str) -> dict[str, str]:
    """Of a line `work cause compute device_s 1e-3 ... name gemm`: keys and values; a name is the rest of the line."""
    words, name = line.split(" name ", 1)
    pairs = words.removeprefix("work ").split()
    return {"name": name} | dict(zip(pairs[::2], pairs[1::2]))


def kernels(*, set: dict[str, Any] | None = None, **options: Any) -> pd.DataFrame:
    """The kernels that a rank of each stage runs in a step, with the arguments of `run`; nothing is simulated.

    A line for each kernel or collective: `stage`, `chunk`, `pass` (forward, backward, ...), `kernel`, `cause`, `device_s`,
    `host_s`, `flop` (of GEMMs, convolutions and attention; 0 for others).
    """
    with tempfile.TemporaryDirectory(prefix="dlsim-") as folder:
        answer = call_in(folder, "run", {**options, "print_program": True}, set)
    lines, stage, part = [], 0, ("0", "")
    for line in answer.text.splitlines():
        if found := STAGE.match(line):
            stage = int(found[1])
        elif found := PASS.match(line):
            part = found.groups()
        elif line == END:
            part = ("0", "end of the step")
        elif line.startswith("work "):
            of = _figures(line)
            figures = (float(of.get(key, 0)) for key in FIGURES)
            lines.append((stage, int(part[0]), part[1], of["name"], of["cause"], *figures))
    return pd.DataFrame(lines, columns=["stage", "chunk", "pass", "kernel", "cause", "device_s", "host_s", "flop"])
