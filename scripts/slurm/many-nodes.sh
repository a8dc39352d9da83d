#!/bin/bash
# A training on several nodes, as many as there are: batch.global in the deck keeps the batch when their number changes.
#
#   sbatch many-nodes.sh DECK RUN_DIR [KEY=VALUE …]
#
# Before its time is up the run saves and leaves with 75; submit the same line again, on other nodes too (sbatch
# --nodes=8 many-nodes.sh …), and it goes on.

#SBATCH --job-name=kozero
#SBATCH --output=%x-%j.log
#SBATCH --time=12:00:00
#SBATCH --nodes=2-4             # the most that can be had at once
#SBATCH --ntasks-per-node=2     # ranks: one a GPU; on CPUs one a NUMA domain
#SBATCH --cpus-per-task=8       # threads of a rank: CPUs of one NUMA domain
#SBATCH --mem=0                 # all of a node's, to be shared by its ranks
##SBATCH --exclusive            # others' jobs slow one rank, and with it all
##SBATCH --gpus-per-node=2      # GPUs, as many as ranks; see one-node.sh for how they are bound
set -euo pipefail
deck=$1 run=$2 # both on a file system that all nodes see

# From Slurm 22.05 on srun does not take --cpus-per-task from above: without this a rank has one CPU for its threads.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# When Slurm ends the job. It does not always say so itself, and it says nothing where there is no limit.
ends=$(squeue -h -j "$SLURM_JOB_ID" -o %e) || ends=
KOZERO_JOB_END=$([[ -z $ends ]] || date -d "$ends" +%s 2>/dev/null) || KOZERO_JOB_END=
export KOZERO_JOB_END

# Without --kill-on-bad-exit the other ranks would wait for one that died. A rank's neighbours by number hold its
# neighbouring shards: block distribution keeps them on its node.
launch=(srun --kill-on-bad-exit=1 --distribution=block --cpu-bind=cores)
#launch=(mpiexec -n "$SLURM_NTASKS")                  # MPICH's launcher, where srun has no pmi2 (srun --mpi=list)
#launch+=(apptainer exec --bind "$PWD" kozero.sif)    # in a container; with --nv it has NVIDIA's GPUs
"${launch[@]}" kozero train "$deck" run.dir="$run" "${@:3}" --resume auto
