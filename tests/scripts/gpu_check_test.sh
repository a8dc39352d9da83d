#!/usr/bin/env bash
# gpu_check_test.sh BUILD_DIR: scripts/gpu-check packs what was built there, and says truly what passed, failed, hung
# and did not run, of programs of paper (program.sh).
set -euo pipefail
build_dir=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
root=$here/../..
steps=(libraries kernels products selftest messages training offload rates sanitizer)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export OF_TEST=$work # all that is started has it, so that what is left is found

# Prints what went wrong, with the output of the last run, and leaves.
fail() {
  cat output
  printf 'FAILED: %s\n' "$*"
  exit 1
}

# run STATUS ARGUMENTS…: gpu-check run leaves with that status, and its report is whole.
run() {
  local status=0
  rm -rf out
  "$root/scripts/gpu-check" run "${@:2}" >output 2>&1 || status=$?
  ((status == $1)) || fail "run ${*:2} ended with status $status, not $1"
  if command -v python3 >/dev/null; then python3 -m json.tool out/gpu-check.json >/dev/null || fail "no JSON"; fi
}

# is STATE STEP…: that is what the report says of the steps, as JSON and as text.
is() {
  local step
  for step in "${@:2}"; do
    grep -q "{\"step\": \"$step\", \"state\": \"$1\"" out/gpu-check.json || fail "$step is not '$1' in JSON"
    grep -Eq "^$step +$1 +[0-9.]+ +[0-9]+( |$)" out/gpu-check.txt || fail "$step is not '$1' in the table"
  done
}

# says TEXT: the table has it.
says() { grep -q -- "$1" out/gpu-check.txt || fail "the table does not say '$1'"; }

# All steps but those.
but() {
  local step
  for step in "${steps[@]}"; do [[ " $* " == *" $step "* ]] || printf '%s\n' "$step"; done
}

# needs NAMES: the libraries of CUDA's that the archive of paper says it needs.
needs() { sed -i "s/^needs=.*/needs=$*/" paper/manifest; }

# No process of a run is left.
nothing_left() {
  local left
  left=$(grep -lsz "^GPU_CHECK_MARK=" /proc/[0-9]*/environ | xargs -r grep -lsz "^OF_TEST=$work\$" || true)
  [[ -z $left ]] || fail "processes are left: $left"
}

# An archive of paper, and a machine of paper with a GPU.
make_paper() {
  mkdir -p paper/bin paper/tests/{kernels,products,ranks,messages} paper/lib machine/bin machine/lib
  printf '%s\n' format=1 version=0.1.0 commit=abc preset=cuda-hopper built_for=cuda needs=libcudart.so.13 \
    >paper/manifest
  cp -r "$root/inputs" "$root/scripts" paper/
  local name
  for name in bin/kozero bin/mpiexec tests/kernels/a_test tests/products/a_test tests/ranks/a_test tests/messages/a_test; do
    cp "$here/program.sh" "paper/$name"
  done
  cp "$here/program.sh" machine/bin/compute-sanitizer
  cp "$here/program.sh" machine/bin/nvidia-smi
  touch machine/lib/lib{cuda.so.1,cudart.so.13}
  export PATH=$work/machine/bin:$PATH LD_LIBRARY_PATH=$work/machine/lib
}

