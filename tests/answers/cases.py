"""All questions that tests/compare asks, by name."""
import csv
import io
import json
import os

import stacks
from questions import Case

JSON = ("--json", "OUT/json", "--fits-exit-0")
# Presets whose whole step takes the flow solver longer than half a minute: of these only a part is asked.
SLOW_PRESETS = ("axonn-160b", "llama3-405b-cp", "megascale-175b")
SCENARIO = {"schema": "dlsim/scenario/1", "source": "a test"}
SCENARIOS = {
    "jitter": {"jitter": {"fraction": 0.03}},
    "slow-replica": {"replicas": [{"stage": 0, "replica": 1, "slowdown": 1.3}]},
    "slow-stage": {"replicas": [{"stage": 1, "slowdown": 1.5}]},
    "slow-link": {"links": [{"link": "node0: device0 -> nvswitch0", "at_s": 0.001, "bandwidth_fraction": 0.1}]},
    "all-at-once": {"jitter": {"fraction": 0.02}, "replicas": [{"replica": 0, "slowdown": 1.1}],
                    "links": [{"link": "node0: device1 -> nvswitch0", "at_s": 0.0005, "bandwidth_fraction": 0.05},
                              {"link": "node0: device1 -> nvswitch0", "at_s": 0.02, "bandwidth_fraction": 1}]},
}
GPT = {"layers": 16, "hidden": 1024, "heads": 16, "seq": 512, "vocab": 8192}


def _text(document):
    return json.dumps(document)


def _strategy(stack, **keys):
    return _text({"schema": "dlsim/strategy/1", "source": "a test", "workload": "./workload.json",
                  "software": "megatron-core", "global_batch": 32, "precision": "bf16", "optimizer": "adam", **keys,
                  "stack": stack})


def _workload(**keys):
    return _text({"schema": "dlsim/workload/1", "source": "a test", "kind": "transformer", **GPT, **keys})


# ---- presets ----


def _entry(strategy, name):
    return next((e for e in strategy["stack"] if e["name"] == name), {})


