"""measuring.py - the real part: laboratories, calibration, training. Everything it finds out is left in files:

calibration-NET-RANKS.json (dlsim-measure), step-HASH.json (dlsim-train, with more keys). What is there already is not
measured again.
"""

import hashlib
import json
import os
import re
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
STRATEGY = HERE / "strategy.json"
DEFAULTS = json.loads(STRATEGY.read_text())
WORK = {"compute", "recompute", "optimizer"}  # causes of time that are no network
SKIPPED = 77
QUIET_SPREAD = 0.1  # of steps; above it something else was going on on this machine
TRIES, STEPS = 3, 7
PATIENCE_S = 100


class Skipped(Exception):
    pass


@dataclass
class Case:
    network: str  # a file of systems/, or shared
    ranks: int
    workload: str
    algorithm: str
    settings: list  # of --set
    short: bool

    @property
    def name(self):
        return f"{self.network} {self.ranks} {self.workload} {self.algorithm} {' '.join(self.settings)}"

    @property
    def stack(self):
        return json.loads(next(s for s in self.settings if s.startswith("stack=")).removeprefix("stack="))

    @property
    def devices(self):
        servers = sum(s.get("servers", 1) for s in self.stack if s.get("exchange") == "parameter_server")
        return self.ranks - servers

    @property
    def alone(self):
        """Settings of a rank that does a rank's samples by itself: the whole model, no exchange."""
        values = dict(s.split("=", 1) for s in self.settings)
        microbatch = int(values.get("microbatch", DEFAULTS["microbatch"]))
        replicas = self.devices
        for entry in self.stack:
            replicas //= entry.get("ways", 1) if entry["name"] in ("pipeline", "tensor") else 1
        samples = int(values.get("global_batch", DEFAULTS["global_batch"])) // replicas
        return [f"global_batch={samples}", f"microbatch={microbatch}", "stack=[]"]

    @property
    def system(self):
        return HERE / "systems" / f"{self.network}.json"

    @property
    def options(self):
        """What dlsim-train and dlsim are given alike."""
        return self.options_for(self.devices, self.settings)

    @property
    def options_alone(self):
        return self.options_for(1, self.alone)

    def options_for(self, devices, settings):
        sets = [word for s in settings for word in ("--set", s)]
        workload = HERE / "workloads" / f"{self.workload}.json"
        return ["--strategy", STRATEGY, "--workload", workload, "--devices", str(devices), *sets]


def read_cases(path, pattern, short):
    cases = []
    for line in path.read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        marked = line.startswith("*")
        network, ranks, workload, algorithm, *settings = line.lstrip("* ").split()
        cases.append(Case(network, int(ranks), workload, algorithm, settings, marked))
    return [c for c in cases if re.search(pattern, c.name) and (c.short or not short)]


def has_cores(case):
    """Ranks that talk through memory do not sleep while they wait: each needs a core."""
    return case.network != "shared" or case.ranks <= os.cpu_count()


class Lab:
    """The network of a system file for the time of a `with`; for `shared` that of this machine's memory."""

    def __init__(self, network, ranks, dlsim):
        self.network, self.ranks, self.dlsim = network, ranks, dlsim
        self.name = f"{network}.{os.getpid()}"

    def __enter__(self):
        if self.network != "shared":
            call("make", self.name, HERE / "systems" / f"{self.network}.json", self.ranks, self.dlsim)
        return self

    def __exit__(self, *_):
        if self.network != "shared":
            call("remove", self.name)

    def start(self, ranks, *words):
        if self.network == "shared":
            return ["nice", "-n", "-10", "mpirun", "--oversubscribe", "--bind-to", "core" if ranks <= os.cpu_count() else "none", "-n", ranks, *words]
        return [HERE / "lab", "mpirun", self.name, ranks, *words]

    def lost(self):
        return 0 if self.network == "shared" else int(call("drops", self.name))


def call(*words):
    done = subprocess.run([HERE / "lab", *map(str, words)], capture_output=True, text=True)
    if done.returncode == SKIPPED:
        raise Skipped(done.stdout.strip())
    if done.returncode:
        raise SystemExit(f"lab {words[0]}: {done.stderr.strip()}")
    return done.stdout