packs_and_runs() {
  XZ_OPT=-0 "$root/scripts/gpu-check" pack --build-dir "$build_dir" --out archive.tar >output 2>&1 || fail "pack"
  (($(stat -c %s archive.tar) < 55000000)) || fail "the archive has $(stat -c %s archive.tar) bytes"
  run 0 archive.tar out --only libraries
  is passed libraries
  is "not run" "$(but libraries)"
  tar -xf archive.tar
  ./gpu-check/unpack
  for program in gpu-check/tests/kernels/*; do
    case $program in *-gelu_test | *-row_reduce_test) ;; *) rm "$program" ;; esac
  done
  OMP_NUM_THREADS=1 run 0 gpu-check out --only kernels
  is passed kernels
  grep -q 'All tests passed' out/gpu-check.log || fail "the log lacks what tests say"
}

all_pass() {
  run 0 paper out
  is passed "${steps[@]}"
  says "9 of 9 steps passed; goals: 3 met, 0 missed"
  says "NVIDIA of Paper"
  says "copy, pinned, up, 64 MiB *55 GB/s"
  nothing_left
}

missed_goals_are_no_failures() {
  FLOPS=4e14 LAYERS_WITH_OFFLOAD=8 RATE_WITH_DELAY=129 run 0 paper out
  is passed "${steps[@]}"
  says "9 of 9 steps passed; goals: 0 met, 3 missed"
  says "gpt2-1.5b, of 989 TFLOP/s *40.44 % *goal 45: missed"
}

a_failure_costs_one_step() {
  FAULTS=fail:kernels run 1 paper out
  is failed kernels
  mapfile -t others < <(but kernels)
  is passed "${others[@]}"
  says 'exit status 3: kozero: the kernels "fails"; look \\ elsewhere'
}

each_step_fails() {
  FAULTS=${steps[*]/#/fail:} run 1 paper out
  is failed "${steps[@]}"
}

missing_libraries_are_named() {
  rm machine/lib/libcudart.so.13
  needs libcudart.so.99
  run 1 paper out --only libraries
  is failed libraries
  says 'not found: libcudart.so.99'
  touch machine/lib/libcudart.so.13
  needs libcudart.so.13
}

libraries_are_found_in_the_usual_folders() {
  mkdir -p cuda/lib64 first/nvidia/cu13/lib second python
  printf '#!/bin/sh\nprintf "%%s\\n" %s/first %s/second %s/third\n' "$work" "$work" "$work" >python/python3
  chmod +x python/python3
  needs libcudart.so.77 libcublasLt.so.77
  touch cuda/lib64/libcudart.so.77 first/nvidia/cu13/lib/lib{cublasLt.so.77,cuda.so.1}
  PATH=$work/python:$PATH LD_LIBRARY_PATH='' CUDA_HOME=$work/cuda run 0 paper out --only libraries
  is passed libraries
  says "libcudart.so.77 *$work/cuda/lib64/libcudart.so.77"
  says "libcublasLt.so.77 *$work/first/nvidia/cu13/lib/libcublasLt.so.77"
  needs libcudart.so.13
}

a_model_that_did_not_train_meets_no_goal() {
  FAULTS=fail:largest run 1 paper out --only offload
  is failed offload
  says 'parameters with offload *10 times *goal not judged: these did not both train'
}

attention_that_fails_costs_no_other_step() {
  FAULTS=fail:attention run 1 paper out
  is failed products
  mapfile -t others < <(but products)
  is passed "${others[@]}"
  says 'gpt2-1.5b, of 989 TFLOP/s *55.61 % *goal not judged: attention by the tile kernel'
  grep -q 'bench step .*model.attention=tiles' out/gpu-check.log || fail "updates do not take the tile kernel"
}

no_test_is_no_success() {
  FAULTS=silent:products run 1 paper out --only products
  is failed products
  rm paper/tests/products/a_test
  run 1 paper out --only products
  is "not run" products
  cp "$here/program.sh" paper/tests/products/a_test
}

each_step_hangs() {
  FAULTS="${steps[*]/#/hang:} stubborn:kernels" run 1 paper out --step-limit 1
  is "timed out" "${steps[@]}"
  nothing_left
}

what_is_not_reached_has_not_run() {
  local limit
  # On a machine that is full the first step may need longer than a few seconds.
  for limit in 4 16 64; do
    FAULTS=hang:kernels run 1 paper out --limit "$limit"
    if grep -q '"step": "kernels", "state": "timed out"' out/gpu-check.json; then break; fi
  done
  is passed libraries
  is "timed out" kernels
  mapfile -t others < <(but libraries kernels)
  is "not run" "${others[@]}"
  says "the $limit s of all steps were used up"
  nothing_left
}

one_step_is_run() {
  run 0 paper out --only rates
  is passed rates
  mapfile -t others < <(but rates)
  is "not run" "${others[@]}"
  says 'not asked for: --only rates'
}

a_signal_leaves_a_report() {
  FAULTS=hang:products "$root/scripts/gpu-check" run paper out >output 2>&1 &
  local pid=$! tries
  for tries in {1..1200}; do
    if grep -qs '"step": "kernels", "state": "passed"' out/gpu-check.json; then break; fi
    sleep 0.1
  done
  ((tries < 1200)) || fail "no report after kernels"
  kill -TERM "$pid"
  if wait "$pid"; then fail "a run that was stopped ended well"; fi
  is passed libraries kernels
  is "not run" products selftest training offload rates sanitizer
  nothing_left
}

without_a_sanitizer_it_has_not_run() {
  rm machine/bin/compute-sanitizer
  if command -v compute-sanitizer || compgen -G '/usr/local/cuda*/bin/compute-sanitizer'; then return; fi
  run 1 paper out --only sanitizer
  is "not run" sanitizer
  says 'compute-sanitizer not found'
}

packs_and_runs
make_paper
for case in all_pass missed_goals_are_no_failures a_failure_costs_one_step each_step_fails missing_libraries_are_named \
  libraries_are_found_in_the_usual_folders a_model_that_did_not_train_meets_no_goal \
  attention_that_fails_costs_no_other_step \
  no_test_is_no_success each_step_hangs what_is_not_reached_has_not_run one_step_is_run a_signal_leaves_a_report \
  without_a_sanitizer_it_has_not_run; do
  printf '== %s, after %d s\n' "${case//_/ }" "$SECONDS"
  "$case"
done
printf '== done, after %d s\n' "$SECONDS"
