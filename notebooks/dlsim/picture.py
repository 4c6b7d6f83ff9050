"""Pictures that dlsim draws, in the notebook."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from .program import call_in


def svg(source: str | Path) -> Any:
    """Display an SVG: its text, or the path of a file."""
    from IPython.display import SVG  # only notebooks need it

    is_text = isinstance(source, str) and source.lstrip().startswith("<")
    return SVG(data=source if is_text else Path(source).read_text())


def draw(picture: str, *, set: dict[str, Any] | None = None, **options: Any) -> Any:
    """Draw a run, or a collective if there is an `op`; the other arguments are those of `run` and `collective`.

    `picture` is what --picture takes: timeline, memory, causes or topology of a run, steps or topology of a collective.
    """
    command = "collective" if "op" in options else "run"
    with tempfile.TemporaryDirectory(prefix="dlsim-") as folder:
        path = Path(folder, "picture.svg")
        call_in(folder, command, {**options, "picture": picture, "svg": path}, set)
        return svg(path)
