#!/usr/bin/env bash
# events_test.sh KOZERO: TensorBoard shows of a run what metrics.jsonl has, of one that was resumed and branched off too.
# Leaves with 77 (skipped) where no Python has the package; it is in no release of Debian.
set -euo pipefail
kozero=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
deck=$here/../../inputs/tests/odd.yaml
cache=${KOZERO_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/kozero}

for python in python3 "$cache/python/bin/python" none; do
  if "$python" -c 'import tensorboard' 2>/dev/null; then break; fi
done
if [[ $python == none ]]; then
  echo "no Python here has tensorboard; install it: scripts/bootstrap --python"
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
head -c 1400 "$here/../../CONTRIBUTING.md" >text

# train OVERRIDES…
train() {
  "$kozero" train "$deck" run.dir=run data.train=text data.format=text data.validation=0.1 evaluate.every=2 \
    checkpoint.keep=9 metrics.tensorboard=true "$@" >log 2>&1 || { cat log && exit 1; }
}

# agrees NAME OVERRIDES…: trains, and compares what TensorBoard shows with what was written.
agrees() {
  printf '== %s\n' "$1"
  train "${@:2}"
  "$python" "$here/read_events.py" run
}

agrees "a run" run.updates=6 checkpoint.every=3
agrees "one that goes on" run.updates=8 checkpoint.every=4 --resume
agrees "one that branches off" run.updates=5 checkpoint.every=9 --resume-from run/checkpoints/step-00000003
agrees "back on the former branch" run.updates=10 --resume-from run/checkpoints/step-00000008
train run.updates=12 metrics.tensorboard=false --resume
agrees "one that goes on after a start without events" run.updates=13 --resume
agrees "one that starts anew in its folder" run.updates=3 run.seed=7 --overwrite
