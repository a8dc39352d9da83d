#!/usr/bin/env bash
# reader_test.sh KOZERO MPIEXEC -n: what read_checkpoint.py, written from the pages, computes of the program's
# checkpoints is what the program said; and it finds what is wrong. Leaves with 77 (skipped) where no Python has the
# reader's modules; with CI set that is an error.
set -euo pipefail
kozero=$(realpath "$1")
launcher=("${@:2}")
here=$(realpath "$(dirname "$0")")
former=$here/checkpoints-v1
deck=$here/../../inputs/tests/odd.yaml

# The default Python may be another than the one whose modules the system's packages are.
for python in python3 /usr/bin/python3 none; do
  if "$python" -c 'import h5py, numpy, xxhash' 2>/dev/null; then break; fi
done
if [[ $python == none ]]; then
  echo "no Python here has h5py, numpy and xxhash (the reader needs them); install them: scripts/bootstrap --python"
  [[ -z ${CI-} ]] || exit 1
  exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

# Prints what went wrong and leaves.
fail() {
  printf 'FAILED: %s\n' "$*"
  exit 1
}

# agrees NAME ARGUMENTS…: the reader agrees with the program.
agrees() {
  printf '== %s\n' "$1"
  "$python" "$here/read_checkpoint.py" "${@:2}" | tee output || fail "$1"
}

# differs WHAT ARGUMENTS…: the reader finds it, and leaves with status 1.
differs() {
  local status=0
  printf '== wrong: %s\n' "$1"
  "$python" "$here/read_checkpoint.py" "${@:2}" >output 2>&1 || status=$?
  cat output
  if ((status != 1)) || ! grep "^$1 .* differ$" output >/dev/null; then fail "$1 was not found (status $status)"; fi
}

# train NAME RANKS OVERRIDES…: a run of the odd deck.
train() {
  "${launcher[@]}" "$2" "$kozero" train "$deck" run.dir="$1" "${@:3}" >log 2>&1 || { cat log && fail "$1"; }
}

# 1400 bytes are 42 windows: 4 are held out, and the batch after the third update begins an epoch.
mkdir data
head -c 1400 "$here/../../CONTRIBUTING.md" >data/text
"$python" -c '
import numpy as np
ids = np.array([(7 * i + i // 5 % 3 + i * i % 4) % 257 for i in range(1203)])
ids.astype("<u4").tofile("data/ids")
header = np.zeros(256, "<i4")
header[:3] = 20240520, 1, ids.size
with open("data/llmc.bin", "wb") as file:
    file.write(header.tobytes() + ids.astype("<u2").tobytes())
header[:3] = 20240801, 7, 500
with open("data/held-out", "wb") as file:
    file.write(header.tobytes() + ids[:500].astype("<u4").tobytes())'

train first 2 run.updates=0 data.train=data/text data.format=auto data.validation=0.1 zero.stage=3 \
  offload.optimizer=host model.layers=3 model.tied=false
agrees "first values" first/checkpoints/latest
grep '^first values  *largest difference' output >/dev/null || fail "first values were not compared"

train text 2 run.updates=6 checkpoint.every=3 evaluate.every=3 batch.accumulate=3 data.train=data/text \
  data.format=text data.validation=0.1 zero.stage=3 offload.optimizer=host
agrees "text, after 3 updates" text/checkpoints/step-00000003 --train 0 37 --held-out 3
(($(grep -c " loss .* the run's" output) == 2)) || fail "two losses were not compared"
agrees "text, after all" text/checkpoints/step-00000006

train llmc 3 run.updates=6 checkpoint.every=3 evaluate.every=3 evaluate.batches=1 data.train=data/llmc.bin \
  data.format=auto data.validation=data/held-out zero.stage=2 offload.optimizer=host offload.ratio=0.5 \
  offload.delayed_update.start=2 precision.compute=bf16 precision.gradients=compute model.layers=2 \
  model.tied=false run.name='"a # name"'
agrees "llm.c, bf16, delayed" llmc/checkpoints/step-00000003
(($(grep -c " loss .* the run's" output) == 2)) || fail "two losses were not compared"

train ids 1 run.updates=2 checkpoint.every=1 data.train=data/ids data.format=uint32 precision.compute=fp16
agrees "uint32, fp16, one rank" ids/checkpoints/step-00000001

grep '^tensors.h5  *shows .* arrays whole$' output >/dev/null || fail "tensors.h5 was not compared"

# As any tool sees it, wherever the run has been moved.
if command -v h5ls >/dev/null; then
  mv text moved
  h5ls -r moved/checkpoints/latest/tensors.h5 >output
  grep '^/parameters/wte.weight  *Dataset {257, ' output >/dev/null || fail "h5ls does not see /parameters/wte.weight"
  grep '^/optimizer/m/h.0.mlp.fc.bias  *Dataset ' output >/dev/null || fail "h5ls does not see the moments"
  mv moved text
fi

for folder in "$former"/*/; do
  agrees "version 1, $(basename "$folder")" "$folder/step-00000004" --metrics "$folder/metrics.jsonl" \
    --data "$former/tokens.bin"
  grep "^its loss .* the run's" output >/dev/null || fail "the loss was not compared"
done

# What is wrong is found.
sed 's/e/o/g' data/text >data/other
differs "its loss" text/checkpoints/step-00000003 --data data/other
differs "training data" text/checkpoints/step-00000003 --data data/other
sed 's/"val_loss":\(.\)\.\(.\)/"val_loss":\1.0\2/' text/metrics.jsonl >other.jsonl
differs "held-out loss" text/checkpoints/step-00000003 --metrics other.jsonl
"$python" -c '
import h5py
with h5py.File("text/checkpoints/step-00000003/rank-00001.h5", "r+") as file:
    file["h.0.mlp.fc.weight/m"][5] *= 1 + 2**-20'
differs "state_hash" text/checkpoints/step-00000003
grep '^tensors.h5  *shows .* arrays whole$' output >/dev/null || fail "tensors.h5 has elements of its own"
grep 'damaged: rank-00001.h5/h.0.mlp.fc.weight/m ' output >/dev/null || fail "the damaged dataset was not named"
"$python" -c '
import h5py
with h5py.File("first/checkpoints/step-00000000/rank-00000.h5", "r+") as file:
    file["wte.weight/master"][5] *= 1 + 2**-20'
differs "first values" first/checkpoints/step-00000000
