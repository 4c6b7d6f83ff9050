"""`dlsim run --print-program`: the kernels and collectives of a step, one by one."""

from __future__ import annotations

import re
import tempfile
from typing import Any

import pandas as pd

from .program import call_in

STAGE = re.compile(r"stage (\d+)")
PASS = re.compile(r"  chunk (\d+), (.*)")
KERNEL = re.compile(r"    (\S.*?)  +(\S+) +device (\S+) s  host (\S+) s  flop (\S+)")


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
        elif found := KERNEL.match(line):
            name, cause, *figures = found.groups()
            lines.append((stage, int(part[0]), part[1], name, cause, *map(float, figures)))
    return pd.DataFrame(lines, columns=["stage", "chunk", "pass", "kernel", "cause", "device_s", "host_s", "flop"])
