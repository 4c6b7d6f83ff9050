"""Find dlsim and call it. The one rule: exit codes 0 and 1 are answers, everything else raises."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
REPOSITORY = Path(__file__).resolve().parents[2]

# Options that name a file, with the schema that a dict in their place has if it states none.
SCHEMAS = {
    "topo": "dlsim/system/1",
    "strategy": "dlsim/strategy/1",
    "workload": "dlsim/workload/1",
    "software": "dlsim/software/1",
    "transport": "dlsim/transport/1",
    "scenario": "dlsim/scenario/1",
}


class Refused(ValueError):
    """Bad usage or input (exit code 2); the text is dlsim's own line."""


class Failed(RuntimeError):
    """dlsim broke (exit code 3) or was ended by a signal."""


@dataclass(frozen=True)
class Answer:
    """What a command printed, and its exit code: 0, or 1 if the answer is no."""

    code: int
    text: str
    messages: str


def program() -> str:
    """The path of dlsim: $DLSIM, or the launcher of this repository."""
    return os.environ.get("DLSIM") or str(REPOSITORY / "dlsim")


def call(*words: object) -> Answer:
    """Run dlsim with these words as they are."""
    command = [program(), *map(str, words)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = done.stderr.strip()
    if done.returncode == 2:
        raise Refused(lines)
    if done.returncode < 0:
        raise Failed(f"{' '.join(command)}: ended by signal {-done.returncode}\n{lines}".strip())
    if done.returncode > 1:
        raise Failed(lines or f"{' '.join(command)}: exit code {done.returncode}")
    return Answer(done.returncode, done.stdout, lines)


def ask(command: str, options: Mapping[str, Any], set: Mapping[str, Any] | None = None) -> tuple[dict[str, Any], Answer]:
    """Run a command with --json; return its JSON beside what it printed."""
    with tempfile.TemporaryDirectory(prefix="dlsim-") as folder:
        path = Path(folder, "answer.json")
        answer = call_in(folder, command, {**options, "json": path}, set)
        return json.loads(path.read_text()), answer


def call_in(folder: str, command: str, options: Mapping[str, Any], set: Mapping[str, Any] | None) -> Answer:
    """Run a command with options. Dicts in place of files are written into the folder, and named without it in refusals."""
    try:
        return call(command, *option_words(with_files(options, folder)), *set_words(set or {}))
    except Refused as refusal:
        raise Refused(str(refusal).replace(folder + "/", "")) from None


def with_files(options: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """The options, with a path in place of each dict that stands for a file."""
    return {name: written(name, value, folder) if isinstance(value, Mapping) else value for name, value in options.items()}


def written(name: str, content: Mapping[str, Any], folder: str) -> Path:
    if name not in SCHEMAS:
        raise TypeError(f"{name}: is not a file, so it cannot be a dict; files are {', '.join(SCHEMAS)}")
    path = Path(folder, f"{name}.json")
    path.write_text(json.dumps({"schema": SCHEMAS[name], **content}))
    return path


def option_words(options: Mapping[str, Any]) -> list[str]:
    """Words of the command line: True is an option without a value, None and False leave it out."""
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(plain(value))
    return words


def plain(value: object) -> str:
    """Whole numbers without a point: pandas and 1e6 make floats of counts."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def set_words(values: Mapping[str, Any]) -> list[str]:
    """{"microbatch": 2} becomes --set microbatch=2; None has no value, as "-stack.zero" or "+stack.zero" need it."""
    words: list[str] = []
    for path, value in values.items():
        words += ["--set", path if value is None else f"{path}={json.dumps(value)}"]
    return words


def at_once(function: Callable[..., T], cases: Iterable[Mapping[str, Any]]) -> list[T]:
    """function(**case) for each case, as many at a time as there are processors; in the order of the cases."""
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        futures = [pool.submit(function, **case) for case in cases]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)  # do not run the rest of what has failed already
            raise
