"""`dlsim collective`: one collective operation by itself, or many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pandas as pd

from .program import ask, at_once


@dataclass(frozen=True)
class Collective:
    """The answer of `dlsim collective`; `json` has everything (docs/json.md)."""

    seconds: float
    algorithm: str
    protocol: str
    bytes: float
    devices: int
    bus_bytes_per_s: float
    """as nccl-tests computes it"""
    messages_sent: int
    causes: pd.Series = field(repr=False)
    """seconds by cause: start, latency, bandwidth, sharing, reduction; they sum to the time"""
    text: str = field(repr=False)
    """what `dlsim collective` prints"""
    messages: str = field(repr=False)
    json: dict[str, Any] = field(repr=False)

    def figures(self) -> dict[str, Any]:
        """The figures that fit into a line of a table."""
        names = ("bytes", "devices", "algorithm", "protocol", "seconds", "bus_bytes_per_s", "messages_sent")
        return {name: getattr(self, name) for name in names}


def collective(
    *,
    topo: str | Mapping[str, Any],
    op: str,
    bytes: float | None = None,
    devices: int | None = None,
    algo: str = "auto",
    set: Mapping[str, Any] | None = None,
    **options: Any,
) -> Collective:
    """Simulate one collective; `options` are those of `dlsim collective`: transport="one-port", payload="quantized:4", ..."""
    json, answer = ask("collective", dict(topo=topo, op=op, bytes=bytes, devices=devices, algo=algo, **options), set)
    causes = {name.removesuffix("_s"): seconds for name, seconds in json["causes"].items()}
    return Collective(
        seconds=json["time_s"],
        algorithm=json["algorithm"],
        protocol=json["protocol"],
        bytes=json["bytes"],
        devices=json["devices"],
        bus_bytes_per_s=json["bus_bytes_per_s"],
        messages_sent=json["messages"],
        causes=pd.Series(causes, name="seconds", dtype=float),
        text=answer.text,
        messages=answer.messages,
        json=json,
    )


def collectives(
    *,
    topo: str | Mapping[str, Any],
    op: str,
    sizes: Iterable[float],
    algos: Iterable[str] = ("auto",),
    devices: int | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Simulate a collective for each size and algorithm, several at once.

    The data frame has a line for each, with the algorithm asked for in `algo` and the one that ran in `algorithm`.
    `frame.pivot(index="bytes", columns="algo", values="seconds")` makes a table of it.
    """
    cases = [dict(topo=topo, op=op, bytes=size, algo=algo, devices=devices, **options) for size, algo in product(sizes, algos)]
    answers = at_once(collective, cases)
    return pd.DataFrame([{"algo": case["algo"], **answer.figures()} for case, answer in zip(cases, answers)])
