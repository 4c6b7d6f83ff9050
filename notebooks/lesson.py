"""Lessons as files: cells with nbgrader's metadata, and the instructor's answers beside them.

A solution cell is what a student fills in; a check cell after it raises until the solution is right. The answers are in
answers/NAME.py: the body of each solution cell, in a section that begins with `# %% GRADE_ID`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

FOLDER = Path(__file__).resolve().parent


def lessons(names: list[str]) -> list[Path]:
    """The notebooks whose names begin with one of these words (01, 01_machines); all without one."""
    found = [path for path in sorted(FOLDER.glob("??_*.ipynb")) if path.name.startswith(tuple(names or [""]))]
    for name in names:
        if not any(path.name.startswith(name) for path in found):
            raise SystemExit(f"dlsim: notebooks: no lesson begins with '{name}'")
    return found


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def solutions(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """The cells that a student fills in, by grade_id."""
    return dict(_graded(notebook, "solution"))


def checks(notebook: NotebookNode) -> dict[str, NotebookNode]:
    """The cells that check what a student filled in, by grade_id."""
    return dict(_graded(notebook, "grade"))


def _graded(notebook: NotebookNode, what: str) -> Iterator[tuple[str, NotebookNode]]:
    for cell in notebook.cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get(what):
            yield marks["grade_id"], cell


def answers(path: Path) -> dict[str, str]:
    """The instructor's answers to a lesson, by grade_id."""
    text = (path.parent / "answers" / f"{path.stem}.py").read_text()
    sections = re.split(r"(?m)^# %% *(\S+)\n", text)[1:]
    return {name: body.strip("\n") for name, body in zip(sections[::2], sections[1::2])}


def answer(notebook: NotebookNode, bodies: dict[str, str]) -> None:
    """Put the answers into the solution cells."""
    for name, cell in solutions(notebook).items():
        if name in bodies:
            cell.source = bodies[name]


def error(cell: NotebookNode) -> str | None:
    """What an executed cell raised, in a line."""
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            return f"{output.ename}: {output.evalue}"
    return None
