"""Disturbs trainings and compares them with undisturbed ones; scripts/chaos explains it."""

import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

SIGNALS = ("TERM", "INT", "USR1", "HUP", "KILL")
TARGETS = ("rank", "ranks", "launcher", "group")
HANG = 120  # seconds without an end
LEGAL = ("saved", "done before", "not begun", "killed, goes on")


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kozero", required=True)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("--inputs", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--tries", type=int, default=1 << 30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quickstart", action="store_true")
    return parser.parse_args()


class Job:
    """What one run computes: as many of them are disturbed as like, one is not."""

    def __init__(self, options, ranks, stage, offload, delay):
        self.options, self.ranks = options, ranks
        self.name = f"{ranks}-{stage}-{offload}-{delay}"
        corpus = options.work / "corpus.txt"
        if options.quickstart:
            deck, some = "quickstart.yaml", ["run.updates=60", "evaluate.every=20", "checkpoint.every=25"]
        else:
            deck = "tests/odd.yaml"
            some = ["run.updates=1500", "evaluate.every=150", "checkpoint.every=350", "data.validation=0.01"]
        self.train = [options.kozero, "train", options.inputs / deck, f"data.train={corpus}", "data.format=text",
                      "run.log_every=0", "evaluate.batches=10", f"zero.stage={stage}", *some]
        if offload:
            self.train.append("offload.optimizer=host")
        if delay:
            self.train.append("offload.delayed_update.start=3")

    def start(self, folder):
        launcher = [self.options.mpiexec, "-n", str(self.ranks)] if self.ranks > 1 else []
        folder.parent.mkdir(parents=True, exist_ok=True)
        log = open(folder.with_suffix(".log"), "ab")
        return subprocess.Popen([*map(str, launcher + self.train), f"run.dir={folder}", "--resume", "auto"],
                                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                                env=dict(os.environ, OMP_NUM_THREADS="1"))


def children():
    below = collections.defaultdict(list)
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                text = (entry / "stat").read_text()
            except OSError:
                continue
            below[int(text.rsplit(")", 1)[1].split()[1])].append(int(entry.name))
    return below


def ranks_of(process, kozero):
    below, found, family = children(), [], [process.pid]
    for one in family:
        family.extend(below[one])
        try:
            if os.path.samefile(f"/proc/{one}/exe", kozero):
                found.append(one)
        except OSError:
            pass
    return found


def tell(process, target, number, kozero):
    try:
        if target == "launcher":
            process.send_signal(number)
        elif target == "group":
            os.killpg(process.pid, number)
        else:
            ranks = ranks_of(process, kozero)
            for rank in ranks if target == "ranks" else ranks[-1:]:
                os.kill(rank, number)
    except ProcessLookupError:
        pass


def metrics(folder):
    try:
        lines = (folder / "metrics.jsonl").read_text().splitlines(keepends=True)
    except FileNotFoundError:
        return []
    return [json.loads(line) for line in lines if line.endswith("\n")]


def batches(folder):
    return [{key: value for key, value in line.items() if key not in ("seconds", "tokens_per_s")}
            for line in metrics(folder) if "event" not in line]


def newest(folder):
    steps = sorted((folder / "checkpoints").glob("step-*"))
    steps = [step for step in steps if step.suffix != ".partial"]
    return int(steps[-1].name.split("-")[1]) if steps else None


def wait(process):
    try:
        return process.wait(HANG)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def no_rank_is_left(folder):
    """Ranks of a launcher that was killed end too, after a moment."""
    for _ in range(300):
        here = str(folder).encode()
        alive = False
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    alive |= b"run.dir=" + here in (entry / "cmdline").read_bytes()
                except OSError:
                    pass
        if not alive:
            return True
        time.sleep(0.1)
    return False


def outcome(folder, name, target, status):
    """How a run ended that was told something."""
    if status is None:
        return "HUNG"
    if not no_rank_is_left(folder):
        return "RANKS LEFT"
    end = [line for line in metrics(folder) if line.get("event") == "end"]
    applied = [line["updates_applied"] for line in metrics(folder) if "loss" in line and "event" not in line]
    if end:
        if newest(folder) != end[-1]["updates_applied"]:
            return "UNSAVED"
        return "done before" if end[-1]["reason"] == "done" else "saved"
    if name == "KILL" or (target in ("launcher", "group") and status != 75):
        return "killed, goes on"  # a launcher that is gone takes its ranks with it
    return "UNSAVED" if applied else "not begun"


class Reference:
    def __init__(self, job, folder):
        began = time.monotonic()
        status = wait(job.start(folder))
        if status != 0:
            sys.exit(f"chaos: the run that nobody disturbs ended with {status}; see {folder.with_suffix('.log')}")
        self.seconds = time.monotonic() - began
        self.batches = batches(folder)
        self.hash = metrics(folder)[-1]["state_hash"]


def disturb(job, reference, folder, choose, tally):
    """One run, told something up to three times on its way. Returns what was wrong, or nothing."""
    for _ in range(choose.randint(1, 3)):
        name, target = choose.choice(SIGNALS), choose.choice(TARGETS if job.ranks > 1 else TARGETS[:1])
        process = job.start(folder)
        time.sleep(choose.uniform(0, 1.05) * reference.seconds)
        tell(process, target, getattr(signal, "SIG" + name), job.options.kozero)
        told = outcome(folder, name, target, wait(process))
        tally[name, target, told] += 1
        if told not in LEGAL:
            return told
    status = wait(job.start(folder))
    if status != 0:
        return f"DOES NOT GO ON ({status})"
    if metrics(folder)[-1]["state_hash"] != reference.hash:
        return "HASH DIFFERS"
    return None if batches(folder) == reference.batches else "METRICS DIFFER"


def print_tally(tally, finished, wrong):
    columns = sorted({key[2] for key in tally})
    print(f"{'signal':8} {'to':9}" + "".join(f" {column:>16}" for column in columns))
    for name in SIGNALS:
        for target in TARGETS:
            counts = [tally[name, target, column] for column in columns]
            if any(counts):
                print(f"{name:8} {target:9}" + "".join(f" {count or '-':>16}" for count in counts))
    print(f"{sum(tally.values())} signals; {finished} runs ended with the hash and the metrics of undisturbed ones; "
          f"{len(wrong)} did not")
    for line in wrong:
        print("  " + line)


def main():
    options = arguments()
    options.work = options.work.absolute()
    choose = random.Random(options.seed)
    end = time.monotonic() + 60 * options.minutes
    references, tally, finished, wrong = {}, collections.Counter(), 0, []
    runs = options.work / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    for number in range(options.tries):
        if time.monotonic() > end:
            break
        stage = choose.randint(0, 3)
        offload = stage > 0 and choose.random() < 0.4
        job = Job(options, choose.randint(1, 3), stage, offload, offload and choose.random() < 0.5)
        if job.name not in references:
            references[job.name] = Reference(job, runs / f"undisturbed-{job.name}")
        folder = runs / f"{number}-{job.name}"
        fault = disturb(job, references[job.name], folder, choose, tally)
        if fault:
            wrong.append(f"{folder}: {fault}")
        else:
            finished += 1
            shutil.rmtree(folder)
        print(f"\r{finished + len(wrong)} runs, {sum(tally.values())} signals, {len(wrong)} faults, "
              f"{max(0, end - time.monotonic()) / 60:.0f} min left   ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print_tally(tally, finished, wrong)
    sys.exit(1 if wrong else 0)


main()
