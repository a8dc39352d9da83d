# Packs what gpu-check runs: programs, launcher, libraries, scripts. To be sourced by bash after common.sh.
# shellcheck shell=bash disable=SC2154

most_bytes=55000000 # of an archive

# The tests of each step, which mean something on a device, in the order that they are to run in.
kernel_tests=(lane_test row_reduce_test elementwise_test flat_test gelu_test layernorm_test head_test squares_test
  window_sums_test embedding_test adamw_test)
product_tests=(gemm_test linear_test attention_test)
rank_tests=(collectives_test zero_offload zero_stages)
message_tests=(survey_test device_tree_sum_test nccl_device_test)

# NVIDIA's, which come with the machine: the toolkit's and the driver's.
is_of_cuda() {
  [[ $1 =~ ^libcu(da|dart|blas|blasLt|dnn.*|sparse|solver(Mg)?|fftw?|rand|pti)\.so ||
    $1 =~ ^lib(nccl|nvrtc.*|nvJitLink|nvtx.*|nvToolsExt|nvidia-.*)\.so ]]
}

# The C library, which comes with the machine too: its loader opens the driver, and a process has one C library.
is_of_libc() { [[ $1 =~ ^(linux-vdso|ld-linux.*|lib(c|m|mvec|dl|rt|pthread|resolv|util|anl|nsl))\.so ]]; }

# The compiler's, which are only used where the machine has none or older ones.
is_of_compiler() { [[ $1 =~ ^lib(stdc\+\+|gcc_s|gomp)\.so ]]; }

# Copies a program without symbols.
copy_program() {
  [[ -x $1 ]] || die "there is no program $1 (it is to be packed); build it"
  mkdir -p -- "$(dirname -- "$2")"
  strip -o "$2" -- "$1"
}

# Copies the programs of a build.
copy_programs() {
  local step name found i number
  copy_program "$build_dir/app/kozero" "$packed/bin/kozero"
  for step in kernels products ranks messages; do
    local -n names=${step%s}_tests
    for i in "${!names[@]}"; do
      name=${names[i]}
      printf -v number %02d "$i"
      found=$(find "$build_dir/tests" -type f -name "$name" -perm -u+x)
      [[ -n $found ]] || die "there is no test '$name' in $build_dir (it is to be packed); build it"
      copy_program "$found" "$packed/tests/$step/$number-$name"
    done
  done
}

