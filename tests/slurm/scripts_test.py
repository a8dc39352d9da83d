#!/usr/bin/env python3
"""Each script of scripts/slurm, submitted to a Slurm of two nodes, stopped in the ways that Slurm has, and gone on.

What a run becomes is compared with the same run on as many ranks without Slurm: the hash of its state, and its metrics
line by line but for times. Runs that are stopped have no end of their own: they wait at rest, with the nodes drained,
until their deck has been given one a few updates later.

  scripts_test.py KOZERO MPIEXEC [unittest's arguments]
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import cluster

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPTS = SOURCE / "scripts" / "slurm"
ENDLESS = 1_000_000
MORE = 30  # updates after a stop
# What 1, 2, 3 and 4 ranks can share, and some milliseconds an update.
DECK = ["data.format=text", "batch.accumulate=none", "batch.global=24", "schedule.kind=constant", "schedule.min_lr=0",
        "evaluate.every=10", "evaluate.batches=1", "data.validation=0.1", "zero.stage=2", "run.log_every=0"]
MPIEXEC_LINE = (r"^#launch=\(mpiexec", "launch=(mpiexec")
APPTAINER_LINE = (r"^#launch\+=\(apptainer", "launch+=(apptainer")
SMALL = ["--mem=200", "--cpus-per-task=1"]
TOLD_BY_SLURM = ("signal TERM", "signal USR1")  # its own to the ranks, or the script's through srun, in either order


def without_times(line):
    return {key: value for key, value in line.items() if key not in ("seconds", "tokens_per_s")}


class ScriptTest(unittest.TestCase):
    """A cluster, and a folder with a deck and a text."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kozero-slurm-test-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "text").write_text("".join(f"line {i * i}\n" for i in range(400)))
        self.slurm = self.enterContext(cluster.Cluster())
        self.slurm.environment["PATH"] = f"{KOZERO.parent}:{self.slurm.environment['PATH']}"
        self.set_updates(ENDLESS)

    def enterContext(self, manager):  # unittest has it from Python 3.11 on
        value = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return value

    # ---- runs

    def set_updates(self, updates):
        """Writes the deck anew, for runs that start from now on."""
        text = (SOURCE / "inputs/tests/odd.yaml").read_text()
        (self.folder / "deck.yaml").write_text(re.sub("updates: .*", f"updates: {updates}", text))

    def deck_arguments(self):
        return [str(self.folder / "deck.yaml"), f"data.train={self.folder}/text", *DECK]

    def metrics(self, run):
        path = self.folder / run / "metrics.jsonl"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [json.loads(line) for line in lines]

    def without_slurm(self, run, stages):
        """The run as it should be: one process group after the other, each (ranks, updates in the end, overrides)."""
        environment = {**self.slurm.environment, "OMP_NUM_THREADS": "1"}
        for ranks, updates, *more in stages:
            self.set_updates(updates)
            subprocess.run([MPIEXEC, "-n", str(ranks), KOZERO, "train", *self.deck_arguments(), *more,
                            f"run.dir={self.folder}/{run}", "--resume", "auto"],
                           env=environment, check=True, capture_output=True, timeout=240)

    def assert_same(self, run, expected, ends=()):
        """The same state, and the same metrics but for times. Where the expected run ended before it was given more
        updates, and was not due an evaluation, it has one that the other has not."""
        extra = [end for end in ends if end % 10 != 0]
        left = self.metrics(run)
        right = [line for line in self.metrics(expected)
                 if line.keys() != {"batch", "updates_applied", "val_loss"} or line["batch"] not in extra]
        self.assertEqual(left[-1].get("reason"), "done")
        self.assertEqual(left[-1]["state_hash"], right[-1]["state_hash"])
        for mine, other in zip(left, right):
            self.assertEqual(without_times(mine), without_times(other))
        self.assertEqual(len(left), len(right))

    # ---- jobs

    def variant(self, script, *changes):
        """A copy of a script, edited as its user would: each change is an expression and what comes in its place."""
        text = (SCRIPTS / script).read_text()
        for expression, replacement in changes:
            text, count = re.subn(f"(?m){expression}", replacement, text)
            self.assertGreater(count, 0, expression)
        path = self.folder / script
        path.write_text(text)
        return path

    def submit(self, script, run, *options, more=()):
        """The job's number; its log is RUN.log."""
        deck, *overrides = self.deck_arguments()
        return self.slurm.run("sbatch", "--parsable", f"--output={self.folder}/{run}.log", *SMALL, *options,
                              SCRIPTS / script, deck, self.folder / run, *overrides, *more).strip()

    def log(self, run):
        path = self.folder / f"{run}.log"
        return path.read_text() if path.exists() else ""

    def job(self, number, key):
        """A field of scontrol's, such as JobState."""
        return re.search(rf"\b{key}=(\S*)", self.slurm.run("scontrol", "show", "job", number)).group(1)

    def wait_for_updates(self, run, count=20):
        """A run that has begun, or goes on after what it had."""
        had = len(self.metrics(run))
        cluster.wait_until(f"{count} updates of {run}:\n{self.log(run)}",
                           lambda: len(self.metrics(run)) >= had + count)

    def wait_for_state(self, number, run, *states):
        """The state that the job is then in."""
        try:
            cluster.wait_until(f"job {number} to be {states}", lambda: self.job(number, "JobState") in states)
        except TimeoutError as error:
            job = self.slurm.run("scontrol", "show", "job", number)
            raise TimeoutError(f"{error}\n{job}{self.log(run)}") from error
        return self.job(number, "JobState")

    def wait_for_end(self, number, run):
        """The job's exit status, as number:signal."""
        self.wait_for_state(number, run, "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        return self.job(number, "ExitCode")

    def drain(self, *nodes):
        self.slurm.run("scontrol", "update", f"nodename={','.join(nodes)}", "state=drain", "reason=test")

    def undrain(self, *nodes):
        self.slurm.run("scontrol", "update", f"nodename={','.join(nodes)}", "state=resume")

    def start_requeued(self, number, run):
        """Slurm lets a requeued job wait two minutes: its nodes refuse it within the second in which they ended it."""
        self.wait_for_state(number, run, "PENDING")  # before that the two minutes are yet to come
        time.sleep(2)
        self.slurm.run("scontrol", "update", f"jobid={number}", "starttime=now")

    def check_stopped(self, run, *reasons):
        """The updates after which a run was saved, for one of these reasons."""
        end = self.metrics(run)[-1]
        self.assertIn(end.get("reason"), reasons, self.log(run))
        return end["updates_applied"]


class OneNode(ScriptTest):
    """one-node.sh"""

    def test_each_launcher_trains_what_is_trained_without_slurm(self):
        self.set_updates(40)
        apptainer = self.folder / "apptainer"
        apptainer.write_text('#!/bin/sh\nwhile [ "$1" != kozero ]; do shift; done\nexec "$@"\n')
        apptainer.chmod(0o755)
        self.slurm.environment["PATH"] = f"{self.folder}:{self.slurm.environment['PATH']}"
        jobs = {"srun": self.submit("one-node.sh", "srun")}
        jobs["mpiexec"] = self.submit(self.variant("one-node.sh", MPIEXEC_LINE), "mpiexec")
        jobs["container"] = self.submit(self.variant("one-node.sh", APPTAINER_LINE), "container")
        for run, job in jobs.items():
            self.assertEqual(self.wait_for_end(job, run), "0:0", self.log(run))
        self.without_slurm("expected", [(2, 40)])
        for run in jobs:
            self.assert_same(run, "expected")

    def test_the_table_says_what_slurm_says_and_what_disagrees(self):
        self.set_updates(1)
        job = self.submit("one-node.sh", "run", "--time=5", "--mem=20", more=["run.time_limit=1h"])
        self.assertEqual(self.wait_for_end(job, "run"), "0:0", self.log("run"))
        log = self.log("run")
        self.assertRegex(log, rf"job +Slurm {job} in partition main, 1 node, 2 tasks of 1 CPU, 20\.0 MiB a node, ends")
        self.assertIn("warning: Slurm gives 20.0 MiB a node", log)
        self.assertIn("warning: Slurm ends the job before run.time_limit", log)

    def test_a_deck_that_is_refused_fails_with_2_and_a_killed_rank_ends_all(self):  # CASES 18
        refused = self.submit("one-node.sh", "refused", more=["optimizer.lr=much"])
        killed = self.submit("one-node.sh", "killed", more=["checkpoint.every=10"])
        self.wait_for_updates("killed")
        since = time.monotonic()
        ranks = [int(path.name) for path in pathlib.Path("/proc").glob("[0-9]*") if self.is_rank(path, "killed")]
        self.assertEqual(len(ranks), 2)
        os.kill(ranks[1], 9)
        self.assertNotEqual(self.wait_for_end(killed, "killed"), "0:0")
        self.assertLess(time.monotonic() - since, 15)
        self.assertEqual(self.wait_for_end(refused, "refused"), "2:0", self.log("refused"))

    def is_rank(self, process, run):
        try:
            words = (process / "cmdline").read_text().split("\0")
        except OSError:
            return False
        return os.path.basename(words[0]) == "kozero" and f"run.dir={self.folder}/{run}" in words


class TimeRunsOut(ScriptTest):
    """The two ways to leave before the time of a job is up."""

    def test_a_run_leaves_before_its_job_ends_and_goes_on_when_submitted_again(self):
        job = self.submit("one-node.sh", "run", "--time=1", "--ntasks-per-node=1")
        warned = self.submit("preemptible.sh", "warned", "--time=1", "--signal=B:USR1@40", "--nodes=1",
                             "--ntasks-per-node=1")
        self.wait_for_updates("run")
        self.wait_for_updates("warned")
        self.drain("n1", "n2")
        self.wait_for_state(warned, "warned", "PENDING")
        signalled = self.check_stopped("warned", "signal USR1")
        self.assertEqual(self.wait_for_end(job, "run"), "75:0", self.log("run"))
        stopped = self.check_stopped("run", "end of the job")

        self.undrain("n1", "n2")
        self.set_updates(stopped + MORE)
        again = self.submit("one-node.sh", "run", "--ntasks-per-node=2")
        self.assertEqual(self.wait_for_end(again, "run"), "0:0", self.log("run"))
        self.without_slurm("expected", [(1, stopped), (2, stopped + MORE)])
        self.assert_same("run", "expected", [stopped])

        self.set_updates(signalled + MORE)
        self.start_requeued(warned, "warned")
        self.assertEqual(self.wait_for_end(warned, "warned"), "0:0", self.log("warned"))
        self.without_slurm("warned expected", [(1, signalled + MORE)])
        self.assert_same("warned", "warned expected")


class Preempted(ScriptTest):
    """preemptible.sh"""

    def go_on(self, job, run, updates, ranks_before, ranks):
        """The requeued job ends as a run without Slurm that was on so many ranks before and after the stop."""
        self.set_updates(updates + MORE)
        self.start_requeued(job, run)
        self.assertEqual(self.wait_for_end(job, run), "0:0", self.log(run))
        self.assertIn("(requeued once)", self.log(run))
        before = [(ranks_before, updates)] if ranks_before != ranks else []
        self.without_slurm(f"{run} expected", [*before, (ranks, updates + MORE)])
        self.assert_same(run, f"{run} expected", [end for _, end in before])

    def test_a_preempted_job_goes_on_on_fewer_nodes(self):
        job = self.submit("preemptible.sh", "run", "--nodes=1-2", "--ntasks-per-node=2")
        self.wait_for_updates("run")
        self.assertEqual(self.job(job, "NumNodes"), "2")
        urgent = self.slurm.run("sbatch", "--parsable", "--partition=urgent", "--nodes=2", "--exclusive",
                                "--output=/dev/null", "--wrap=sleep 1").strip()
        self.wait_for_state(job, "run", "PENDING")
        updates = self.check_stopped("run", *TOLD_BY_SLURM)
        self.wait_for_end(urgent, "run")
        self.drain("n2")
        self.slurm.run("scontrol", "update", f"jobid={job}", "numnodes=1", "numtasks=2")
        self.go_on(job, "run", updates, 4, 2)

    def test_who_says_usr1_to_the_script_has_it_requeued(self):
        for script, run in ((SCRIPTS / "preemptible.sh", "srun"),
                            (self.variant("preemptible.sh", MPIEXEC_LINE), "mpiexec")):
            with self.subTest(run):
                self.set_updates(ENDLESS)
                job = self.submit(script, run, "--nodes=1", "--ntasks-per-node=2")
                self.wait_for_updates(run)
                self.slurm.run("scancel", "--signal=USR1", "--batch", job)
                self.wait_for_state(job, run, "PENDING")
                self.go_on(job, run, self.check_stopped(run, "signal USR1"), 2, 2)

    def test_who_requeues_it_by_hand_has_it_saved(self):
        job = self.submit("preemptible.sh", "run", "--nodes=1", "--ntasks-per-node=2")
        self.wait_for_updates("run")
        self.slurm.run("scontrol", "requeue", job)
        self.wait_for_state(job, "run", "PENDING")
        self.go_on(job, "run", self.check_stopped("run", *TOLD_BY_SLURM), 2, 2)

    def test_scancel_saves_and_ends_it_for_good(self):
        told = self.submit("preemptible.sh", "told", "--nodes=1", "--ntasks-per-node=1")
        job = self.submit("preemptible.sh", "run", "--nodes=1", "--ntasks-per-node=2")
        self.wait_for_updates("told")
        self.wait_for_updates("run")
        self.slurm.run("scancel", job)
        self.slurm.run("scancel", "--signal=TERM", "--batch", told)
        self.assertEqual(self.wait_for_state(job, "run", "CANCELLED", "PENDING"), "CANCELLED")
        self.assertEqual(self.wait_for_end(told, "told"), "75:0")
        self.check_stopped("told", "signal USR1")
        updates = self.check_stopped("run", *TOLD_BY_SLURM)

        self.set_updates(updates + MORE)
        again = self.submit("many-nodes.sh", "run", "--nodes=2", "--ntasks-per-node=1")
        self.assertEqual(self.wait_for_end(again, "run"), "0:0", self.log("run"))
        self.without_slurm("expected", [(2, updates + MORE)])
        self.assert_same("run", "expected")


class Array(ScriptTest):
    """array.sh and gather"""

    def test_an_experiment_is_one_table(self):
        self.set_updates(20)
        rates = ["optimizer.lr=1e-3", "optimizer.lr=1e-2 optimizer.weight_decay=0", "optimizer.lr=nonsense"]
        (self.folder / "list").write_text("".join(f"{line}\n" for line in rates))
        (self.folder / "whole.yaml").write_text(self.slurm.run(KOZERO, "check", *self.deck_arguments()))
        job = self.slurm.run("sbatch", "--parsable", "--wait", f"--output={self.folder}/%a.log", "--array=1-2%2",
                             "--mem-per-cpu=200M", "--cpus-per-task=1", SCRIPTS / "array.sh",
                             self.folder / "whole.yaml", self.folder / "runs", self.folder / "list").strip()
        self.assertIn(f"Slurm {job}_2 in", (self.folder / "2.log").read_text())
        table = [line.split("\t") for line in self.slurm.run(SCRIPTS / "gather", self.folder / "runs").splitlines()]
        rows = [dict(zip(table[0], line)) for line in table[1:]]
        self.assertEqual([row["overrides"] for row in rows], rates[:2])
        for row, overrides in zip(rows, rates):
            self.without_slurm(f"expected {row['run']}", [(1, 20, *overrides.split())])
            end = self.metrics(f"expected {row['run']}")[-1]
            self.assertEqual(row["reason"], "done")
            self.assertEqual((row["updates"], row["state_hash"]), ("20", end["state_hash"]))
            self.assertEqual((row["loss"], row["val_loss"]), (str(end["loss"]), str(end["val_loss"])))


class NcclCheck(ScriptTest):
    """nccl-check, by MPI, as no device is here"""

    def check(self, *transports):
        """The exit status, and the log, of a check by those ways."""
        self.slurm.environment["NCCL_CHECK_MODEL"] = "model.layers=1 model.heads=1 model.width=16 model.context=16"
        name = "-".join(transports)
        job = self.slurm.run("sbatch", "--parsable", f"--output={self.folder}/{name}.log", *SMALL, "--nodes=2",
                             "--ntasks-per-node=1", SCRIPTS / "nccl-check", self.folder / name, *transports).strip()
        return self.wait_for_end(job, name), self.log(name)

    def test_all_ways_have_the_same_states_and_their_rates_are_told(self):
        status, log = self.check("mpi", "auto")
        self.assertEqual(status, "0:0", log)
        self.assertIn("==> all is as it should be", log)
        hashes = re.findall(r"(?m)^([0-9a-f]{32})  (mpi|auto), stage ([03])$", log)
        self.assertEqual([rest for _, *rest in hashes], [["mpi", "0"], ["mpi", "3"], ["auto", "0"], ["auto", "3"]])
        self.assertEqual(len({state for state, *_ in hashes}), 1)
        self.assertEqual(log.count("selftest passed"), 2)
        self.assertRegex(log, r"reduce_scatter .* [kMG]B/s")

    def test_a_way_that_cannot_be_is_a_failure_in_words(self):
        status, log = self.check("nccl", "mpi")
        self.assertEqual(status, "1:0", log)
        self.assertIn("parallel.transport is nccl and cannot be (this program was built without NCCL", log)
        self.assertIn("==> FAILED: nccl: updates at stage 3", log)
        self.assertIn("==> FAILED: states differ, or a run came to no end", log)
        self.assertNotIn("==> FAILED: mpi", log)


class Chain(ScriptTest):
    """chain.sh"""

    def setUp(self):
        super().setUp()
        # A link takes over what stands in the script, not what the command line says.
        self.script = self.variant("chain.sh", ("--output=.*", f"--output={self.folder}/run.log --open-mode=append"),
                                   ("--cpus-per-task=8", "--cpus-per-task=1"), ("--mem=0", "--mem=200"))

    def next_link(self, job):
        """The job that waits for this one."""
        found = cluster.wait_until(f"a successor of {job}:\n{self.log('run')}", lambda: re.findall(
            rf"(?m)^(\d+) afterany:{job}\b", self.slurm.run("squeue", "-h", "-o", "%A %E")))
        return found[0]

    def submit_instead(self, following, job, tasks, more):
        """Another job in the place of the one that waits for `job`."""
        self.slurm.run("scancel", following)
        return self.submit(self.script, "run", f"--dependency=afterany:{job}", "--open-mode=append",
                           f"--ntasks-per-node={tasks}", more=more)

    def run_chain(self, tasks, more):
        """Killed on two tasks, stopped on so many, done on one. After how many updates it was killed and stopped."""
        first = self.submit(self.script, "run", more=more)
        second = self.submit_instead(self.next_link(first), first, tasks, more)
        self.wait_for_updates("run", 35)
        self.drain("n1", "n2")
        self.slurm.run("scancel", "--signal=KILL", first)
        self.assertNotEqual(self.wait_for_end(first, "run"), "0:0")
        killed = max(int(path.name[5:]) for path in (self.folder / "run/checkpoints").glob("step-*[0-9]"))

        self.undrain("n1", "n2")
        third = self.submit_instead(self.next_link(second), second, 1, more)
        self.wait_for_updates("run", 35)
        self.drain("n1", "n2")
        self.slurm.run("scancel", "--signal=TERM", second)
        self.assertEqual(self.wait_for_end(second, "run"), "75:0")
        stopped = self.check_stopped("run", "signal TERM")

        self.set_updates(stopped + MORE)
        self.undrain("n1", "n2")
        fourth = self.next_link(third)
        self.assertEqual(self.wait_for_end(third, "run"), "0:0", self.log("run"))
        self.wait_for_state(fourth, "run", "CANCELLED")
        return killed, stopped

    def test_killed_and_on_2_then_3_then_1_tasks_it_ends_as_without_slurm(self):  # CASES 15, 52
        kept = ["checkpoint.every=10", "checkpoint.keep=1000"]
        killed, stopped = self.run_chain(3, kept)
        self.without_slurm("expected", [(2, killed, *kept), (3, stopped, *kept), (1, stopped + MORE, *kept)])
        self.assert_same("run", "expected", [killed, stopped])

    def test_with_one_tree_of_sums_2_then_4_then_1_tasks_end_as_one_rank_without_a_stop(self):  # CASES 15
        tree = ["run.reproducibility=topology", "checkpoint.every=10", "checkpoint.keep=1000"]
        _, stopped = self.run_chain(4, tree)
        self.without_slurm("expected", [(1, stopped + MORE, *tree)])
        self.assert_same("run", "expected")

    def test_links_follow_each_other_until_the_run_is_done(self):
        first = self.submit(self.script, "run")
        second = self.next_link(first)
        self.wait_for_updates("run")
        self.drain("n1", "n2")
        self.slurm.run("scancel", "--signal=TERM", first)
        self.assertEqual(self.wait_for_end(first, "run"), "75:0")
        updates = self.check_stopped("run", "signal TERM")
        self.set_updates(updates + MORE)
        self.undrain("n1", "n2")
        third = self.next_link(second)
        self.assertEqual(self.wait_for_end(second, "run"), "0:0", self.log("run"))
        self.wait_for_state(third, "run", "CANCELLED")
        self.without_slurm("expected", [(2, updates + MORE)])
        self.assert_same("run", "expected")

    def test_a_refused_deck_ends_it(self):
        job = self.submit(self.script, "run", more=["optimizer.lr=much"])
        self.assertEqual(self.wait_for_end(job, "run"), "2:0", self.log("run"))
        self.assertIn("CANCELLED", self.slurm.run("scontrol", "show", "job", str(int(job) + 1)))


if __name__ == "__main__":
    if reason := cluster.missing():
        print(f"skipped: {reason}")
        sys.exit(77)
    for each in (signal.SIGTERM, signal.SIGALRM):
        signal.signal(each, lambda *_: sys.exit("ended from outside, or not done within 560 s"))
    signal.alarm(560)  # before ctest kills: the cluster is to be stopped
    KOZERO, MPIEXEC = pathlib.Path(sys.argv[1]), sys.argv[2]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