class Bench:
    def __init__(self, build, folder, short):
        self.build, self.folder, self.short = build, folder, short
        self.folder.mkdir(parents=True, exist_ok=True)
        self.patient = self.folder / "patient.so"

    def measure(self, cases):
        for program in ("dlsim-train", "dlsim-measure"):
            if not (self.build / program).exists():
                raise Skipped(f"skipped: {self.build / program} was not built, there was no MPI")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", self.patient, HERE / "patient.c"], check=True)
        if any(c.network != "shared" for c in cases):
            call("clean")
        for kind, ranks in sorted({(calibrated_on(c), even(c.ranks)) for c in cases}):
            with Lab(kind, ranks, self.build / "dlsim") as lab:
                self.calibrate(lab, ranks)
        for network in dict.fromkeys(c.network for c in cases):
            of_network = [c for c in cases if c.network == network]
            with Lab(network, max(c.ranks for c in of_network), self.build / "dlsim") as lab:
                for case in of_network:
                    if network == "shared":
                        self.work_alone(case)
                    self.train(lab, case)

    def run(self, lab, ranks, *words):
        program = ["env", f"LD_PRELOAD={self.patient}", *words] if lab.network != "shared" else words
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        command = [str(w) for w in lab.start(ranks, *program)]
        for _ in range(TRIES):
            try:
                done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=HERE, timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                continue  # daemons of Open MPI that did not find each other
            if done.returncode:
                raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
            return
        raise SystemExit(f"{' '.join(command)}\nno end after {PATIENCE_S} s, {TRIES} times")

    def calibrate(self, lab, ranks):
        """Messages as they are in most of a training: all ranks send and receive at once."""
        out = self.folder / calibration_name(lab.network, ranks)
        shaped = lab.network != "shared"
        if out.exists():
            return
        effort = ["--seconds", 0.05, "--most-bytes", 1 << 20] if self.short else ["--seconds", 0.3]
        way = ["--ring", *(["--least-bytes", 1 << 15] if shaped else [])]
        self.run(lab, ranks, self.build / "dlsim-measure", "--json", out, *effort, *way)
        print(f"calibrated {lab.network} with {ranks} ranks", flush=True)

    def work_alone(self, case):
        """Kernels as they are while as many ranks are busy as the case has, each by itself."""
        out = self.folder / alone_name(case)
        if out.exists():
            return
        files = [self.folder / f"alone-{i}.json" for i in range(case.ranks)]
        words = [str(w) for w in (self.build / "dlsim-train", *case.options_alone, "--steps", STEPS, "--json")]
        ranks = [subprocess.Popen(["taskset", "-c", str(i), *words, str(f)], cwd=HERE) for i, f in enumerate(files)]
        if any([rank.wait() for rank in ranks]):
            raise SystemExit(f"{' '.join(words)}: failed")
        steps = [json.loads(f.read_text()) for f in files]
        out.write_text(json.dumps({"work_s": statistics.mean(s["step_s"] for s in steps)}))

    def train(self, lab, case):
        out = self.folder / step_name(case)
        if out.exists():
            return
        start, step = time.monotonic(), self.try_once(lab, case)
        for _ in range(TRIES - 1):
            if step["spread"] <= QUIET_SPREAD:
                break
            step = min(step, self.try_once(lab, case), key=lambda s: s["spread"])
        out.write_text(json.dumps(step))
        print(f"{time.monotonic() - start:5.1f} s: {case.name}", flush=True)

    def try_once(self, lab, case):
        lost, steps, out = lab.lost(), 4 if self.short else STEPS, self.folder / "try.json"
        self.run(lab, case.ranks, self.build / "dlsim-train", *case.options, "--algo", case.algorithm, "--steps", steps,
                 "--json", out)
        step = json.loads(out.read_text())
        return dict(step, lost_packets=lab.lost() - lost, network_share=network_share(step), spread=spread(step["steps_s"][1:]))


def even(ranks):
    return ranks + ranks % 2


def calibrated_on(case):
    return "shared" if case.network == "shared" else "star"


def calibration_name(network, ranks):
    return f"calibration-{network}-{ranks}.json"


def step_name(case):
    return f"step-{hashlib.sha1(case.name.encode()).hexdigest()[:12]}.json"


def alone_name(case):
    text = f"{case.workload} {case.ranks} {' '.join(case.alone)}"
    return f"alone-{hashlib.sha1(text.encode()).hexdigest()[:12]}.json"


def network_share(step):
    """Of the time of a rank, what is neither work nor the update."""
    seconds = {cause: value["mean_s"] for cause, value in step["causes"].items()}
    return sum(s for cause, s in seconds.items() if cause not in WORK) / sum(seconds.values())


def spread(seconds):
    """Half of the range of the middle half, over the median."""
    quarters = statistics.quantiles(seconds, n=4)
    return (quarters[2] - quarters[0]) / 2 / statistics.median(seconds)
