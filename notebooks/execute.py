"""notebooks/run [--answers] [--out DIR] [NAME...] - run lessons from top to bottom.

NAME is the beginning of a lesson's name: 01, 01_machines; without one, all run, one after the other. The notebooks are not
changed. Checks of exercises that are not solved fail, and that is no failure of the run; with --answers the instructor's
answers are put in, and every check must pass. --out keeps what was executed: DIR/NAME.ipynb with its outputs, and its
pictures as DIR/NAME-1.png (or .svg) and so on. The exit code is 1 if a cell raised that should not.
"""

from __future__ import annotations

import argparse
import base64
import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

import lesson

CELL_LIMIT_S = 300
os.environ["PYDEVD_DISABLE_FILE_VALIDATION"] = "1"  # or each kernel warns that a debugger might miss breakpoints


def execute(path: Path, with_answers: bool) -> NotebookNode:
    """Run a lesson in memory, in the folder of the lessons; raises if a cell does that is no check."""
    notebook = lesson.read(path)
    if with_answers:
        lesson.answer(notebook, lesson.answers(path))
    NotebookClient(notebook, timeout=CELL_LIMIT_S, resources={"metadata": {"path": str(lesson.FOLDER)}}).execute()
    return notebook


def keep(notebook: NotebookNode, name: str, folder: Path) -> None:
    """Write what was executed, and each of its pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, folder / f"{name}.ipynb")
    outputs = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    pictures = [data for data in outputs if "image/png" in data or "image/svg+xml" in data]
    for number, data in enumerate(pictures, start=1):
        if "image/png" in data:
            (folder / f"{name}-{number}.png").write_bytes(base64.b64decode(data["image/png"]))
        else:
            (folder / f"{name}-{number}.svg").write_text(data["image/svg+xml"])


def run(path: Path, with_answers: bool, out: Path | None) -> bool:
    """Run a lesson and say how it went; whether it went well."""
    start = time.monotonic()
    try:
        notebook = execute(path, with_answers)
    except CellExecutionError as raised:
        print(f"{path.stem}: a cell raised\n{raised}", file=sys.stderr)
        return False
    errors = {name: lesson.error(cell) for name, cell in lesson.checks(notebook).items()}
    failed = {name: text for name, text in errors.items() if text}
    print(f"{path.stem}: {time.monotonic() - start:.1f} s, {len(errors) - len(failed)} of {len(errors)} checks pass", flush=True)
    if out:
        keep(notebook, path.stem, out)
    if with_answers:
        for name, text in failed.items():
            print(f"{path.stem}: {name}: {text}", file=sys.stderr)
    return not (with_answers and failed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="notebooks/run", description=__doc__.partition("\n\n")[2])
    parser.add_argument("--answers", action="store_true", help="put in the instructor's answers")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep executed notebooks and their pictures here")
    parser.add_argument("names", nargs="*", metavar="NAME", help="the beginning of a lesson's name; all if absent")
    asked = parser.parse_args()
    went_well = [run(path, asked.answers, asked.out) for path in lesson.lessons(asked.names)]
    return 0 if all(went_well) else 1


if __name__ == "__main__":
    sys.exit(main())