def _part_of(strategy):
    """Options for two replicas and micro-batches for two rounds of the pipeline: quick, with every mechanism."""
    others = [_entry(strategy, axis).get("ways", 1) for axis in ("pipeline", "tensor", "context")]
    held = others[0] * others[1] * others[2]
    replicas = strategy["devices"] // held
    least = max(2, _entry(strategy, "expert").get("ways", 1), _entry(strategy, "zero").get("shard_ways", 1))
    fewer = min(replicas, least)
    micros = min(strategy["global_batch"] // replicas // strategy["microbatch"], 2 * others[0])
    return ["--devices", str(held * fewer), "--set", f"global_batch={fewer * micros * strategy['microbatch']}"]


def _presets(home):
    with open(os.path.join(home, "validation/published/presets.json"), encoding="utf-8") as file:
        systems = {p["preset"]: p["system"] for p in json.load(file)["presets"]}
    for preset, system in sorted(systems.items()):
        with open(os.path.join(home, f"strategies/presets/{preset}.json"), encoding="utf-8") as file:
            part = _part_of(json.load(file))
        run = ("run", "--topo", system, "--strategy", preset)
        yield Case(f"preset-{preset}-analytic", (*run, "--engine", "analytic", *JSON))
        yield Case(f"preset-{preset}-part", (*run, *part, *JSON))
        yield Case(f"preset-{preset}-program", (*run, *part, "--print-program"))
        if preset not in SLOW_PRESETS:
            yield Case(f"preset-{preset}-simgrid", (*run, *JSON))


# ---- one strategy at a time ----


def _steps():
    data, pipeline = {"name": "data"}, {"name": "pipeline", "ways": 4}
    tensor = {"name": "tensor", "ways": 4}
    plain = {"devices": 8}
    for schedule, chunks in stacks.SCHEDULES.items():
        yield f"schedule-{schedule}", [pipeline | {"schedule": schedule, "chunks": chunks}, data], plain, {}
    yield "tied", [pipeline, data], plain, {"tied_embedding": True}
    yield "untied", [pipeline, data], plain, {"tied_embedding": False}
    for name, kind in {"1d": {}, "sequence": {"sequence": True}, "chunks": {"sequence": True, "overlap_chunks": 4},
                       "2d": {"grid": "2d"}, "3d": {"grid": "3d", "x": 2, "z": 2}}.items():
        yield f"tensor-{name}", [tensor | kind, data], {"devices": 8, "microbatch": 4}, {}
    yield "tensor-2.5d", [tensor | {"ways": 8, "grid": "2.5d", "z": 2}, data], {"devices": 8, "microbatch": 4}, {}
    for kind in ("ring", "allgather", "alltoall"):
        context = {"name": "context", "ways": 4, "kind": kind, "zigzag": kind == "ring"}
        yield f"context-{kind}", [context, data], plain, {}
    for i, expert in enumerate(({}, {"overlap": True}, {"dispatch": "to_nodes"}, {"skew": 0.4})):
        model = {"experts": 8, "top_k": 2, "expert_ffn": 1024}
        stack = [{"name": "expert", "ways": 8} | expert, data, {"name": "zero", "stage": 1}]
        yield f"expert-{i}", stack, {"devices": 16}, model
    for i, zero in enumerate(({"stage": 1}, {"stage": 2}, {"stage": 3}, {"stage": 3, "reshard": False},
                              {"stage": 3, "prefetch": 3}, {"stage": 3, "shard_ways": 4, "gather_bits": 8})):
        yield f"zero-{i}", [data | {"overlap": True}, {"name": "zero"} | zero], {"devices": 8, "microbatch": 2}, {}
    for what in ("optimizer", "parameters", "activations"):
        yield f"offload-{what}", [data, {"name": "offload", what: 0.5}], plain, {}
    for exchange in ("parameter_server", "parameter_server_serial", "rings", "direct_ring"):
        yield f"data-{exchange}", [data | {"exchange": exchange}], plain, {}
    for method in ("qsgd", "one_bit", "top_k"):
        yield f"quantized-{method}", [data, {"name": "quantized_allreduce", "method": method}], plain, {}
    for name, entry in (("blocking", {"name": "blocking_launches"}), ("graphs", {"name": "graphs", "scope": "step"})):
        yield name, [data, tensor, entry], plain, {}
    for i, again in enumerate(({"mode": "selective"}, {"mode": "full"}, {"mode": "full", "layers": 2, "every": 2},
                               {"mode": "full", "kept_results": ["qkv", "projection"]})):
        yield f"recompute-{i}", [pipeline, data, {"name": "recompute"} | again], plain, {}


def _one_by_one():
    for name, stack, keys, model in _steps():
        files = (("strategy.json", _strategy(stack, **keys)), ("workload.json", _workload(**model)))
        run = ("run", "--topo", "dgx-a100-hdr4", "--strategy", "./strategy.json")
        yield Case(f"step-{name}-simgrid", (*run, "--trace", "OUT/trace", *JSON), files)
        yield Case(f"step-{name}-analytic", (*run, "--engine", "analytic", *JSON), files)
        yield Case(f"step-{name}-program", (*run, "--print-program"), files)


def _changed_runs():
    """One pipeline of two replicas with tensor ranks, and what else a run can be asked."""
    stack = [{"name": "pipeline", "ways": 2}, {"name": "tensor", "ways": 2}, {"name": "data", "overlap": True}]
    files = (("strategy.json", _strategy(stack, devices=8)), ("workload.json", _workload()))
    run = ("run", "--topo", "dgx-a100-hdr4", "--strategy", "./strategy.json")
    for name, scenario in SCENARIOS.items():
        with_it = (*files, ("scenario.json", _text({**SCENARIO, **scenario})))
        words = (*run, "--scenario", "scenario.json", "--seed", "7", "--trace", "OUT/trace", *JSON)
        yield Case(f"scenario-{name}", words, with_it)
    for name, words in {
        "iterations-1": ("--iterations", "1"),
        "iterations-2": ("--iterations", "2"),
        "iterations-5": ("--iterations", "5"),
        "no-barrier": ("--set", "software.step_barrier=false", "--iterations", "3"),
        "sends-blocking": ("--set", 'software.sends="blocking"'),
        "sends-batched": ("--set", 'software.sends="batched"'),
        "sends-whole": ("--set", "software.scatters_sends=false"),
        "sends-drain": ("--set", "software.drains_at_sends=true"),
        "by-message": ("--fidelity", "step"),
        "cm02": ("--engine", "cm02"),
        "spread": ("--placement", "spread", "--devices", "16"),
        "random": ("--placement", "random", "--seed", "3"),
        "list": ("--placement", "list:0,1,2,3,8,9,10,11"),
        "explain": ("--explain",),
        "explain-analytic": ("--explain", "--engine", "analytic"),
        "sensitivity": ("--sensitivity", "--engine", "analytic"),
        "order": ("--set", 'order=["pipeline","data","tensor","context"]'),
    }.items():
        yield Case(f"run-{name}", (*run, *words, *JSON), files)
    yield Case("run-text", (*run, "--gantt", "--links"), files)
    yield Case("run-drawn", (*run, "--svg", "OUT/svg", *JSON), files)
    for system in ("frontier", "perlmutter", "tpu-v4"):
        words = ("run", "--topo", system, "--strategy", "./strategy.json")
        yield Case(f"run-{system}", (*words, *JSON), files)


def _models():
    for model in ("resnet50", "alexnet", "mlp-mnist", "bert-base"):
        single = ("run", "--topo", "dgx-a100-hdr4", "--strategy", "single", "--workload", model)
        for software in ("ideal", "pytorch-eager", "pytorch-compiled"):
            yield Case(f"model-{model}-{software}", (*single, "--software", software, *JSON))
        data = ("--devices", "8", "--set", "global_batch=64", "--set", "+stack.data.overlap=true")
        yield Case(f"model-{model}-data", (*single, *data, *JSON))


# ---- collectives, measured steps, random stacks ----


def _collectives():
    systems = {"dgx-a100-hdr4": 16, "frontier": 64, "dgx-h100": 24, "tpu-v5e": 16, "crossbar": 16}
    for system, devices in systems.items():
        for op in ("allreduce", "allgather", "reducescatter", "alltoall", "broadcast", "reduce", "sendrecv", "barrier"):
            one = ("collective", "--topo", system, "--op", op, "--devices", str(devices))
            sized = one if op == "barrier" else (*one, "--bytes", "1e7")
            for engine in ("simgrid", "analytic"):
                yield Case(f"collective-{system}-{op}-{engine}", (*sized, "--engine", engine, "--json", "OUT/json"))
            yield Case(f"collective-{system}-{op}-fluid", (*sized, "--fidelity", "fluid", "--json", "OUT/json"))
            if op != "barrier":
                yield Case(f"collective-{system}-{op}-sizes", (*one, "--sizes", "1e3:1e8:4", "--json", "OUT/json"))


def _few_devices(path, most):
    """The rows of a table on at most so many devices."""
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    column = rows[0].index("devices")
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([rows[0], *(r for r in rows[1:] if int(r[column]) <= most)])
    return text.getvalue()


def _rows(path):
    validate = ("validate", "--json", "OUT/json")
    yield Case("rows-published-analytic", (*validate, "--engine", "analytic"))
    for table in ("resnet50", "simumax_b200", "zero_bubble", "korthikanti_table5"):
        yield Case(f"rows-{table}-simgrid", (*validate, "--rows", table))
    if path:
        yield Case("rows-given-analytic", (*validate, "--engine", "analytic", "--rows", os.path.abspath(path)))
        yield Case("rows-given-simgrid", (*validate, "--rows", "few.csv"), (("few.csv", _few_devices(path, 64)),))


def _stacks(n):
    for index in range(n):
        options, more, files = stacks.draw(index)
        trace = ("--trace", "OUT/trace") if index % 10 == 0 else ()
        yield Case(f"stack-{index:03}-simgrid", ("run", *options, *more, *trace, *JSON), files)
        yield Case(f"stack-{index:03}-analytic", ("run", *options, *more, "--engine", "analytic", *JSON), files)
        yield Case(f"stack-{index:03}-program", ("run", "--print-program", *options), files)


def all_cases(home, rows, n_stacks):
    return [*_rows(rows), *_presets(home), *_one_by_one(), *_changed_runs(), *_models(), *_collectives(),
            *_stacks(n_stacks)]
