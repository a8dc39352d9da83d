# Shared by the scripts beside it; to be sourced by bash.
# shellcheck shell=bash

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd -P)

# Prints an error, "what is wrong (why); what to do", and leaves with the status of bad arguments or with 1.
die() {
  printf '%s: error: %s\n' "${0##*/}" "$*" >&2
  exit "${status:-1}"
}

# Installs what is missing and takes over the variables that say where Kokkos is. CI leaves no test out.
bootstrap() { bootstrap_with ${CI:+--python --slurm}; }

# Likewise, with these options of scripts/bootstrap.
bootstrap_with() {
  local settings
  settings=$("$root/scripts/bootstrap" "$@") || exit
  eval "$settings"
}

# Prints the number of cores that this process may use.
cores() { env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc; }

# Configures a preset; further arguments go to CMake. Where another MPI is the system's default, CMake is told to look for bootstrap's MPICH.
configure() {
  local preset=$1 mpi=()
  shift
  if command -v mpiexec.mpich >/dev/null && [[ $(mpiexec --version 2>&1) != *HYDRA* ]]; then
    mpi=(-DMPI_EXECUTABLE_SUFFIX=.mpich)
  fi
  (cd -- "$root" && cmake --preset "$preset" "${mpi[@]}" "$@")
}

# Builds a preset; further arguments go to CMake. ccache is to find what was compiled in another copy of the sources.
build() {
  local preset=$1
  shift
  (cd -- "$root" && CCACHE_BASEDIR=$root CCACHE_NOHASHDIR=1 cmake --build --preset "$preset" "$@")
}

# Prints the launcher of the MPI that a preset was built with.
launcher() {
  local found
  found=$(sed -n 's/^MPIEXEC_EXECUTABLE:[A-Z]*=//p' "$root/build/$1/CMakeCache.txt")
  [[ -x $found ]] || found=$(command -v mpiexec.mpich || command -v mpiexec) ||
    die "there is no mpiexec (no MPI launcher in PATH); install MPICH"
  printf '%s\n' "$found"
}
