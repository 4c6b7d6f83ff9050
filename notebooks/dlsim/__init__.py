"""dlsim in Python: the commands of dlsim as functions that return dataclasses and data frames.

    import dlsim
    step = dlsim.run(topo="selene", strategy="korthikanti-175b", set={"microbatch": 2})
    step.step_s, step.fits, step.causes, step.memory
    dlsim.collective(topo="selene", op="allreduce", bytes=256e6, devices=16).seconds

| function | what it returns |
|---|---|
| `run(topo=, strategy=, ...)` | a `Run`: step time, share of peak, causes, memory, the whole answer |
| `runs([dict(...), ...])` | a data frame with a line for each run; several run at once |
| `collective(topo=, op=, bytes=, ...)` | a `Collective`: its time, algorithm, causes |
| `collectives(topo=, op=, sizes=, algos=, ...)` | a data frame with a line for each size and algorithm |
| `kernels(topo=, strategy=, ...)` | a data frame with a line for each kernel of a step, without running it |
| `sweep(file or dict)` | a data frame with a line for each point |
| `validate(rows=, ...)` | a data frame with a line for each measured step |
| `show(name)`, `load(name)` | what dlsim says of a file; the file itself, to change and hand to `run` |
| `call(word, ...)` | any other command: exit code and what it printed |
| `draw(picture, topo=, ...)` | a picture of a run or a collective: timeline, memory, causes, steps, topology |
| `svg(text or path)` | an SVG of yours |
| `style()` | one look for all figures (matplotlib); returns colours by name |

Options are those of the command line with `_` for `-` (`engine="analytic"`, `sensitivity=True`). Files (`topo`, `strategy`,
`workload`, `software`, `transport`, `scenario`) are shipped names, paths or dicts. A step that does not fit into memory is
an answer (`fits` is False). Bad input raises `Refused` with dlsim's own line; `Failed` means that dlsim itself broke.

The program is `$DLSIM` if that is set, else the launcher `dlsim` of the repository that this package is in.
"""

from .collective import Collective, collective, collectives
from .files import load, show
from .kernels import kernels
from .picture import draw, svg
from .program import Answer, Failed, Refused, call
from .run import Run, run, runs
from .style import COLOURS, style
from .sweep import sweep
from .validate import validate

__all__ = [
    "COLOURS", "Answer", "Collective", "Failed", "Refused", "Run",
    "call", "collective", "collectives", "draw", "kernels", "load", "run", "runs", "show", "style", "svg", "sweep", "validate",
]  # fmt: skip
