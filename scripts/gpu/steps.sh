# The steps of gpu-check. To be sourced by bash.
# shellcheck shell=bash disable=SC2154

peak=989e12       # FLOP/s of an H100 or H200 in bf16, dense, by NVIDIA's data sheets
least_share=45    # per cent of it, of updates of gpt2-1.5b
least_growth=9    # times the parameters with offload
least_gain=1.3    # times the tokens a second with a delay, where the host has half of an update's time

# Prints the steps in their order: name, limit in seconds, what it is.
step_table() {
  cat <<END
libraries  30  libraries and versions; whether programs start
kernels    60  tests of kernels and lanes on the device
products   50  matrix products and attention, against an oracle in fp64 and each other
selftest   90  stages, offload and delay against each other, on 1 rank, then 2 ranks staged on one GPU
messages   30  NCCL on one rank: connects, gathers, sends to itself, aborts; sums over ranks by kernels
training   75  updates of gpt2-124m and gpt2-1.5b (goal: $least_share % of ${peak/e12/ TFLOP\/s} at 1.5b)
offload   120  delayed updates (goal: $least_gain times), the largest model in 8 GiB (goal: $least_growth times)
rates      45  link, memory, matrix products, attention, AdamW
sanitizer  45  compute-sanitizer on a small deck
END
}

print_steps() { step_table; }

# What runs is small on machines without a GPU: its figures mean nothing.
is_small() { [[ $(manifest built_for) != cuda ]]; }
attention=() # keys for decks: the tile kernel's, once the library's attention has failed
small_model=(model.layers=2 model.heads=2 model.width=64 model.context=64 batch.micro=1 batch.accumulate=1)

step_libraries() {
  local name tool missing='' absent line number=0
  if [[ $(manifest built_for) == cuda ]]; then
    tool=$(find_tool nvidia-smi)
    if [[ -z $tool ]]; then
      note_fact "GPU" "unknown: there is no nvidia-smi"
    elif check "nvidia-smi" "${in_environment[@]}" "$tool" --format=csv,noheader \
      --query-gpu=name,driver_version,memory.total,persistence_mode,compute_mode,clocks.max.sm,power.limit; then
      note_fact "GPU" "$(<"$scratch/stdout")"
    fi
    for name in $(manifest needs) libcuda.so.1; do [[ -n ${cuda_library[$name]-} ]] || missing+=" $name"; done
    if [[ -z $missing ]]; then
      note_check "CUDA's libraries" passed '' 0
    else
      note_check "CUDA's libraries" failed "not found:$missing" 0
    fi
  fi
  absent=$(not_found)
  if [[ -z $absent ]]; then
    note_check "libraries of all programs" passed '' 0
  else
    note_check "libraries of all programs" failed "$absent" 0
  fi
  if check "kozero --version" "${in_environment[@]}" "$archive/bin/kozero" --version; then
    while IFS= read -r line; do
      number=$((number + 1))
      note_fact "kozero, line $number" "$line"
    done <"$scratch/stdout"
  fi
  note_fact "system" "$(uname -sr), $(getconf GNU_LIBC_VERSION 2>/dev/null || echo 'no glibc')"
  note_fact "cores" "$(cores)"
  note_fact "host memory" "$(awk '/^Mem(Total|Available)/ { printf "%s %.1f GiB ", $1, $2 / 1048576 }' /proc/meminfo)"
  note_fact "libstdc++, libgomp" "$compiler_libraries"
  for name in "${!cuda_library[@]}"; do note_fact "$name" "$(readlink -f -- "${cuda_library[$name]}")"; done
}

# Runs the tests of a folder in the order of their numbers, after the launcher given, if any; their names in the table
# end in the second argument. One that hangs leaves time to the others: of what the step has left, the last one gets
# all, each of n a part of 2/(n+1), and ten seconds at least.
check_tests() {
  local test name left part_deadline_ms tests=("$archive/tests/$1"/*)
  local after=${#tests[@]}
  if [[ ! -e ${tests[0]} ]]; then
    note_check "tests$2" "not run" "the archive has none" 0
    return
  fi
  for test in "${tests[@]}"; do
    name=${test##*/}
    now_ms
    left=$(((deadline_ms - REPLY) * 2 / (after + 1)))
    part_deadline_ms=$((REPLY + (left > 10000 ? left : 10000)))
    ((part_deadline_ms < deadline_ms)) || part_deadline_ms=$deadline_ms
    check_test "${name#[0-9][0-9]-}$2" "${in_environment[@]}" "${@:3}" "$test" || true
    after=$((after - 1))
  done
}

