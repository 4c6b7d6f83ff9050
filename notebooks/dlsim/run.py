"""`dlsim run`: one training step, or many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from .program import ask, at_once


@dataclass(frozen=True)
class Run:
    """The answer of `dlsim run`. Times are seconds, sizes bytes; `json` has everything (docs/json.md)."""

    step_s: float
    fits: bool
    devices: int
    mfu: float
    hfu: float
    samples_per_s: float
    tokens_per_s: float | None
    peak_bytes: float
    """of the fullest stage"""
    causes: pd.Series = field(repr=False)
    """seconds of the step by cause, those that are not 0; they sum to the step"""
    memory: pd.DataFrame = field(repr=False)
    """bytes by stage (lines) and part (columns) at the fullest moment of each stage"""
    text: str = field(repr=False)
    """what `dlsim run` prints"""
    messages: str = field(repr=False)
    json: dict[str, Any] = field(repr=False)

    def figures(self) -> dict[str, Any]:
        """The figures that fit into a line of a table."""
        names = ("step_s", "fits", "devices", "mfu", "hfu", "samples_per_s", "tokens_per_s", "peak_bytes")
        return {name: getattr(self, name) for name in names}


def run(
    *,
    topo: str | Mapping[str, Any],
    strategy: str | Mapping[str, Any],
    workload: str | Mapping[str, Any] | None = None,
    devices: int | None = None,
    software: str | Mapping[str, Any] | None = None,
    set: Mapping[str, Any] | None = None,
    **options: Any,
) -> Run:
    """Simulate one training step.

    `set` overrides values: {"microbatch": 2, "+stack.zero.stage": 1, "-stack.zero": None}. `options` are the other options
    of `dlsim run`: engine="analytic", placement="spread", scenario={...}, sensitivity=True, ...
    """
    files = dict(topo=topo, strategy=strategy, workload=workload, software=software)
    json, answer = ask("run", {**files, "devices": devices, **options}, set)
    memory = pd.DataFrame(json["memory_bytes"]).set_index("stage")
    return Run(
        step_s=json["step_s"],
        fits=json["fits"],
        devices=json["devices"],
        mfu=json["mfu"],
        hfu=json["hfu"],
        samples_per_s=json["samples_per_s"],
        tokens_per_s=json["tokens_per_s"],
        peak_bytes=memory["peak"].max(),
        causes=_causes(json["causes"]),
        memory=memory,
        text=answer.text,
        messages=answer.messages,
        json=json,
    )


def _causes(causes: Mapping[str, Mapping[str, float]]) -> pd.Series:
    seconds = {name: cause["exposed_s"] for name, cause in causes.items()}
    return pd.Series({name: s for name, s in seconds.items() if s > 0}, name="seconds", dtype=float)


def runs(cases: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Simulate many steps, several at once; each case has the arguments of `run`.

    The data frame has a line for each case: its arguments (paths of `set` by their names), its figures, and the whole
    `Run` in the column `run`.
    """
    cases = list(cases)
    answers = at_once(run, cases)
    return pd.DataFrame([{**_asked(case), **answer.figures(), "run": answer} for case, answer in zip(cases, answers)])


def _asked(case: Mapping[str, Any]) -> dict[str, Any]:
    """What can stand in a table: not dicts, but the single values of `set`."""
    flat = {name: value for name, value in case.items() if not isinstance(value, Mapping)}
    return {**flat, **case.get("set", {})}
