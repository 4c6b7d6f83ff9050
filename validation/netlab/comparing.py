"""comparing.py - dlsim's prediction of every case, from calibrations alone, beside what was measured."""

import json
import statistics
import subprocess
from pathlib import Path

from measuring import QUIET_SPREAD, WORK, even, memory_names, star_name, step_name, work_name, work_s

HERE = Path(__file__).resolve().parent
NOMINAL = json.loads((HERE / "systems/star.json").read_text())["network"]["bandwidth_bytes_per_s"]
FLOATS_PER_SUM = 3  # two are read, one is written
DISTINCT = 0.10  # measured steps that differ by more should be ordered rightly
WHOLE, PIECES = ("small", "large"), "pieces"  # lines of messages

# What the trainer has, whatever --algo is; that is of sums.
ALGORITHMS = ["allgather.ring", "reducescatter.ring", "alltoall.pairwise", "broadcast.binomial", "reduce.binomial",
              "sendrecv.direct", "barrier.dissemination", "allreduce.parameter_server"]


def device(c, slower):
    figures = {"compute_fraction": 1, "bandwidth_fraction": 1, "facts": {"*": "derived: the rates are achieved ones"}}
    rates = {"fp32": c["gemm_flop_per_s"] / slower, "facts": {"*": "measured: products of all ranks at once"}}
    return {"schema": "dlsim/device/1", "source": "a rank beside others, by dlsim-measure", "model": "roofline",
            "peak_flop_per_s": rates, "memory_bytes": 1e10, "memory_bytes_per_s": FLOATS_PER_SUM / c["reduction_s_per_byte"] / slower,
            "launch_s": 0, "figures": figures, "facts": {"*": "measured: sums of all ranks at once", "launch_s": "derived: none"}}


def latency(line):
    return {"direct_s": max(line["latency_s"], 0), "network_s": max(line["latency_s"], 0)}


def fastest_of(c):
    return max(c[name]["bandwidth_bytes_per_s"] for name in (*WHOLE, PIECES) if name in c)


def fraction(line, c):
    return {"bandwidth_fraction": line["bandwidth_bytes_per_s"] / fastest_of(c)}


def protocol(name, c):
    """One of the ways of messages that are sent as a whole; of those in pieces it says the same."""
    facts = {"facts": {"*": "measured: dlsim-measure"}}
    cost = latency(c[name]) | facts
    whole = {"name": name, "peer": cost, "tree": cost} | fraction(c[name], c) | facts
    if PIECES not in c:
        return whole
    return whole | {"above": {"bytes": c["pieces_above_bytes"]} | latency(c[PIECES]) | fraction(c[PIECES], c) | facts}


def transport(c, nominal):
    return {"schema": "dlsim/transport/1", "source": "messages of ranks, by dlsim-measure", "adds_wire_latency": True,
            "reduction_s_per_byte": c["reduction_s_per_byte"], "pack_s_per_byte": c["pack_s_per_byte"],
            "facts": {"*": "measured: with all ranks busy"},
            "efficiency": {"*": min(fastest_of(c) / nominal, 1), "facts": {"*": "measured: of the rate that links are shaped to"}},
            "protocols": [protocol(name, c) for name in WHOLE]}


def shared_system(c, ranks):
    part = {"kind": "switch", "name": "memory", "link": "shm", "bandwidth_bytes_per_s": 1e9, "latency_s": 0,
            "facts": {"*": "derived: the transport says what is achieved"}}
    part["bandwidth_bytes_per_s"] = fastest_of(c)
    return {"schema": "dlsim/system/1", "source": "ranks of one host", "nodes": 1, "transport": "mpi",
            "facts": {"*": "derived: one host"},
            "node": {"device": "xeon-core", "devices": ranks, "parts": [part], "facts": {"*": "derived: its ranks"}}}


def mean_of(numbers):
    """Of numbers, or key by key of what has them all."""
    if not isinstance(numbers[0], dict):
        return statistics.mean(numbers)
    return {key: mean_of([n[key] for n in numbers]) for key in numbers[0] if all(key in n for n in numbers)}


def line_of(measured):
    return {"latency_s": measured["latency_s"], "s_per_byte": measured["s_per_byte"]}


def figures_of(measured):
    """What a prediction needs of a file of dlsim-measure. Where one line is enough it is that of all messages."""
    kernels = {k: measured[k] for k in ("gemm_flop_per_s", "reduction_s_per_byte", "pack_s_per_byte", "slowest_over_mean")}
    return kernels | {k: line_of(measured.get(k, measured[WHOLE[0]])) for k in WHOLE} | pieces_of(measured)