# Copies MPICH's launcher and the program that it starts beside each rank, which it looks for in its own folder.
copy_launcher() {
  local launcher
  launcher=$(readlink -f -- "$(sed -n 's/^MPIEXEC_EXECUTABLE:[A-Z]*=//p' "$build_dir/CMakeCache.txt")")
  [[ -x ${launcher%/*}/hydra_pmi_proxy ]] ||
    die "$launcher has no hydra_pmi_proxy beside it (the launcher is not MPICH's); build with MPICH"
  copy_program "$launcher" "$packed/bin/mpiexec"
  copy_program "${launcher%/*}/hydra_pmi_proxy" "$packed/bin/hydra_pmi_proxy"
}

# Copies the libraries that the programs need, however indirectly; prints the names of CUDA's, which are left out.
copy_libraries() {
  local name path
  mkdir -p -- "$packed/lib/gcc"
  ldd "$packed"/bin/* "$packed"/tests/*/* | awk '$2 == "=>" { print $1, $3 }' | sort -u |
    while read -r name path; do
      if is_of_cuda "$name"; then
        printf '%s\n' "$name"
      elif ! is_of_libc "$name"; then
        [[ $path == /* ]] || die "the library $name is not found (programs need it); see LD_LIBRARY_PATH"
        if is_of_compiler "$name"; then cp -L -- "$path" "$packed/lib/gcc/"; else cp -L -- "$path" "$packed/lib/"; fi
      fi
    done
}

# What a reader of the archive is told.
readme() {
  cat <<END
kozero on a GPU: what it does there, in $total_limit s. Packed by scripts/gpu-check, preset $preset, commit $commit.

On a machine with a GPU, its driver and the libraries of CUDA 13, with bash 5 and the GNU tools:

  tar -xf gpu-check.tar && gpu-check/scripts/gpu-check run gpu-check OUT

leaves OUT/gpu-check.txt, gpu-check.json and gpu-check.log. 'run --steps' prints the steps, '--help' the options.

  content.tar.xz   unpacked by ./unpack on the first run, with the machine's xz or that in xz/:
    bin/           kozero, and MPICH's launcher
    tests/         programs of tests, by step
    lib/           the libraries of the host that they need
    lib/gcc/       libstdc++, libgcc_s and libgomp: used where the machine's own are missing or too old
  inputs/          decks; data is made on the spot
  scripts/         gpu-check itself
  manifest         what was packed

Not in here, so that they fit the machine: CUDA's libraries (${needs:-none is needed}), the driver, and the C library
(glibc $needs_glibc or later must be there), whose loader opens the driver.
END
}

# Writes the manifest, which run reads.
write_manifest() {
  printf '%s\n' format=1 "version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build_dir/CMakeCache.txt")" \
    "commit=$commit" "preset=$preset" "built_for=$built_for" "needs=$needs" "needs_glibc=$needs_glibc" \
    >"$packed/manifest"
}

# Prints the latest version of the C library that a program or library in the archive asks for. The compiler's own
# libraries do not count, since the machine's come first.
glibc_needed() {
  find "$packed"/{bin,tests,lib} -path "$packed/lib/gcc" -prune -o -type f -exec objdump -T {} + 2>/dev/null |
    grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d _ -f 2
}

# Builds what is to be packed.
build_packed() {
  # bootstrap looks for a Kokkos for hosts.
  [[ $preset == cuda-* ]] || bootstrap
  configure "$preset"
  build "$preset" --target kozero "${kernel_tests[@]}" "${product_tests[@]}" "${rank_tests[@]}" \
    "${message_tests[@]}"
}

# Puts the archive together: what is large in an archive of its own, as few machines lack xz but some do.
write_archive() {
  mkdir -p -- "$packed/xz" "$packed/inputs" "$packed/scripts/gpu"
  copy_program "$(command -v xz)" "$packed/xz/xz"
  ldd "$packed/xz/xz" | awk '$1 ~ /^liblzma/ { print $3 }' | xargs -I{} cp -L {} "$packed/xz/"
  cp -- "$root"/inputs/{quickstart,gpt2-124m,offload-capacity}.yaml "$packed/inputs/"
  cp -- "$root"/scripts/{gpu-check,common.sh,offload-capacity} "$packed/scripts/"
  cp -- "$root"/scripts/gpu/*.sh "$packed/scripts/gpu/"
  readme >"$packed/README"
  cat >"$packed/unpack" <<'END'
#!/bin/sh
# Unpacks content.tar.xz where it lies.
set -eu
cd -- "$(dirname -- "$0")"
if command -v xz >/dev/null; then
  xz -dc content.tar.xz
else
  LD_LIBRARY_PATH=xz xz/xz -dc content.tar.xz
fi | tar -xf -
END
  chmod +x "$packed/unpack"
  tar -C "$packed" -cf - bin tests lib | XZ_OPT=${XZ_OPT:--9} xz -c >"$packed/content.tar.xz"
  rm -rf -- "${packed:?}/bin" "$packed/tests" "${packed:?}/lib"
  tar -C "$scratch" --owner=0 --group=0 -cf "$1.partial" gpu-check
}

# pack PRESET BUILD_DIR OUT: where BUILD_DIR is empty the preset is built.
pack() {
  local preset=$1 build_dir=$2 out=$3 packed commit needs needs_glibc built_for bytes
  scratch=$(mktemp -d -- "${TMPDIR:-/tmp}/gpu-check.XXXXXX")
  trap 'rm -rf -- "$scratch"' EXIT
  packed=$scratch/gpu-check
  if [[ -z $build_dir ]]; then
    build_packed
    build_dir=$root/build/$preset
  else
    preset=$(basename -- "$build_dir")
  fi
  [[ -r $build_dir/CMakeCache.txt ]] ||
    die "$build_dir is no build (it has no CMakeCache.txt); name another, or a preset"
  commit=$(git -C "$root" describe --always --dirty 2>/dev/null || echo unknown)
  copy_programs
  copy_launcher
  needs=$(copy_libraries | paste -sd ' ')
  needs_glibc=$(glibc_needed)
  built_for=host
  [[ -z $needs ]] || built_for=cuda
  if grep -q '^KOZERO_EMULATED:BOOL=\(ON\|1\)' "$build_dir/CMakeCache.txt"; then built_for=emulated; fi
  mkdir -p -- "$(dirname -- "$out")"
  write_manifest
  write_archive "$out"
  bytes=$(stat -c %s -- "$out.partial")
  ((bytes < most_bytes)) ||
    die "the archive has $bytes bytes (less than $most_bytes are wanted); pack fewer tests (scripts/gpu/pack.sh)"
  mv -- "$out.partial" "$out"
  printf '%s: %d.%d MB, preset %s, built for %s, needs of CUDA: %s\n' "$out" $((bytes / 1000000)) \
    $((bytes % 1000000 / 100000)) "$preset" "$built_for" "${needs:-nothing}"
}
