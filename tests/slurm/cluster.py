#!/usr/bin/env python3
"""A Slurm of this machine's own: two nodes, in a folder that is removed with it.

  with Cluster() as cluster:
      job = cluster.submit(["job.sh"])
      cluster.wait(job)

As a command it runs another one with SLURM_CONF set, with root's rights:  tests/slurm/cluster.py bash
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

DAEMONS = ("munged", "slurmctld", "slurmd")
CLIENTS = ("sbatch", "scancel", "scontrol", "squeue", "srun")
NODES = ("n1", "n2")

# What differs from Slurm's defaults is what a machine without systemd, accounting and control groups of our own needs,
# and what makes it quick: it looks for work each second, and a job that is told to end has 5 seconds.
# Jobs of the partition "urgent" preempt those of "main", which then have GraceTime to end and are requeued.
SETTINGS = """
ClusterName=kozero
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
MpiDefault=pmi2
ProctrackType=proctrack/linuxproc
TaskPlugin={task_plugin}
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ReturnToService=2
KillWait=5
MinJobAge=3600
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=2,requeue_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
NodeName=n1 NodeHostName={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=8 RealMemory=8000
NodeName=n2 NodeHostName={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=8 RealMemory=8000
PartitionName=main Nodes=ALL Default=YES State=UP PriorityTier=1 GraceTime=20
PartitionName=urgent Nodes=ALL State=UP PriorityTier=2 PreemptMode=OFF
"""


def missing():
    """Why there can be no cluster here; empty if there can."""
    if os.geteuid() != 0:
        return "not root"
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    absent = [name for name in DAEMONS + CLIENTS if not shutil.which(name, path=path)]
    return f"there is no {', '.join(absent)}; scripts/bootstrap --slurm installs them" if absent else ""


def free_ports(count):
    """Numbers of ports that nobody listens on."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def wait_until(what, done, seconds=120):
    """Comes back with what `done` returns as soon as that is true."""
    end = time.monotonic() + seconds
    while not (value := done()):
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.1)
    return value


class Cluster:
    """Daemons of Slurm and munge, started by entering and stopped, with all jobs, by leaving."""

    def __init__(self, task_plugin="task/none"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="kozero-slurm-"))
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "PMI"))}
        self.environment["PATH"] += ":/usr/sbin:/sbin"
        self.environment["SLURM_CONF"] = str(self.folder / "slurm.conf")
        self.task_plugin = task_plugin
        self.daemons = []

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self

    def __exit__(self, *_):
        if self.daemons:
            self._try("scancel", "--user=root", "--state=PENDING")
            self._try("scancel", "--user=root", "--signal=KILL", "--full")
            self._try("scancel", "--user=root")
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self):
        munge = self.folder / "munge"
        munge.mkdir()
        self.folder.chmod(0o755)  # munge wants its socket to be reachable
        munge.chmod(0o755)
        (munge / "key").write_bytes(os.urandom(128))
        (munge / "key").chmod(0o600)
        host = socket.gethostname().split(".")[0]
        (self.folder / "slurm.conf").write_text(
            SETTINGS.format(host=host, ports=free_ports(3), folder=self.folder, task_plugin=self.task_plugin))
        for name in ("state", *(f"spool.{node}" for node in NODES)):
            (self.folder / name).mkdir()
        self._daemon("munged", "--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket",
                     f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        wait_until("munge's socket", (munge / "socket").exists, 30)
        self._daemon("slurmctld", "-D", "-c")
        for node in NODES:
            self._daemon("slurmd", "-D", "-N", node)
        wait_until("idle nodes", lambda: self._try("sinfo", "-h", "-o", "%T %D").stdout.split() == ["idle", "2"], 60)

    def _daemon(self, *command):
        self.daemons.append(subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL,
                                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                             start_new_session=True))

    def _try(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)

    def run(self, *command):
        """The output of a command of Slurm."""
        done = self._try(*map(str, command))
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout


def main():
    if reason := missing():
        sys.exit(f"cluster: {reason}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with Cluster() as cluster:
        sys.exit(subprocess.run(sys.argv[1:], env=cluster.environment, check=False).returncode)


if __name__ == "__main__":
    main()
