"""`dlsim run --print-program`: the kernels and collectives of a step, one by one."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from typing import Any

import pandas as pd

from .program import call_in

STAGE = re.compile(r"stage (\d+)")
PASS = re.compile(r"# chunk (\d+), (.+)")
END = "# end of the step"
FIGURES = ("device_s", "host_s", "flop")
TAKES = "takes_"  # then the class of kernels that a collective takes this share of the rate from


def _figures(line: str) -> dict[str, str]:
    """Of a line `work cause compute device_s 1e-3 ... name gemm`: keys and values; a name is the rest of the line."""
    words, name = line.split(" name ", 1)
    pairs = words.removeprefix("work ").split()
    return {"name": name} | dict(zip(pairs[::2], pairs[1::2]))


@dataclass
class _Started:
    """A collective under way: what the host took to launch it, the kernels since, and these if it went on all the while."""

    host_s: float
    beside_s: float = 0.0
    slowed_s: float = 0.0


class _Lockstep:
    """Collectives of ranks in lockstep, `collective 0 allreduce channel lockstep ...`, and copies, `copy 1 out ...`, from
    their start to their wait."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[str, dict[str, str]]] = {}
        self.started: dict[str, _Started] = {}
        self.copies: dict[str, float] = {}  # seconds of all work since the start

    def read(self, line: str) -> None:
        kind, number, name, *words = line.split()
        if kind == "copy" or "lockstep" in words:
            of = {key: word for key, word in zip(words, words[1:]) if key in ("cause", "alone_s") or key.startswith(TAKES)}
            self.known[number] = "host copy" if kind == "copy" else name, of

    def start(self, words: list[str]) -> None:
        if self.known.get(words[1], ("",))[0] == "host copy":
            self.copies[words[1]] = 0.0
        else:
            self.started[words[1]] = _Started(float(words[3]) if len(words) > 3 else 0.0)

    def work(self, seconds: float, cause: str, kernel: str = "none") -> None:
        """What passes beside all that is under way; collectives of ranks in lockstep go beside kernels alone."""
        for number, begun in self.started.items():
            if cause != "host" and number in self.known:
                begun.beside_s += seconds
                begun.slowed_s += seconds / (1 - float(self.known[number][1].get(TAKES + kernel, 0)))
        for number in self.copies:
            self.copies[number] += seconds

    def wait(self, words: list[str]) -> list[tuple[str, str, float, float, float]]:
        """What is longer than the kernels beside it, and what it takes from these: name, cause and figures."""
        if words[1] not in self.known:
            return []
        name, of = self.known[words[1]]
        if words[1] in self.copies:
            return [(name, of["cause"], max(float(of.get("alone_s", 0)) - self.copies.pop(words[1]), 0.0), 0.0, 0.0)]
        begun, alone_s = self.started.pop(words[1], _Started(0.0)), float(of.get("alone_s", 0))
        longer_s = max(alone_s - begun.beside_s, 0.0)
        taken_s = (1 - begun.beside_s / begun.slowed_s) * alone_s - longer_s if begun.beside_s else 0.0
        lines = [(name, of["cause"], longer_s, begun.host_s, 0.0)]
        return lines + [(name, "interference", taken_s, 0.0, 0.0)] * (taken_s > 0)


def kernels(*, set: dict[str, Any] | None = None, **options: Any) -> pd.DataFrame:
    """The kernels that a rank of each stage runs in a step, with the arguments of `run`; nothing is simulated.

    A line for each kernel or collective: `stage`, `chunk`, `pass` (forward, backward, ...), `kernel`, `cause`, `device_s`,
    `host_s`, `flop` (of GEMMs, convolutions and attention; 0 for others).
    """
    with tempfile.TemporaryDirectory(prefix="dlsim-") as folder:
        answer = call_in(folder, "run", {**options, "print_program": True}, set)
    lines, stage, part, lockstep = [], 0, ("0", ""), _Lockstep()
    for line in answer.text.splitlines():
        if found := STAGE.match(line):
            stage = int(found[1])
        elif found := PASS.match(line):
            part = found.groups()
        elif line == END:
            part = ("0", "end of the step")
        elif line.startswith(("collective ", "copy ")):
            lockstep.read(line)
        elif line.startswith("start "):
            lockstep.start(line.split())
        elif line.startswith("wait "):
            for priced in lockstep.wait(line.split()):
                lines.append((stage, int(part[0]), part[1], *priced))
                lockstep.work(priced[2], "host")
        elif line.startswith("work "):
            of = _figures(line)
            figures = [float(of.get(key, 0)) for key in FIGURES]
            lines.append((stage, int(part[0]), part[1], of["name"], of["cause"], *figures))
            lockstep.work(figures[0], of["cause"], of.get("kernel", "none"))
    return pd.DataFrame(lines, columns=["stage", "chunk", "pass", "kernel", "cause", "device_s", "host_s", "flop"])