step_kernels() { check_tests kernels ''; }

# Where attention as decks have it fails, the steps that follow take the tile kernel, which tells at least the rest.
step_products() {
  local deck=(--deck "$archive/inputs/gpt2-124m.yaml" model.context=1024 batch.micro=8)
  if is_small; then deck+=("${small_model[@]}"); fi
  check_tests products ''
  if ! check_bench "attention of gpt2-124m" attention "${deck[@]}" && [[ $ended != "not run" ]]; then
    attention=(model.attention=tiles)
    note_fact "attention from here on" "by the tile kernel, as the library's has failed"
  fi
}

step_selftest() {
  local two=("$archive/bin/mpiexec" -launcher fork -rmk user -n 2)
  local selftest=("$archive/bin/kozero" selftest "$archive/inputs/quickstart.yaml" "data.train=$scratch/text"
    "run.dir=$scratch/run" data.validation=0 evaluate.every=0 batch.micro=2 batch.accumulate=2 model.layers=2
    model.heads=2 "${attention[@]}" --updates 3)
  if is_small; then selftest+=(model.width=32 model.context=32); fi
  check "selftest, 1 rank" "${in_environment[@]}" "${selftest[@]}" || true
  check "selftest, 2 ranks" "${in_environment[@]}" "${two[@]}" "${selftest[@]}" || true
  check_tests ranks ", 2 ranks" "${two[@]}"
}

# Two ranks of one device do not exchange by NCCL, and say so.
step_messages() {
  local two=("$archive/bin/mpiexec" -launcher fork -rmk user -n 2) refused='ranks 0 and 1 on host'
  check_tests messages ''
  is_small && return
  run_limited "${in_environment[@]}" "${two[@]}" "$archive/bin/kozero" train "$archive/inputs/quickstart.yaml" \
    "data.train=$scratch/text" "run.dir=$scratch/refused" parallel.transport=nccl --dry-run
  if [[ $ended == failed ]] && grep -q "$refused.*share device" "$scratch/stdout" "$scratch/stderr"; then
    ended=passed why=
  elif [[ $ended == passed ]]; then
    ended=failed why="two ranks of one device were let exchange by NCCL"
  fi
  log_command "NCCL is refused to 2 ranks of one device"
  note_check "NCCL is refused to 2 ranks of one device" "$ended" "$why" "$took_ms"
}

# Prints a value at the top of an object that kozero printed.
json_value() { sed -n "s/^  \"$2\": \"\?\([^\",]*\)\"\?,\?\$/\1/p" "$1"; }

# Prints the rows of an array of such an object, the values of the keys that follow with tabs between them.
json_rows() {
  awk -v array="$2" -v keys="${*:3}" '
    BEGIN { n = split(keys, key, " ") }
    $0 ~ "^  \"" array "\": \\[" { inside = 1 }
    /^  \]/ { inside = 0 }
    inside && match($0, /^ +"[a-z_0-9]+": /) {
      name = substr($0, RSTART, RLENGTH)
      gsub(/[ ":]/, "", name)
      value[name] = substr($0, RLENGTH + 1)
      gsub(/^"|"?,?$/, "", value[name])
    }
    inside && /^    \}/ {
      for (i = 1; i <= n; ++i) printf "%s%s", value[key[i]], i < n ? "\t" : "\n"
      split("", value)
    }' "$1"
}

# Prints the value of an expression of awk.
calculate() { awk "BEGIN { printf \"%.4g\", $1 }" 2>/dev/null || echo unknown; }

# A figure of a number that JSON may not have: name, number, factor, unit, goal.
note_scaled() {
  if [[ $2 =~ ^[0-9] ]]; then note_figure "$1" "$(calculate "$2 * $3")" "$4" "${5-none}"; fi
}

