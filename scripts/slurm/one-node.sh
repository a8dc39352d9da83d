#!/bin/bash
# A training on one node.
#
#   sbatch one-node.sh DECK RUN_DIR [KEY=VALUE …]
#
# Before its time is up the run saves and leaves with 75; submit the same line again and it goes on.

#SBATCH --job-name=kozero
#SBATCH --output=%x-%j.log
#SBATCH --time=02:00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2     # ranks: one a GPU; on CPUs one a NUMA domain
#SBATCH --cpus-per-task=8       # threads of a rank: CPUs of one NUMA domain
#SBATCH --mem=0                 # all of the node's, to be shared by the ranks
##SBATCH --gpus-per-node=2      # GPUs, as many as ranks. --gpus-per-task=1 would hide the others' GPUs from each rank,
                                # and MPI libraries that copy from GPU to GPU need to see them: then add
                                # --gpu-bind=none to srun below. Of those that it sees, a rank takes the one of its
                                # number on the node.
set -euo pipefail
deck=$1 run=$2

# From Slurm 22.05 on srun does not take --cpus-per-task from above: without this a rank has one CPU for its threads.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# When Slurm ends the job. It does not always say so itself, and it says nothing where there is no limit.
ends=$(squeue -h -j "$SLURM_JOB_ID" -o %e) || ends=
KOZERO_JOB_END=$([[ -z $ends ]] || date -d "$ends" +%s 2>/dev/null) || KOZERO_JOB_END=
export KOZERO_JOB_END

launch=(srun --kill-on-bad-exit=1 --cpu-bind=cores)
#launch=(mpiexec -n "$SLURM_NTASKS")                  # MPICH's launcher, where srun has no pmi2 (srun --mpi=list)
#launch+=(apptainer exec --bind "$PWD" kozero.sif)    # in a container; with --nv it has NVIDIA's GPUs
"${launch[@]}" kozero train "$deck" run.dir="$run" "${@:3}" --resume auto
