"""comparing.py - dlsim's prediction of every case, from calibrations alone, beside what was measured."""

import json
import statistics
import subprocess
from pathlib import Path

from measuring import QUIET_SPREAD, calibrated_on, calibration_name, even, pairs_name, step_name, work_name, work_s

HERE = Path(__file__).resolve().parent
NOMINAL = json.loads((HERE / "systems/star.json").read_text())["network"]["bandwidth_bytes_per_s"]
FLOATS_PER_SUM = 3  # two are read, one is written
DISTINCT = 0.10  # measured steps that differ by more should be ordered rightly

# What the trainer has, whatever --algo is; that is of sums.
ALGORITHMS = ["allgather.ring", "reducescatter.ring", "alltoall.pairwise", "broadcast.binomial", "reduce.binomial",
              "sendrecv.direct", "barrier.dissemination", "allreduce.parameter_server"]


def device(c, slower=1):
    figures = {"compute_fraction": 1, "bandwidth_fraction": 1, "facts": {"*": "derived: the rates are achieved ones"}}
    rates = {"fp32": c["gemm_flop_per_s"] / slower, "facts": {"*": "measured: products of all ranks at once"}}
    return {"schema": "dlsim/device/1", "source": "a rank beside others, by dlsim-measure", "model": "roofline",
            "peak_flop_per_s": rates, "memory_bytes": 1e10, "memory_bytes_per_s": FLOATS_PER_SUM / c["reduction_s_per_byte"] / slower,
            "launch_s": 0, "figures": figures, "facts": {"*": "measured: sums of all ranks at once", "launch_s": "derived: none"}}


def protocol(name, line, fastest):
    cost = {"direct_s": max(line["latency_s"], 0), "network_s": max(line["latency_s"], 0), "facts": {"*": "measured: dlsim-measure"}}
    return {"name": name, "bandwidth_fraction": line["bandwidth_bytes_per_s"] / fastest, "peer": cost, "tree": cost,
            "facts": {"*": "measured: dlsim-measure"}}


def transport(c, nominal):
    lines = [c[name] for name in ("small", "large") if name in c]
    fastest = max(line["bandwidth_bytes_per_s"] for line in lines)
    return {"schema": "dlsim/transport/1", "source": "messages of ranks, by dlsim-measure", "adds_wire_latency": True,
            "reduction_s_per_byte": c["reduction_s_per_byte"], "pack_s_per_byte": c["pack_s_per_byte"],
            "facts": {"*": "measured: with all ranks busy"},
            "efficiency": {"*": min(fastest / nominal, 1), "facts": {"*": "measured: of the rate that links are shaped to"}},
            "protocols": [protocol(f"way{i}", line, fastest) for i, line in enumerate(lines)]}


def shared_system(c, ranks):
    part = {"kind": "switch", "name": "memory", "link": "shm", "bandwidth_bytes_per_s": 1e9, "latency_s": 0,
            "facts": {"*": "derived: the transport says what is achieved"}}
    part["bandwidth_bytes_per_s"] = max(c[n]["bandwidth_bytes_per_s"] for n in ("small", "large") if n in c)
    return {"schema": "dlsim/system/1", "source": "ranks of one host", "nodes": 1, "transport": "mpi",
            "facts": {"*": "derived: one host"},
            "node": {"device": "xeon-core", "devices": ranks, "parts": [part], "facts": {"*": "derived: its ranks"}}}


class Comparison:
    def __init__(self, build, folder, cases):
        self.dlsim, self.folder = build / "dlsim", folder
        self.rows = [self.compare(case) for case in cases]

    def write(self, name, document):
        path = self.folder / name
        path.write_text(json.dumps(document))
        return path

    def predict(self, case, real):
        # How tokens are spread over experts is a matter of the data: a count, not a time.
        routed = ["--set", f"stack.expert.imbalance={real['imbalance']}"] if "expert" in [s["name"] for s in case.stack] else []
        if case.network != "shared":
            return self.simulate(case, 1, *case.options, *routed)
        # The network is not most of it: the work takes as long as it did without messages, and the slowest sets the pace.
        work = self.read(work_name(case))["causes"]
        simulated = self.simulate(case, 1, *case.options, *routed)["causes"]
        slower = work_s({k: v["mean_s"] for k, v in work.items()}) / work_s({k: v["exposed"] for k, v in simulated.items()})
        waits = self.read(calibration_name("shared", even(case.ranks)))["slowest_over_mean"]
        return self.simulate(case, slower * waits, *case.options, *routed)

    def read(self, name):
        return json.loads((self.folder / name).read_text())

    def calibration(self, case):
        """What dlsim-measure found; through memory with the messages of pairs where ranks do not send and receive at once."""
        kind, ranks = calibrated_on(case), even(case.ranks)
        both_ways = self.read(calibration_name(kind, ranks))
        if kind != "shared" or not case.sends_one_way:
            return both_ways
        one_way, lines = self.read(pairs_name(ranks)), ("small", "large")
        return {k: v for k, v in both_ways.items() if k not in lines} | {k: one_way[k] for k in lines if k in one_way}

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
        real = self.read(step_name(case))
        simulated = self.predict(case, real)
        measured, predicted = real["step_s"], simulated["step_s"]
        return {"case": case.name, "network": case.network, "ranks": case.ranks, "workload": case.workload, "network_share": real["network_share"],
                "measured_s": measured, "spread": real["spread"], "predicted_s": predicted,
                "error": predicted / measured - 1, "lost_packets": real["lost_packets"],
                "measured_causes_s": {k: v["mean_s"] for k, v in real["causes"].items()},
                "predicted_causes_s": {k: v["exposed"] for k, v in simulated["causes"].items() if v["exposed"] > 0}}

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

    def summary(self):
        errors = [abs(row["error"]) for row in self.rows]
        n_pairs, share = self.ordered()
        return {"n": len(errors), "mean": statistics.mean(errors), "max": max(errors), "pairs": n_pairs, "ordered": share,
                "bias": statistics.mean(row["error"] for row in self.rows),
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

    def holds(self, limits):
        s = self.summary()
        return s["mean"] <= limits["mean"] and s["max"] <= limits["max"] and s["ordered"] >= limits["ordered"]
