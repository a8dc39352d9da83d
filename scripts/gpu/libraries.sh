# Where CUDA's libraries are on this machine, and how programs of the archive find them. To be sourced by bash.
# shellcheck shell=bash disable=SC2034,SC2154

declare -A cuda_library=() # where a library is, by its name

# What a CUDA program, or a library of CUDA's, opens when it needs it: the driver, and what may be missing.
opened_libraries=(libcuda.so.1 libcudnn.so.9 libnccl.so.2 libnvrtc.so.13 libcublas.so.13)

# Prints the folders of Python's packages, if there is a Python.
python_folders() { python3 -c 'import sys; print("\n".join(sys.path))' 2>/dev/null || true; }

# Prints the folders that may have CUDA's libraries beside those that the loader knows.
library_folders() {
  local folder
  printf '%s\n' ${CUDA_HOME:+"$CUDA_HOME/lib64"} /usr/local/cuda/lib64 /usr/local/cuda*/lib64 /usr/local/cuda*/lib \
    /usr/local/cuda*/targets/x86_64-linux/lib /usr/lib/x86_64-linux-gnu /usr/lib64 /usr/local/nvidia/lib64 \
    /usr/local/nvidia/lib /usr/lib/wsl/lib
  python_folders | while IFS= read -r folder; do printf '%s\n' "$folder"/nvidia/*/lib; done
}

# Prints where the loader finds a library by itself; nothing if it does not.
known_library() {
  { ldconfig -p || /sbin/ldconfig -p; } 2>/dev/null |
    awk -v name="$1" '$1 == name && /x86-64/ && !found { print $NF; found = 1 }'
}

# Prints the first of the folders (read from stdin, to the end: whoever prints them is not to be cut off) that has a file.
folder_with() {
  local folder found=
  while IFS= read -r folder; do
    if [[ -z $found && -e $folder/$1 ]]; then found=$folder; fi
  done
  [[ -z $found ]] || printf '%s\n' "$found"
}

# Finds a library: in LD_LIBRARY_PATH, as the loader does, in the usual folders. Those of the latter join library_path.
find_library() {
  local name=$1 folder path
  folder=$(tr : '\n' <<<"${LD_LIBRARY_PATH-}" | folder_with "$name")
  path=$(known_library "$name" || true)
  if [[ -z $folder && -n $path ]]; then
    cuda_library[$name]=$path
    return
  fi
  if [[ -z $folder ]]; then folder=$(library_folders | folder_with "$name"); fi
  [[ -n $folder ]] || return 0
  cuda_library[$name]=$folder/$name
  [[ :$library_path: == *":$folder:"* ]] || library_path+=:$folder
}

# Prints what the loader does not find of what the programs need.
not_found() {
  "${in_environment[@]}" ldd "$archive"/bin/* "$archive"/tests/*/* 2>&1 | grep 'not found' | sort -u || true
}

# Prints where UCX may keep memory that ranks share, if /dev/shm is not there, read-only or full.
other_shared_memory() {
  local free
  free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }' || true)
  if [[ ! -w /dev/shm ]] || ((${free:-0} < 65536)); then
    mkdir -p -- "$scratch/shm"
    printf '%s\n' "$scratch/shm"
  fi
}

# Finds what the programs need, and sets in_environment, which comes before their names.
prepare_libraries() {
  local name shared
  library_path=$archive/lib
  if [[ $(manifest built_for) == cuda ]]; then
    for name in $(manifest needs) "${opened_libraries[@]}"; do find_library "$name"; done
  fi
  library_path+=${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  # The compiler's libraries are the machine's, which is what its other libraries expect, unless these are too old.
  in_environment=(env "LD_LIBRARY_PATH=$library_path" "TMPDIR=$scratch" OMP_PROC_BIND=false UCX_LOG_FILE=stderr)
  shared=$(other_shared_memory)
  [[ -z $shared ]] || in_environment+=("UCX_POSIX_DIR=$shared")
  compiler_libraries="of the machine"
  if not_found | grep -Eq 'GLIBCXX|CXXABI|GCC_|GOMP|OMP_|lib(stdc|gcc|gomp)'; then
    in_environment[1]="LD_LIBRARY_PATH=$archive/lib/gcc:$library_path"
    compiler_libraries="of the archive"
  fi
}

# Prints the path of a tool of CUDA's.
find_tool() {
  command -v "$1" && return
  local folder
  folder=$({
    printf '%s\n' ${CUDA_HOME:+"$CUDA_HOME/bin"} /usr/local/cuda*/bin /usr/local/cuda*/compute-sanitizer \
      /usr/local/nvidia/bin
    python_folders | while IFS= read -r folder; do printf '%s\n' "$folder"/nvidia/*/bin; done
  } | folder_with "$1")
  [[ -z $folder ]] || printf '%s\n' "$folder/$1"
}
