#!/bin/bash
# A training that may be preempted, and requeues itself until it is done.
#
#   sbatch preemptible.sh DECK RUN_DIR [KEY=VALUE …]
#
# The run saves and leaves with 75 when Slurm preempts it (TERM, which Slurm sends to the ranks at once where the
# partition has a GraceTime), when its time is nearly up (USR1, to this script) or when someone says
# scancel --signal=USR1 --batch JOB. Then the job is requeued under its number and goes on where it was; Slurm lets it
# wait two minutes. scancel JOB saves too, and ends it for good.
#
# A requeued job wants as many tasks as it had. To let it go on with fewer, while it waits:
#   scontrol update JobId=JOB NumNodes=1 NumTasks=2

#SBATCH --job-name=kozero
#SBATCH --output=%x-%j.log
#SBATCH --open-mode=append      # one log for all lives of the job
#SBATCH --requeue
#SBATCH --signal=B:USR1@120     # this long before the end of its time; Slurm may be 60 s early
#SBATCH --time=04:00:00
#SBATCH --nodes=1-2
#SBATCH --ntasks-per-node=2     # ranks: one a GPU; on CPUs one a NUMA domain
#SBATCH --cpus-per-task=8       # threads of a rank: CPUs of one NUMA domain
#SBATCH --mem=0                 # all of a node's, to be shared by its ranks
##SBATCH --gpus-per-node=2      # GPUs, as many as ranks; see one-node.sh for how they are bound
set -euo pipefail
deck=$1 run=$2

# From Slurm 22.05 on srun does not take --cpus-per-task from above: without this a rank has one CPU for its threads.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK

launch=(srun --kill-on-bad-exit=1 --cpu-bind=cores)
#launch=(mpiexec -n "$SLURM_NTASKS")                  # MPICH's launcher, where srun has no pmi2 (srun --mpi=list)
#launch+=(apptainer exec --bind "$PWD" kozero.sif)    # in a container; with --nv it has NVIDIA's GPUs
unset KOZERO_JOB_END # of another job
step=
# Slurm's launcher passes USR1 on to all ranks, to which it is the same as TERM; TERM would end the launcher itself.
# Whoever sends TERM to this script wants the job to end, or requeues it himself.
requeues=yes
trap 'kill -USR1 $step || true' USR1
trap 'requeues=no; kill -USR1 $step || true' TERM
"${launch[@]}" kozero train "$deck" run.dir="$run" "${@:3}" --resume auto &
step=$!

# A trapped signal ends wait with a status above 128, but not the run.
status=0
wait $step || status=$?
while kill -0 $step 2>/dev/null; do
  status=0
  wait $step || status=$?
done

# 75: stopped and saved. A launcher may lose it and return 0; the run's last line of metrics is right.
stopped() { ((status == 75)) || { ((status == 0)) && ! tail -n 1 "$run/metrics.jsonl" | grep -q '"reason":"done"'; }; }
if stopped && [[ $requeues == yes ]]; then
  trap - USR1 TERM
  scontrol requeue "$SLURM_JOB_ID" # which ends this script
  sleep 60
fi
exit $status
