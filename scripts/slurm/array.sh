#!/bin/bash
# An experiment: the same deck with other values, a run for each line of a list.
#
#   sbatch --array=1-3%2 array.sh DECK FOLDER LIST      # three runs, two at a time
#   ./gather FOLDER                                     # one table of how far they are, at any time
#
# LIST has the overrides of one run a line, such as: optimizer.lr=1e-3 optimizer.weight_decay=0
# Run n goes to FOLDER/n. Submit the same line again and those go on that were stopped; those that are done have no
# more to do.

#SBATCH --job-name=kozero
#SBATCH --output=%x-%A_%a.log
#SBATCH --time=01:00:00
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1     # ranks: one a GPU; on CPUs one a NUMA domain
#SBATCH --cpus-per-task=8       # threads of a rank: CPUs of one NUMA domain
#SBATCH --mem-per-cpu=2G        # other runs share the node
##SBATCH --gpus-per-node=1      # GPUs, as many as ranks; see one-node.sh for how they are bound
set -euo pipefail
deck=$1 folder=$2 list=$3
read -ra overrides < <(sed -n "${SLURM_ARRAY_TASK_ID}p" "$list") || [[ -n ${overrides[*]-} ]]
run=$folder/$SLURM_ARRAY_TASK_ID
mkdir -p "$run"
printf '%s\n' "${overrides[*]}" >"$run/overrides"

# From Slurm 22.05 on srun does not take --cpus-per-task from above: without this a rank has one CPU for its threads.
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
# When Slurm ends the job. It does not always say so itself, and it says nothing where there is no limit.
ends=$(squeue -h -j "$SLURM_JOB_ID" -o %e) || ends=
KOZERO_JOB_END=$([[ -z $ends ]] || date -d "$ends" +%s 2>/dev/null) || KOZERO_JOB_END=
export KOZERO_JOB_END

launch=(srun --kill-on-bad-exit=1 --cpu-bind=cores)
#launch=(mpiexec -n "$SLURM_NTASKS")                  # MPICH's launcher, where srun has no pmi2 (srun --mpi=list)
#launch+=(apptainer exec --bind "$PWD" kozero.sif)    # in a container; with --nv it has NVIDIA's GPUs
"${launch[@]}" kozero train "$deck" run.dir="$run" "${overrides[@]}" --resume auto
