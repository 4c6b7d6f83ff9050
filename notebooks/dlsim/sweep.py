"""`dlsim sweep`: every combination of a sweep file."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from .program import Refused, call, option_words, with_files


def sweep(file: str | Path | Mapping[str, Any], jobs: int | None = None) -> pd.DataFrame:
    """Run all points of a sweep file (docs/sweeps.md), as many at once as there are processors, or `jobs`.

    A dict needs no `schema`, and may have dicts in place of the files in `base`. The data frame has a line for each
    point: its inputs, its `status` (`done`, `does-not-fit`, `refused` with a `reason`, ...) and its figures.
    """
    with tempfile.TemporaryDirectory(prefix="dlsim-") as folder:
        database = Path(folder, "sweep.db")
        path = _written(file, folder) if isinstance(file, Mapping) else file
        try:
            call("sweep", path, "-o", database, *option_words({"jobs": jobs}))
        except Refused as refusal:
            raise Refused(str(refusal).replace(folder + "/", "")) from None
        return pd.read_csv(io.StringIO(call("sweep", "export", database, "--csv").text), float_precision="round_trip")


def _written(content: Mapping[str, Any], folder: str) -> Path:
    base = {name: str(value) if isinstance(value, Path) else value for name, value in with_files(content["base"], folder).items()}
    path = Path(folder, "sweep.json")
    path.write_text(json.dumps({"schema": "dlsim/sweep/1", **content, "base": base}))
    return path
