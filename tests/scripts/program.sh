#!/usr/bin/env bash
# In the place of a program in gpu-check's archive: says what it would, or fails or hangs as FAULTS asks: words such as
# fail:kernels, hang:rates, stubborn:offload (hangs, and does not heed TERM), silent:products (runs no test); beside the
# steps there are `attention`, which the step products measures, and `largest`, the largest models of the step offload.
set -euo pipefail
name=$(basename -- "$0")

# Prints the step that the program is started in.
step() {
  case "$name $*" in
    *_test*) basename -- "$(dirname -- "$0")" ;;
    *parallel.transport=nccl*) echo messages ;;
    "nvidia-smi "* | "kozero --version"*) echo libraries ;;
    "kozero selftest "*) echo selftest ;;
    "kozero bench step "*offload-capacity*) echo largest ;;
    "kozero plan "* | "kozero bench step "*offload*) echo offload ;;
    "kozero bench step "*) echo training ;;
    "kozero bench attention "*gpt2-1.5b*) echo rates ;;
    "kozero bench attention "*) echo attention ;;
    "kozero bench "*) echo rates ;;
    *) echo sanitizer ;;
  esac
}

# Prints the value of a KEY=VALUE among the arguments.
key() { printf '%s\n' "${@:2}" | sed -n "s/^$1=//p" | tail -n 1; }

# One layer fits without offload, ten with it.
plan() {
  local layers most=1
  layers=$(key model.layers "$@")
  [[ $(key offload.optimizer "$@") == none ]] || most=${LAYERS_WITH_OFFLOAD-10}
  printf '{\n  "device_bytes": 1,\n  "fits": %s,\n  "host_bytes": 1048576,\n  "parameters": %d\n}\n' \
    "$( ((layers <= most)) && echo true || echo false)" $((1000 * layers))
}

bench_step() {
  local rate=100
  [[ $* != *delayed* ]] || rate=${RATE_WITH_DELAY-150}
  cat <<END
{
  "benchmark": "step",
  "flops_per_s": ${FLOPS-5.5e14},
  "share_of_products": 0.75,
  "time": [
    {
      "busy_seconds": 0.5,
      "part": "device",
      "seconds": 0.4,
      "share": 0.4
    },
    {
      "busy_seconds": 0.6,
      "part": "host",
      "seconds": 0.6,
      "share": 0.6
    }
  ],
  "tokens_per_s": $rate.0,
  "warnings": []
}
END
}

bench() {
  echo "[1700000000.000000] [node:1:0] ucp_context.c:1849 UCX  WARN  what libraries say"
  cat <<END
{
  "benchmark": "$1",
  "flops_per_s": 7e14,
  "memory": [
    {
      "bytes_per_s": 4e12,
      "memory": "device"
    }
  ],
  "rows": [
    {
      "bytes": 67108864,
      "bytes_per_s": 5.5e10,
      "compute": "bf16",
      "copy": "pinned, up",
      "flops_per_s": 6e14,
      "gb_per_s": 100.5,
      "gradients": "fp32",
      "memory": "host",
      "pass": "forward",
      "product": "fc",
      "share": 0.98,
      "threads": 4
    }
  ]
}
END
}

step=$(step "$@")
case " ${FAULTS-} " in
  *" fail:$step "*) echo "kozero: the $step \"fails\"; look \\ elsewhere" >&2 && exit 3 ;;
  *" hang:$step "*) exec sleep 1000 ;;
  *" stubborn:$step "*)
    trap '' TERM
    setsid sleep 1000 &
    sleep 1000
    ;;
  *" silent:$step "*) echo "No tests ran" && exit 0 ;;
esac

case "$name $*" in
  "mpiexec "*)
    while [[ $1 != -n ]]; do shift; done
    "${@:3}"
    ;;
  "compute-sanitizer "*)
    while [[ $1 != */kozero ]]; do shift; done
    "$@"
    echo "========= ERROR SUMMARY: 0 errors"
    ;;
  "nvidia-smi "*) echo "NVIDIA of Paper, 1.0, 80 GiB" ;;
  "kozero --version") echo 0.1.0 ;;
  "kozero plan "*) plan "$@" ;;
  "kozero bench step "*) bench_step "$@" ;;
  "kozero bench "*) bench "$2" ;;
  "kozero train "*parallel.transport=nccl*)
    echo "kozero: parallel.transport is nccl and cannot be (ranks 0 and 1 on host paper share device GPU-1)" >&2
    exit 2
    ;;
  "kozero "*) ;;
  *) echo "All tests passed (1 assertion in 1 test case)" ;;
esac
