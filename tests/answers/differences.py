"""What differs between two folders of answers: figure by figure in JSON, line by line in texts."""
import dataclasses
import fnmatch
import itertools
import json
import os
import re

# What two equal runs need not share: dlsim's own effort, and what identifies the program.
ALWAYS_IGNORED = ("host", "host.*", "inputs.version", "inputs.sha256", "*.sha256", "*.version")
NAMES = ("id", "name", "key", "where")  # an element of a list is called by the first of these that it has


def percent(size):
    return "other" if size == float("inf") else f"{100 * size:.3g} %"


def without_indices(key):
    return re.sub(r"\[[^]]*\]", "[]", re.sub(r"line \d+", "line", key))


def _short(value, most=100):
    text = str(value)
    return text if len(text) <= most else text[:most] + "..."


@dataclasses.dataclass(frozen=True)
class Difference:
    key: str
    old: object
    new: object
    size: float  # relative; infinite where these are not two numbers

    def __str__(self):
        return f"{self.key}: {_short(self.old)} -> {_short(self.new)} ({percent(self.size)})"


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _size(old, new):
    if _is_number(old) and _is_number(new):
        return 0 if old == new else abs(old - new) / max(abs(old), abs(new))
    return 0 if old == new else float("inf")


def _label(element, index):
    if isinstance(element, dict):
        for name in NAMES:
            if isinstance(element.get(name), str):
                return element[name]
    return str(index)


def _flatten(value, key, out):
    """Every leaf by its path; what has the same path as another gets a number."""
    if isinstance(value, dict) and value:
        for name, inside in value.items():
            _flatten(inside, f"{key}.{name}" if key else name, out)
    elif isinstance(value, list) and value:
        seen = {}
        for index, inside in enumerate(value):
            label = _label(inside, index)
            seen[label] = seen.get(label, 0) + 1
            again = f"#{seen[label]}" if seen[label] > 1 else ""
            _flatten(inside, f"{key}[{label}{again}]", out)
    else:
        out[key] = value


def _of_json(old, new):
    flat = {}, {}
    _flatten(old, "", flat[0])
    _flatten(new, "", flat[1])
    for key in flat[0].keys() | flat[1].keys():
        a, b = flat[0].get(key, "absent"), flat[1].get(key, "absent")
        if (size := _size(a, b)) > 0:
            yield Difference(key, a, b, size)


def _value(word):
    try:
        return float(word)
    except ValueError:
        return word


def _of_lines(old, new, key):
    a, b = [[_value(w) for w in line.split()] for line in (old, new)]
    if len(a) != len(b):
        yield Difference(key, old.strip(), new.strip(), float("inf"))
        return
    for x, y in zip(a, b):
        if (size := _size(x, y)) > 0:
            yield Difference(key, x, y, size)


def _of_text(old, new):
    a, b = old.splitlines(), new.splitlines()
    if len(a) != len(b):
        yield Difference("lines", len(a), len(b), float("inf"))
    for i, (x, y) in enumerate(itertools.zip_longest(a, b, fillvalue="none")):
        if x != y:
            yield from _of_lines(x, y, f"line {i + 1}")


def _between(old, new):
    if old == new:
        return []
    if not old or not new:
        return [Difference("answer", "given" if old else "none", "given" if new else "none", float("inf"))]
    try:
        return _of_json(json.loads(old), json.loads(new))
    except ValueError:
        return _of_text(old, new)


def _is_ignored(key, patterns):
    bare = without_indices(key)
    return any(fnmatch.fnmatchcase(k, pattern) for pattern in patterns for k in (key, bare))


def _read(folder, name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def of_folders(old, new, asked):
    """The names of all answers, and the differences of those that have any."""
    names = sorted(name for name in set(os.listdir(old)) | set(os.listdir(new))
                   if fnmatch.fnmatchcase(name, asked.only) or fnmatch.fnmatchcase(name.rsplit(".", 1)[0], asked.only))
    found = {}
    for name in names:
        differ = [d for d in _between(_read(old, name), _read(new, name))
                  if d.size > asked.tolerance and not _is_ignored(d.key, (*ALWAYS_IGNORED, *asked.ignore))]
        if differ:
            found[name] = differ
    return names, found
