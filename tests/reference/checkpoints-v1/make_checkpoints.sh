#!/bin/bash
# make_checkpoints.sh KOZERO: the checkpoints of this folder, made anew by that binary, which must be of commit 4a3c0c7.
set -euo pipefail
kozero=$(realpath "$1")
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A walk with a rule that can be learned: 603 ids below 31, uint16.
python3 -c '
import struct, sys
tokens = [(7 * i + i // 5 % 3) % 31 for i in range(603)]
sys.stdout.buffer.write(struct.pack("<603H", *tokens))' > tokens.bin
cp small.yaml tokens.bin "$work"
cd "$work"

# make NAME RANKS OVERRIDES…: a run of 8 updates that saves after the 4th, then once more from there to the end.
make() {
  local name=$1 ranks=$2
  shift 2
  mpiexec -n "$ranks" "$kozero" train small.yaml run.name="$name" run.dir="$name" "$@" 2> log || { cat log; exit 1; }
  mpiexec -n "$ranks" "$kozero" train small.yaml run.name="$name" run.dir="$name" "$@" \
    --resume-from "$name/checkpoints/step-00000004" 2> log || { cat log; exit 1; }
  rm -rf "${OLDPWD:?}/$name"
  mkdir "$OLDPWD/$name"
  cp -r "$name/metrics.jsonl" "$name/checkpoints/step-00000004" "$OLDPWD/$name"
}

make stage-0 1
make stage-1 2 zero.stage=1 model.layers=2
make stage-2-half-offload 3 zero.stage=2 offload.optimizer=host offload.ratio=0.5
make stage-3-offload 2 zero.stage=3 offload.optimizer=host
make delayed 2 zero.stage=2 offload.optimizer=host offload.delayed_update.start=2
make delayed-bf16 3 zero.stage=3 offload.optimizer=host offload.delayed_update.start=2 \
  precision.compute=bf16 precision.gradients=compute
make fp16 2 zero.stage=1 precision.compute=fp16 precision.loss_scale.initial=1024 precision.loss_scale.window=3
make untied 3 zero.stage=3 model.tied=false
