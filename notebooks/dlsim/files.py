"""Shipped files: what dlsim says of one, and the file itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .program import call, option_words


def show(name: str, kind: str | None = None) -> dict[str, Any]:
    """What `dlsim show` says of a file: `derived` figures, `settings`, and `facts` with unit, grade and source.

    `kind` chooses where several files have the name: topology, device, transport, workload, strategy or software.
    """
    return json.loads(call("show", name, *option_words({"kind": kind}), "--json", "-").text)


def load(name: str, kind: str | None = None) -> dict[str, Any]:
    """The file itself as a dict. Change it and hand it to `run` or `collective`: load("selene") | {"nodes": 4}."""
    return json.loads(Path(show(name, kind)["path"]).read_text())
