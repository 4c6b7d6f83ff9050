"""measuring.py - the real part: laboratories, calibration, training. Everything it finds out is left in files:

calibration-star-RANKS.json; calibration-, pairs- and server-shared-RANKS.json, and after the cases the same with -again
(dlsim-measure); step-HASH.json (dlsim-train, with more keys); work-HASH.json (dlsim-train without messages). What is there
already is not measured again.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
STRATEGY = HERE / "strategy.json"
WORK = {"compute", "recompute", "optimizer"}  # causes of time that are no network
SKIPPED = 77
QUIET_SPREAD = 0.1  # of steps; above it something else was going on on this machine
TRIES, STEPS = 3, 7
STEPS_THROUGH_MEMORY = {"mlp": 121, "narrow": 25}  # by workload: a second or so
NO_LEARNING = 1e-9  # rate: the gradients of ranks that do not hear each other mean nothing
EAGER, SEGMENT = 1 << 19, 1 << 25  # bytes through memory: of a message that is copied at once, of a rank for all of them
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
    def system(self):
        return HERE / "systems" / f"{self.network}.json"

    @property
    def options(self):
        """What dlsim-train and dlsim are given alike."""
        sets = [word for s in self.settings for word in ("--set", s)]
        workload = HERE / "workloads" / f"{self.workload}.json"
        return ["--strategy", STRATEGY, "--workload", workload, "--devices", str(self.devices), *sets]

    @property
    def exchanges_beside(self):
        """Ranks have a second thread."""
        return any(s.get("overlap") or s.get("stage") == 3 for s in self.stack)

    @property
    def pattern(self):
        """Of messages, as dlsim-measure has them: `pairs`, of which one sends and then the other, a `server` and those that
        it serves, or all in a `ring` at once."""
        names = {s["name"] for s in self.stack}
        if any(s.get("exchange") == "parameter_server" for s in self.stack):
            return "server"
        return "pairs" if names == {"pipeline"} or (names == {"data"} and self.algorithm == "tree") else "ring"

    @property
    def together(self):
        """Ranks that have the same stage of a pipeline, and wait for each other."""
        return self.devices // next((s["ways"] for s in self.stack if s["name"] == "pipeline"), 1)

    @property
    def cores(self):
        return self.ranks * (2 if self.exchanges_beside else 1)


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
    """Ranks that talk through memory do not sleep while they wait: each thread needs a core."""
    return case.network != "shared" or case.cores <= os.cpu_count()


ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def stop(number, _frame):
    """The laboratory is removed on the way out, which no second signal may cut short."""
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    sys.exit(128 + number)


def take_signals():
    for ending in ENDINGS:
        signal.signal(ending, stop)


class Lab:
    """The network of a system file for the time of a `with`; for `shared` that of this machine's memory."""

    def __init__(self, network, ranks, dlsim):
        self.network, self.ranks, self.dlsim = network, ranks, dlsim
        self.name = f"{network}.{os.getpid()}"

    def __enter__(self):
        if self.network != "shared":
            try:
                call("make", self.name, HERE / "systems" / f"{self.network}.json", self.ranks, self.dlsim)
            except BaseException:
                call("remove", self.name)
                raise
        return self

    def __exit__(self, *_):
        if self.network == "shared":
            return
        try:
            call("remove", self.name)
        except BaseException:  # a signal ended it
            call("remove", self.name)
            raise

    def start(self, ranks, cores_of_rank, *words):
        if self.network != "shared":
            return [HERE / "lab", "mpirun", self.name, ranks, *words]
        binding = ["--bind-to", "core"] if cores_of_rank == 1 else ["--use-hwthread-cpus", "--map-by", f"slot:PE={cores_of_rank}"]
        return ["nice", "-n", "-10", "mpirun", "--oversubscribe", *binding, *through_memory(ranks), "-n", ranks, *words]

    def lost(self):
        return 0 if self.network == "shared" else int(call("drops", self.name))


