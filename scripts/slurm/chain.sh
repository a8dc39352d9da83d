#!/bin/bash
# A training longer than any job may be: each job submits the next one, which goes on where it was, however it ended.
#
#   sbatch chain.sh DECK RUN_DIR [KEY=VALUE …]
#
# The chain ends when the run is done, when it is refused (status 2: the next job would be, too), after KOZERO_LINKS
# jobs, or with scancel of the job that waits. What a job asks for stands in the lines below: options of sbatch on the
# command line count for the first link alone.

#SBATCH --job-name=kozero
#SBATCH --output=%x-%j.log
#SBATCH --time=04:00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2     # ranks: one a GPU; on CPUs one a NUMA domain
#SBATCH --cpus-per-task=8       # threads of a rank: CPUs of one NUMA domain
#SBATCH --mem=0                 # all of a node's, to be shared by its ranks
##SBATCH --gpus-per-node=2      # GPUs, as many as ranks; see one-node.sh for how they are bound
set -euo pipefail
deck=$1 run=$2
links=${KOZERO_LINKS:-50} # of the chain, this one included

# How the run ended, as the last line of its metrics tells it.
is_done() { tail -n 1 "$run/metrics.jsonl" 2>/dev/null | grep -q '"reason":"done"'; }
if [[ -n ${KOZERO_LINKS-} ]] && is_done; then exit 0; fi

# Submitted first: so it is there even where this job is killed. Slurm keeps a copy of this script in $0.
next=
if ((links > 1)); then
  next=$(KOZERO_LINKS=$((links - 1)) sbatch --parsable --dependency="afterany:$SLURM_JOB_ID" "$0" "$@") ||
    echo "the next job could not be submitted (see above); submit it by hand when this one has ended" >&2
fi

# From Slurm 22.05 on srun does not take --cpus-per-task from above: without this a rank has one CPU for its threads.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# When Slurm ends the job. It does not always say so itself, and it says nothing where there is no limit.
ends=$(squeue -h -j "$SLURM_JOB_ID" -o %e) || ends=
KOZERO_JOB_END=$([[ -z $ends ]] || date -d "$ends" +%s 2>/dev/null) || KOZERO_JOB_END=
export KOZERO_JOB_END

launch=(srun --kill-on-bad-exit=1 --cpu-bind=cores)
#launch=(mpiexec -n "$SLURM_NTASKS")                  # MPICH's launcher, where srun has no pmi2 (srun --mpi=list)
#launch+=(apptainer exec --bind "$PWD" kozero.sif)    # in a container; with --nv it has NVIDIA's GPUs
status=0
"${launch[@]}" kozero train "$deck" run.dir="$run" "${@:3}" --resume auto || status=$?

if [[ -n $next ]] && { is_done || ((status == 2)); }; then scancel "$next"; fi
exit $status