def pieces_of(measured):
    """Files of networks, where everything is sent as a whole, and older ones do not have them."""
    if PIECES not in measured:
        return {}
    return {PIECES: line_of(measured[PIECES]), "pieces_above_bytes": measured["pieces_above_bytes"]}


def messages_of(figures):
    return {k: v for k, v in figures.items() if k in (*WHOLE, PIECES, "pieces_above_bytes")}


def with_rates(figures):
    return figures | {k: v | {"bandwidth_bytes_per_s": 1 / v["s_per_byte"]} for k, v in figures.items() if k in (*WHOLE, PIECES)}


def stages_s(trace):
    """Seconds that a rank of each stage works in a simulated step, the mean of its replicas."""
    events = json.loads(trace)["traceEvents"]
    crews = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name" and e["args"]["name"].startswith("stage")}
    seconds = {pid: 0 for pid in crews}
    for event in events:
        if event.get("cat") == "work":
            seconds[event["pid"]] += sum(event["args"].get(f"{cause}_s", 0) for cause in WORK)
    stage_of = {pid: int(name.split()[1].rstrip(",")) for pid, name in crews.items()}
    return [statistics.mean(s for pid, s in seconds.items() if stage_of[pid] == stage) for stage in range(max(stage_of.values()) + 1)]


def worked_s(work, simulated_s):
    """Seconds that a rank of each stage works without messages. Older files tell only the mean of all ranks."""
    if "stages_s" in work:
        return work["stages_s"]
    mean_s = work_s({cause: v["mean_s"] for cause, v in work["causes"].items()})
    return [s * mean_s / statistics.mean(simulated_s) for s in simulated_s]