# Why a goal does not count, if it does not; else the goal.
goal_here() {
  if is_small; then
    echo "small sizes, no GPU"
  elif ((${#attention[@]})); then
    echo "attention by the tile kernel"
  else
    printf '%s\n' "$1"
  fi
}

# Times updates: a name, further keys. What was found is in $scratch/NAME.json.
time_updates() {
  local name=$1 file="$scratch/$1.json" part share deck
  deck=("$archive/inputs/gpt2-124m.yaml" "data.train=$scratch/tokens.bin" data.format=uint16 data.validation=0
    evaluate.every=0 "run.dir=$scratch/run" model.context=1024 "${attention[@]}" "${@:2}")
  if is_small; then deck+=("${small_model[@]}"); fi
  check_json "$name" "$file" "${in_environment[@]}" "$archive/bin/kozero" bench step "${deck[@]}" --updates 2 --json ||
    return 1
  note_scaled "$name, tokens" "$(json_value "$file" tokens_per_s)" 1 "1/s"
  note_scaled "$name, of the same products alone" "$(json_value "$file" share_of_products)" 100 %
  while IFS=$'\t' read -r part share; do
    note_scaled "$name, time of an update: $part" "$share" 100 %
  done < <(json_rows "$file" time part share)
}

step_training() {
  local name goal rate
  for name in gpt2-124m gpt2-1.5b; do
    goal=none
    if [[ $name == gpt2-1.5b ]]; then goal=$(goal_here "$least_share"); fi
    time_updates "$name" "model.size=$name" batch.micro=8 batch.accumulate=2 || continue
    rate=$(json_value "$scratch/$name.json" flops_per_s)
    note_scaled "$name, of ${peak/e12/ TFLOP\/s}" "$rate" "100 / $peak" % "$goal"
  done
}

# Runs a benchmark as a check: its name there, kozero's, its arguments. What it printed is in $scratch/BENCH.json.
check_bench() {
  local pace=()
  if is_small; then pace=(--quick); fi
  check_json "$1" "$scratch/$2.json" "${in_environment[@]}" "$archive/bin/kozero" bench "${@:2}" --json "${pace[@]}"
}

step_rates() {
  local name pass rate bytes share memory threads compute gradients params=50M
  local deck=(--deck "$archive/inputs/gpt2-124m.yaml" model.size=gpt2-1.5b model.context=1024 batch.micro=8
    "${attention[@]}")
  if is_small; then deck+=("${small_model[@]}") params=1M; fi
  if check_bench "link and memory" link; then
    while IFS=$'\t' read -r name bytes rate; do
      note_scaled "copy, $name, $((bytes >> 20)) MiB" "$rate" 1e-9 GB/s
    done < <(json_rows "$scratch/link.json" rows copy bytes bytes_per_s)
    while IFS=$'\t' read -r name rate; do
      note_scaled "memory of the $name" "$rate" 1e-9 GB/s
    done < <(json_rows "$scratch/link.json" memory memory bytes_per_s)
  fi
  if check_bench "matrix products" gemm "${deck[@]}"; then
    rate=$(json_value "$scratch/gemm.json" flops_per_s)
    note_scaled "products of gpt2-1.5b as the model has them" "$rate" 1e-12 TFLOP/s
    while IFS=$'\t' read -r name pass rate; do
      note_scaled "product $name, $pass" "$rate" 1e-12 TFLOP/s
    done < <(json_rows "$scratch/gemm.json" rows product pass flops_per_s)
  fi
  if check_bench "attention" attention "${deck[@]}"; then
    while IFS=$'\t' read -r pass rate; do
      note_scaled "attention of gpt2-1.5b, $pass" "$rate" 1e-12 TFLOP/s
    done < <(json_rows "$scratch/attention.json" rows pass flops_per_s)
  fi
  if check_bench "AdamW" adam --params "$params"; then
    while IFS=$'\t' read -r memory threads compute gradients rate share; do
      if [[ $threads != null ]]; then memory+=", $threads threads"; fi
      note_scaled "AdamW, $memory, $compute, gradients $gradients" "$rate" 1 GB/s
      note_scaled "  of what memory gives" "$share" 100 %
    done < <(json_rows "$scratch/adam.json" rows memory threads compute gradients gb_per_s share)
  fi
}

# Updates with AdamW on the host, without and with a delay.
measure_delay() {
  local deck=(model.size=gpt2-1.5b batch.micro=12 batch.accumulate=1 zero.stage=2 precision.gradients=compute
    offload.optimizer=host)
  local name share goal rate delayed_rate
  for name in offload "offload, delayed"; do
    if [[ $name == *delayed ]]; then deck+=(offload.delayed_update.start=1); fi
    time_updates "$name" "${deck[@]}" || return 0
  done
  share=$(json_rows "$scratch/offload.json" time part share | sed -n 's/^host\t//p')
  goal=$(goal_here "$least_gain")
  if awk -v share="$share" 'BEGIN { exit share >= 0.5 }'; then
    goal="the host has $(calculate "100 * $share") %, not half"
  fi
  rate=$(json_value "$scratch/offload.json" tokens_per_s)
  delayed_rate=$(json_value "$scratch/offload, delayed.json" tokens_per_s)
  note_figure "delayed, tokens/s of no delay" "$(calculate "$delayed_rate / $rate")" times "$goal"
}

# Trains a model that fits the limit: its offload, layers, parameters, and MiB of host memory. Succeeds if it trained.
train_largest() {
  local name="$3 parameters, offload $1" available
  available=$(awk '/^MemAvailable/ { printf "%d", $2 / 1024 }' /proc/meminfo)
  if ((${4%.*} > available)); then
    note_check "$name" "not run" "it needs $4 MiB of host memory, $available are available" 0
    return 1
  fi
  check_json "$name" "$scratch/largest.$1.json" "${in_environment[@]}" "$archive/bin/kozero" bench step \
    "$archive/inputs/offload-capacity.yaml" "data.train=$scratch/text" "run.dir=$scratch/run" "${capacity[@]}" \
    "model.layers=$2" "offload.optimizer=$1" "${attention[@]}" --updates 1 --quick --json
}

# The largest models in a device limit, without and with offload, as the plan has it; then they are trained.
measure_capacity() {
  local capacity=(memory.device_limit=8GiB model.width=1280 model.heads=20 precision.gradients=fp32)
  local offload layers parameters host sizes=() goal
  goal=$(goal_here "$least_growth")
  if is_small; then capacity=(memory.device_limit=4MiB precision.gradients=fp32 model.width=64 model.heads=2); fi
  {
    printf '#!/bin/sh\nexec'
    printf ' %q' "${in_environment[@]}" "$archive/bin/kozero"
    printf ' "$@"\n'
  } >"$scratch/kozero"
  chmod +x "$scratch/kozero"
  check "largest models, by plan" env "KOZERO=$scratch/kozero" "TMPDIR=$scratch" \
    bash "$archive/scripts/offload-capacity" --plan "${capacity[@]}" || return 0
  cp -- "$scratch/stdout" "$scratch/largest"
  while read -r offload layers parameters _ _ host _; do
    [[ $offload == none || $offload == host ]] || continue
    sizes+=("$parameters")
    train_largest "$offload" "$layers" "$parameters" "$host" || goal="these did not both train"
  done <"$scratch/largest"
  note_figure "parameters with offload" "$(calculate "${sizes[1]-0} / ${sizes[0]-0}")" times "$goal"
}

step_offload() {
  measure_delay
  measure_capacity
}

step_sanitizer() {
  local tool
  tool=$(find_tool compute-sanitizer)
  if is_small; then
    note_check "memcheck" "not run" "the build is for $(manifest built_for), not CUDA" 0
  elif [[ -z $tool ]]; then
    note_check "memcheck" "not run" "compute-sanitizer not found" 0
  else
    run_limited "${in_environment[@]}" "$tool" --tool memcheck --error-exitcode 99 "$archive/bin/kozero" train \
      "$archive/inputs/quickstart.yaml" --overwrite "data.train=$scratch/text" "run.dir=$scratch/run" data.validation=0 \
      evaluate.every=0 batch.micro=2 model.layers=2 model.heads=2 "${attention[@]}" run.updates=2 checkpoint.every=0
    if grep -q 'Device not supported' "$scratch/stdout" "$scratch/stderr"; then
      ended="not run" why="the sanitizer does not support this device here"
    elif [[ $ended == passed ]] && ! grep -q 'ERROR SUMMARY: 0 errors' "$scratch/stdout" "$scratch/stderr"; then
      ended=failed why="it does not say that there were no errors"
    fi
    log_command "memcheck" "$tool"
    note_check "memcheck" "$ended" "$why" "$took_ms"
  fi
}
