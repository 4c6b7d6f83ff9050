"""Ask a program all questions and keep what it answers: a file for each output, with the exit status and messages."""
import concurrent.futures
import dataclasses
import os
import shutil
import subprocess
import tempfile
import time


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    words: tuple  # arguments of dlsim; OUT/ stands for a folder, and what is written there is part of the answer
    files: tuple = ()  # (name, text): files that lie in the folder where it runs


def home_of(program):
    """Where a program finds its files (sim/core/home.c)."""
    here = os.path.dirname(os.path.realpath(program))
    built, installed = os.path.join(here, "share/dlsim"), os.path.join(os.path.dirname(here), "share/dlsim")
    own = installed if os.path.isdir(installed) or not os.path.isdir(built) else built
    return os.environ.get("DLSIM_HOME") or own


def _run(program, home, case, folder):
    """Paths of this run are the same words in all runs, as file names are part of messages."""
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        for name, text in case.files:
            with open(os.path.join(scratch, name), "w", encoding="utf-8") as file:
                file.write(text)
        os.mkdir(os.path.join(scratch, "out"))
        words = [word.replace("OUT/", "out/") for word in case.words]
        done = subprocess.run(["nice", program, *words], cwd=scratch, env={**os.environ, "DLSIM_HOME": home},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        messages = f"status {done.returncode}\n{done.stderr}"
        _keep(folder, case.name, "messages", messages.replace(home, "HOME"))
        if done.stdout and "OUT/json" not in case.words:  # which says it all, and more
            _keep(folder, case.name, "stdout", done.stdout.replace(home, "HOME"))
        for name in os.listdir(os.path.join(scratch, "out")):
            shutil.copyfile(os.path.join(scratch, "out", name), os.path.join(folder, f"{case.name}.{name}"))
    return time.monotonic() - begin, case.name


def _keep(folder, name, what, text):
    with open(os.path.join(folder, f"{name}.{what}"), "w", encoding="utf-8") as file:
        file.write(text)


def ask(program, cases, folder, jobs):
    """Returns (seconds, name) of each."""
    program, home = os.path.realpath(program), os.path.realpath(home_of(program))
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda case: _run(program, home, case, folder), cases))