def through_memory(ranks):
    """Messages are copied into memory that both ranks have, and out of it, on every machine. What a stage sends goes there
    at once; else it would move when the sender calls MPI again, after its next piece of work."""
    room = shutil.disk_usage("/dev/shm").free > ranks * SEGMENT
    settings = {"single_copy_mechanism": "none", "eager_limit": EAGER, "max_send_size": EAGER, "free_list_inc": 4,
                "segment_size": SEGMENT, "backing_directory": "/dev/shm" if room else tempfile.gettempdir()}
    return [word for key, value in settings.items() for word in ("--mca", f"btl_vader_{key}", value)]


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
        self.patient, self.mute = self.folder / "patient.so", self.folder / "mute.so"

    def measure(self, cases):
        for program in ("dlsim-train", "dlsim-measure"):
            if not (self.build / program).exists():
                raise Skipped(f"skipped: {self.build / program} was not built, there was no MPI")
        for library in (self.patient, self.mute):
            subprocess.run(["mpicc", "-O2", "-shared", "-fPIC", "-o", library, HERE / f"{library.stem}.c"], check=True)
        if any(c.network != "shared" for c in cases):
            call("clean")
        for ranks in sorted({even(c.ranks) for c in cases if c.network != "shared"}):
            with Lab("star", ranks, self.build / "dlsim") as lab:
                self.calibrate(lab, ranks, "ring", self.folder / star_name(ranks))
        self.calibrate_memory(cases, again=False)
        for network in dict.fromkeys(c.network for c in cases):
            of_network = [c for c in cases if c.network == network]
            with Lab(network, max(c.ranks for c in of_network), self.build / "dlsim") as lab:
                for case in of_network:
                    if network == "shared":
                        self.work_mutely(lab, case)
                    self.train(lab, case)
        self.calibrate_memory(cases, again=True)

    def calibrate_memory(self, cases, again):
        """Messages of every pattern that a case has. Others use such a machine, too: what is measured before and after
        the cases is taken together."""
        memory = [c for c in cases if c.network == "shared"]
        wanted = {(even(n), "ring") for c in memory for n in (c.ranks, c.together)} | {(even(c.ranks), c.pattern) for c in memory}
        for ranks, pattern in sorted(wanted):
            with Lab("shared", ranks, self.build / "dlsim") as lab:
                self.calibrate(lab, ranks, pattern, self.folder / memory_names(pattern, ranks)[again])

    def run(self, lab, ranks, *words, preload=None, cores_of_rank=1):
        preload = preload or (self.patient if lab.network != "shared" else None)
        program = ["env", f"LD_PRELOAD={preload}", *words] if preload else words
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        command = [str(w) for w in lab.start(ranks, cores_of_rank, *program)]
        for _ in range(TRIES):
            try:
                done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=HERE, timeout=PATIENCE_S)
            except subprocess.TimeoutExpired:
                continue  # daemons of Open MPI that did not find each other
            if done.returncode:
                raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
            return
        raise SystemExit(f"{' '.join(command)}\nno end after {PATIENCE_S} s, {TRIES} times")

    def calibrate(self, lab, ranks, pattern, out):
        """Messages as they are in most of a training: all ranks send and receive at once, in a ring. Through memory also
        those of pairs and servers: a rank that does both at once copies twice as much."""
        shaped = lab.network != "shared"
        if out.exists():
            return
        seconds = 0.05 if self.short else 0.3 if shaped else 0.06
        most = ["--most-bytes", 1 << 20] if self.short and shaped else []
        sizes = ["--least-bytes", 1 << 15, *most] if shaped else ["--pieces-above", EAGER]
        way = [] if pattern == "pairs" else [f"--{pattern}"]
        self.run(lab, ranks, self.build / "dlsim-measure", "--json", out, "--seconds", seconds, *way, *sizes)
        print(f"calibrated {lab.network} with {ranks} ranks ({pattern})", flush=True)

    def work_mutely(self, lab, case):
        """Kernels as they are while all ranks are busy with the same shapes, but no message is sent."""
        out = self.folder / work_name(case)
        if out.exists():
            return
        self.train_once(lab, case, out, "--learning-rate", NO_LEARNING, preload=self.mute)

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
        lost, out = lab.lost(), self.folder / "try.json"
        step = self.train_once(lab, case, out)
        return dict(step, lost_packets=lab.lost() - lost, network_share=network_share(step), spread=spread(step["steps_s"][1:]))

    def train_once(self, lab, case, out, *words, preload=None):
        shaped = lab.network != "shared"
        steps = 4 if self.short else STEPS if shaped else STEPS_THROUGH_MEMORY.get(case.workload, STEPS)
        waits = [] if shaped else ["--spin"]
        self.run(lab, case.ranks, self.build / "dlsim-train", *case.options, "--algo", case.algorithm, "--steps", steps,
                 *waits, "--json", out, *words, preload=preload, cores_of_rank=case.cores // case.ranks)
        return json.loads(out.read_text())


def even(ranks):
    return ranks + ranks % 2


def star_name(ranks):
    """Of a calibration for all shaped networks."""
    return f"calibration-star-{ranks}.json"


def step_name(case):
    return f"step-{hashlib.sha1(case.name.encode()).hexdigest()[:12]}.json"


def memory_names(pattern, ranks):
    """Of calibrations through memory, before and after the cases."""
    kind = "calibration" if pattern == "ring" else pattern
    return [f"{kind}-shared-{ranks}{when}.json" for when in ("", "-again")]


def work_name(case):
    """Of the same work, however gradients are summed."""
    text = f"{case.workload} {case.ranks} {' '.join(case.settings)}"
    return f"work-{hashlib.sha1(text.encode()).hexdigest()[:12]}.json"


def work_s(causes):
    """Seconds of a rank by cause: those that are neither network nor waiting."""
    return sum(s for cause, s in causes.items() if cause in WORK)


def network_share(step):
    """Of the time of a rank, what is neither work nor the update."""
    seconds = {cause: value["mean_s"] for cause, value in step["causes"].items()}
    return 1 - work_s(seconds) / sum(seconds.values())


def spread(seconds):
    """Half of the range of the middle half, over the median."""
    quarters = statistics.quantiles(seconds, n=4)
    return (quarters[2] - quarters[0]) / 2 / statistics.median(seconds)
