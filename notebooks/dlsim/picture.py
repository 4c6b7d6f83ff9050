"""Pictures that dlsim draws, in the notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def svg(source: str | Path) -> Any:
    """Display an SVG: its text, or the path of a file."""
    from IPython.display import SVG  # only notebooks need it

    is_text = isinstance(source, str) and source.lstrip().startswith("<")
    return SVG(data=source if is_text else Path(source).read_text())
