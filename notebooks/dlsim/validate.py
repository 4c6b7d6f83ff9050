"""`dlsim validate`: predictions against measured training steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from .program import ask


def validate(rows: str | None = None, *, set: Mapping[str, Any] | None = None, **options: Any) -> pd.DataFrame:
    """Compare with one table of validation/published (`rows`), with a file of your own, or with all that are shipped.

    The data frame has a line for each measured step: `id`, `family`, `measured_s`, `predicted_s`, `error` (a fraction of the
    measured time), `fits`, ... Families and the summary are in its `attrs`, by these names.
    """
    json, _ = ask("validate", dict(rows=rows, **options), set)
    frame = pd.DataFrame(json["rows"])
    frame.attrs = {"families": json["families"], "summary": json["summary"]}
    return frame