class Comparison:
    """Several folders hold the same cases, measured at other times: what they say is taken together."""

    def __init__(self, build, folders, scratch, cases):
        self.dlsim, self.folders, self.scratch = build / "dlsim", folders, scratch
        self.rows = [self.compare(case) for case in cases]

    def write(self, name, document):
        path = self.scratch / name
        path.write_text(json.dumps(document))
        return path

    def find(self, *names):
        return [f / name for f in self.folders for name in names if (f / name).exists()]

    def read(self, *names):
        """All files of these names, one at least."""
        found = self.find(*names)
        if not found:
            raise SystemExit(f"run: {' '.join(map(str, self.folders))}: no {' or '.join(names)}")
        return [json.loads(path.read_text()) for path in found]

    def predict(self, case, imbalance):
        # How tokens are spread over experts is a matter of the data: a count, not a time.
        routed = ["--set", f"stack.expert.imbalance={imbalance}"] if "expert" in [s["name"] for s in case.stack] else []
        if case.network != "shared":
            return self.simulate(case, 1, *case.options, *routed)
        # The network is not most of it: a stage works as long as it did without messages, and where several ranks have
        # one they wait for the slowest of them.
        path = self.scratch / "trace.json"
        self.simulate(case, 1, *case.options, *routed, "--trace", path)
        simulated_s = stages_s(path.read_text())
        real_s = [statistics.mean(of_stage) for of_stage in zip(*(worked_s(w, simulated_s) for w in self.read(work_name(case))))]
        slower = sum(real_s) / sum(simulated_s)
        crews = [{"stage": i, "slowdown": real / simulated / slower} for i, (simulated, real) in enumerate(zip(simulated_s, real_s))]
        scenario = {"schema": "dlsim/scenario/1", "source": "the work of each stage, by dlsim-train without messages", "replicas": crews}
        return self.simulate(case, slower * self.waits(case), *case.options, *routed, "--scenario", self.write("scenario.json", scenario))

    def waits(self, case):
        return self.busy(even(case.together))["slowest_over_mean"] if case.together > 1 else 1

    def calibrated(self, *names):
        return with_rates(mean_of([figures_of(measured) for measured in self.read(*names)]))

    def busy(self, ranks):
        """How fast ranks compute that are all busy does not depend on whom they send to."""
        return self.calibrated(*memory_names("ring", ranks), *memory_names("pairs", ranks))

    def calibration(self, case):
        """What dlsim-measure found; through memory messages are those of the case's pattern, and a server adds alone."""
        ranks = even(case.ranks)
        if case.network != "shared":
            return self.calibrated(star_name(ranks))
        if case.pattern == "server" and self.find(*memory_names("server", ranks)):
            return self.calibrated(*memory_names("server", ranks))
        lines = self.calibrated(*memory_names("ring" if case.pattern == "ring" else "pairs", ranks))  # also of servers, in older files
        return self.busy(ranks) | messages_of(lines)

    def simulate(self, case, slower, *words):
        """With what was calibrated for the case, and kernels that take so much longer."""
        c, ranks, shared = self.calibration(case), even(case.ranks), case.network == "shared"
        system = self.write("system.json", shared_system(c, ranks)) if shared else case.system
        rate = shared_system(c, ranks)["node"]["parts"][0]["bandwidth_bytes_per_s"] if shared else NOMINAL
        sums = ["allreduce." + ("ring" if case.algorithm == "mpi" else case.algorithm)]
        command = [self.dlsim, "run", "--topo", system, "--transport", self.write("transport.json", transport(c, rate)),
                   "--set", f'topo.node.device="{self.write("device.json", device(c, slower))}"', *words, "--fidelity", "step",
                   "--set", "transport.algorithms=" + json.dumps(sums + ALGORITHMS), "--json", "-"]
        done = subprocess.run([str(w) for w in command], capture_output=True, text=True, cwd=HERE)
        if done.returncode:
            raise SystemExit(f"{' '.join(map(str, command))}\n{done.stderr}")
        return json.loads(done.stdout)

    def compare(self, case):
        files = self.read(step_name(case))
        real = {k: mean_of([f[k] for f in files]) for k in ("step_s", "network_share", "spread", "imbalance", "causes", "lost_packets")}
        simulated = self.predict(case, real["imbalance"])
        measured, predicted = real["step_s"], simulated["step_s"]
        return {"case": case.name, "network": case.network, "ranks": case.ranks, "workload": case.workload, "network_share": real["network_share"],
                "measured_s": measured, "times_s": [f["step_s"] for f in files], "spread": real["spread"], "predicted_s": predicted,
                "error": predicted / measured - 1, "lost_packets": real["lost_packets"],
                "measured_causes_s": {k: v["mean_s"] for k, v in real["causes"].items()},
                "predicted_causes_s": {k: v["exposed_s"] for k, v in simulated["causes"].items() if v["exposed_s"] > 0}}

    def ordered(self):
        """Pairs on one network, of as many ranks: strategies that one would choose between."""
        pairs = [(a, b) for i, a in enumerate(self.rows) for b in self.rows[:i]
                 if (a["network"], a["ranks"], a["workload"]) == (b["network"], b["ranks"], b["workload"])
                 and abs(a["measured_s"] - b["measured_s"]) > DISTINCT * min(a["measured_s"], b["measured_s"])]
        right = [(a["measured_s"] > b["measured_s"]) == (a["predicted_s"] > b["predicted_s"]) for a, b in pairs]
        return len(pairs), sum(right) / len(right) if right else 1

    def drop_unquiet(self):
        """Leave out cases whose steps differ much among each other; returns how many stay."""
        self.rows = [row for row in self.rows if row["spread"] <= QUIET_SPREAD]
        return len(self.rows)

    def apart(self):
        """How much longer a case took at one time than at another, in the mean of those that have several."""
        ratios = [max(row["times_s"]) / min(row["times_s"]) for row in self.rows if len(row["times_s"]) > 1]
        return statistics.mean(ratios) - 1 if ratios else 0

    def summary(self):
        errors = [abs(row["error"]) for row in self.rows]
        n_pairs, share = self.ordered()
        return {"n": len(errors), "mean": statistics.mean(errors), "max": max(errors), "pairs": n_pairs, "ordered": share,
                "bias": statistics.mean(row["error"] for row in self.rows), "apart": self.apart(),
                "least_network_share": min(row["network_share"] for row in self.rows)}

    def document(self):
        return {"schema": "dlsim/netlab/1", "summary": self.summary(), "rows": self.rows}

    def show(self):
        print("network %  measured s  +- %  predicted s  error %  case")
        for row in self.rows:
            lost = f"  ({row['lost_packets']} packets lost)" if row["lost_packets"] else ""
            print(f"{100 * row['network_share']:9.0f} {row['measured_s']:11.4f} {100 * row['spread']:5.1f} "
                  f"{row['predicted_s']:12.4f} {100 * row['error']:+8.1f}  {row['case']}{lost}")
        s = self.summary()
        print(f"{s['n']} cases: mean error {100 * s['mean']:.1f} %, bias {100 * s['bias']:+.1f} %, max {100 * s['max']:.1f} %; "
              f"of {s['pairs']} pairs {100 * s['ordered']:.0f} % ordered rightly")
        if s["apart"]:
            print(f"a case took {100 * s['apart']:.0f} % longer at one time than at another")

    def holds(self, limits):
        s = self.summary()
        return s["mean"] <= limits["mean"] and s["max"] <= limits["max"] and s["ordered"] >= limits["ordered"]
