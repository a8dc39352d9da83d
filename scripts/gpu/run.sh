# gpu-check on the machine with the device: goes through the steps within their limits. To be sourced by bash after
# common.sh.
# shellcheck shell=bash disable=SC2034,SC2154
# shellcheck source=scripts/gpu/report.sh
source "$root/scripts/gpu/report.sh"
# shellcheck source=scripts/gpu/libraries.sh
source "$root/scripts/gpu/libraries.sh"
# shellcheck source=scripts/gpu/steps.sh
source "$root/scripts/gpu/steps.sh"

total_limit=300 # seconds
mark=none       # what the processes of the command that runs have in their environment

# Prints the ids of the processes that the command has started, also those that are in no group or session of ours.
marked() { grep -lsz -- "^GPU_CHECK_MARK=$mark\$" /proc/[0-9]*/environ | cut -d / -f 3; }

# Ends what the command has left behind: asks first, and waits two seconds.
stop_marked() {
  local pids tries
  for tries in {0..20}; do
    mapfile -t pids < <(marked)
    ((${#pids[@]})) || return 0
    if ((tries == 0)); then kill -TERM "${pids[@]}" 2>/dev/null || true; fi
    if ((tries == 20)); then kill -KILL "${pids[@]}" 2>/dev/null || true; fi
    sleep 0.1
  done
}

# Prints the last line that says something, of what a command printed; first of all an error of ours.
last_words() {
  grep -hm1 'kozero: ' "$scratch/stderr" || grep -h '[[:alnum:]]' "$scratch"/std{out,err} | tail -n 1 || true
}

# Adds what the command printed to the log.
log_command() {
  seconds_of "$took_ms"
  {
    printf '==> %s: %s: %s, %s s\n    %s\n' "${step_names[step]}" "$1" "$ended" "$REPLY" "${*:2}"
    tail -c 200000 -- "$scratch/stdout" "$scratch/stderr"
    echo
  } >>"$out_dir/gpu-check.log"
}

# Runs a command until it ends or the step's time is up, or that of $part_deadline_ms; no process of it lives longer.
# Sets ended (a state), why, took_ms; what it prints is in $scratch/stdout and stderr.
run_limited() {
  local began pid status=0 tries deadline=${part_deadline_ms:-$deadline_ms}
  now_ms
  began=$REPLY
  ended="not run" why="the time of the step was used up" took_ms=0
  ((began < deadline)) || return 0
  mark=$$-$began-$RANDOM
  env GPU_CHECK_MARK="$mark" "$@" >"$scratch/stdout" 2>"$scratch/stderr" </dev/null &
  pid=$!
  while kill -0 "$pid" 2>/dev/null && ((REPLY < deadline)); do
    sleep 0.05
    now_ms
  done
  if kill -0 "$pid" 2>/dev/null; then
    ended="timed out" why="after $(((REPLY - began + 500) / 1000)) s"
    stop_marked
    # A process that waits within a driver cannot be ended, and is not waited for.
    for tries in {1..30}; do
      kill -0 "$pid" 2>/dev/null || break
      sleep 0.1
      if ((tries == 30)); then why+=", and cannot be ended"; fi
    done
    disown "$pid" 2>/dev/null || true
  else
    wait "$pid" 2>/dev/null || status=$?
    stop_marked
    ended=passed why=
    ((status == 0)) || ended=failed why="exit status $status: $(last_words)"
  fi
  now_ms
  took_ms=$((REPLY - began))
}

# Runs a command as a check. Succeeds if it passed.
check() {
  local name=$1
  run_limited "${@:2}"
  [[ $ended == "not run" ]] || log_command "$@"
  note_check "$name" "$ended" "$why" "$took_ms"
  [[ $ended == passed ]]
}

# The same with a program of Catch2's, which passes only if it says so: none that ran no test does.
check_test() {
  local name=$1
  run_limited "${@:2}"
  [[ $ended == "not run" ]] || log_command "$@"
  if [[ $ended == passed ]] && ! grep -q '^All tests passed' "$scratch/stdout"; then
    ended=failed why="it does not say that all tests passed: $(last_words)"
  fi
  note_check "$name" "$ended" "$why" "$took_ms"
  [[ $ended == passed ]]
}

# The same with a command that prints one object of JSON, which goes to the file $2 and into the report.
check_json() {
  local name=$1 file=$2
  run_limited "${@:3}"
  [[ $ended == "not run" ]] || log_command "$name" "${@:3}"
  if [[ $ended == passed ]]; then
    # Libraries may have printed before and after it.
    sed -n '/^{/,$p' "$scratch/stdout" | sed '/^}/q' >"$file"
    if [[ $(head -c 1 -- "$file") != '{' || $(tail -n 1 -- "$file") != *'}' ]]; then
      ended=failed why="it printed no object of JSON: $(last_words)"
    fi
  fi
  if [[ $ended == passed ]]; then
    note_check "$name" passed '' "$took_ms" "$file"
  else
    note_check "$name" "$ended" "$why" "$took_ms"
    return 1
  fi
}

# Prints what the archive says of itself.
manifest() { sed -n "s/^$1=//p" "$archive/manifest"; }

# Unpacks the archive, or takes the folder that it was unpacked to; checks that it is one.
open_archive() {
  archive=$scratch/gpu-check
  if [[ -d $1 ]]; then
    archive=$(cd -- "$1" && pwd -P)
  else
    tar -xf "$1" -C "$scratch" || die "'$1' is no archive (tar cannot read it); make one with scripts/gpu-check pack"
  fi
  [[ -r $archive/manifest ]] ||
    die "'$1' has no manifest (it is no archive of ours); make one with scripts/gpu-check pack"
  [[ $(manifest format) == 1 ]] ||
    die "'$1' has format '$(manifest format)' (this script reads 1); use the script in the archive"
  [[ -d $archive/bin ]] || bash "$archive/unpack" "$archive" || die "'$1' cannot be unpacked (see above)"
}

# Keeps the driver loaded, which else begins anew for each program, and notes clocks and power beside the figures.
start_monitor() {
  local tool
  tool=$(find_tool nvidia-smi)
  [[ -n $tool && $(manifest built_for) == cuda ]] || return 0
  "${in_environment[@]}" "$tool" dmon -s pucm -d 2 >"$out_dir/gpu-check.dmon" 2>/dev/null </dev/null &
  monitor=$!
}

# Makes data to train on: text, and tokens of GPT-2's vocabulary, whose two bytes are below 196.
make_data() {
  local line
  for line in {1..3000}; do echo "Line $line of a text; its square is $((line * line))."; done >"$scratch/text"
  LC_ALL=C tr '\304-\377' '\000-\073' </dev/urandom 2>/dev/null | head -c 4000000 >"$scratch/tokens.bin" || true
}

# Ends with what was found so far when a signal comes.
interrupted() {
  stop_marked
  if ((step >= 0)); then
    note_check "a signal" "not run" "gpu-check was told to stop" 0
    now_ms
    step_ms[step]=$((REPLY - step_began_ms))
    judge_step
  fi
  write_report
  exit 1
}

clean_up() {
  stop_marked
  [[ -z $monitor ]] || kill "$monitor" 2>/dev/null || true
  rm -rf -- "$scratch"
}

# Runs a step; a fault in the script costs this step alone.
run_step() {
  now_ms
  step=$1 step_began_ms=$REPLY
  deadline_ms=$((step_began_ms + 1000 * step_limit_s[step]))
  ((deadline_ms < total_deadline_ms)) || deadline_ms=$total_deadline_ms
  "step_${step_names[step]}" || true
  now_ms
  step_ms[step]=$((REPLY - step_began_ms))
  judge_step
  step=-1
}

# run ARCHIVE OUT ONLY LIMIT STEP_LIMIT
run() {
  local i name limit
  only_step=$3 total_s=$4 step=-1 monitor=
  export LC_ALL=C # numbers with points
  while read -r name limit _; do add_step "$name" "${5:-$limit}"; done < <(step_table)
  [[ -z $only_step || " ${step_names[*]} " == *" $only_step "* ]] ||
    status=2 die "there is no step '$only_step' (there are ${step_names[*]}); name one of them"
  [[ -e $1 ]] || status=2 die "there is no '$1' (an archive of scripts/gpu-check pack is to be run); name one"
  mkdir -p -- "$2" || status=2 die "the folder '$2' cannot be made; name another"
  out_dir=$(cd -- "$2" && pwd -P)
  now_ms
  began_ms=$REPLY began_text=$(date -u '+%Y-%m-%d %H:%M UTC')
  total_deadline_ms=$((began_ms + 1000 * total_s))

  scratch=$(mktemp -d -- "${TMPDIR:-/tmp}/gpu-check.XXXXXX")
  trap clean_up EXIT
  trap interrupted INT TERM HUP
  open_archive "$1"
  archive_text="gpu-check of kozero $(manifest version), commit $(manifest commit), preset $(manifest preset)"
  archive_text+=", built for $(manifest built_for)"
  : >"$out_dir/gpu-check.log"
  write_report # in the place of an earlier one: nothing has run so far
  make_data
  prepare_libraries
  start_monitor
  printf '%s\n\n' "$archive_text"
  # shellcheck disable=SC2059  # of ours
  printf "$check_format" step check state seconds why
  for i in "${!step_names[@]}"; do
    now_ms
    if [[ -n $only_step && ${step_names[i]} != "$only_step" ]]; then
      step_why[i]="not asked for: --only $only_step"
    elif ((REPLY >= total_deadline_ms)); then
      step_why[i]="the $total_s s of all steps were used up"
    else
      run_step "$i"
    fi
    write_report
  done
  printf '\n'
  cat -- "$out_dir/gpu-check.txt"
  all_passed
}
