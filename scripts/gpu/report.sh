# What gpu-check finds: steps, their checks, facts and figures, told as they come, as a table and as JSON. To be sourced
# by bash 5. What is small and often called leaves its result in REPLY: a process each would cost the device's time.
# shellcheck shell=bash disable=SC2154

# By the number of a step. A step is what its checks are; without any it did not run.
step_names=() step_state=() step_why=() step_ms=() step_limit_s=()
# By the number of a check, a figure, a fact. …_step: the number of the step that it belongs to.
check_step=() check_name=() check_state=() check_why=() check_ms=() check_output=()
figure_step=() figure_name=() figure_value=() figure_unit=() figure_goal=() figure_met=()
fact_name=() fact_text=()

now_ms() { REPLY=$((${EPOCHREALTIME/[^0-9]/} / 1000)); }
seconds_of() { printf -v REPLY '%d.%d' $(($1 / 1000)) $(($1 % 1000 / 100)); }

# Text in one line of plain characters, not too long.
one_line() {
  local LC_ALL=C text=${1//[[:space:]]/ }
  text=${text//[^ -~]/}
  while [[ $text == *"  "* ]]; do text=${text//  / }; done
  text=${text# }
  REPLY=${text:0:300}
}

# Plans a step, which has not run so far.
add_step() {
  step_names+=("$1") step_limit_s+=("$2") step_state+=("not run") step_why+=("not reached") step_ms+=(0)
}

# A check of the step that runs: name, state, why (may be empty), milliseconds, and a file of JSON that it left, if any.
note_check() {
  one_line "$3"
  check_step+=("$step") check_name+=("$1") check_state+=("$2") check_why+=("$REPLY") check_ms+=("$4")
  check_output+=("${5-}")
  check_row $((${#check_name[@]} - 1))
}

# A figure of the step that runs: name, value, unit, and the least that it is to be: a number, "none", or words that say
# why the goal does not count.
note_figure() {
  local value=$2 goal=${4-none} met=none
  if [[ $goal =~ ^[0-9.]+$ ]]; then
    met=missed
    if awk -v value="$value" -v goal="$goal" 'BEGIN { exit !(value + 0 >= goal) }'; then met=met; fi
  fi
  figure_step+=("$step") figure_name+=("$1") figure_value+=("$value") figure_unit+=("$3")
  figure_goal+=("$goal") figure_met+=("$met")
  figure_row $((${#figure_name[@]} - 1))
}

# What the machine is or has.
note_fact() {
  one_line "$2"
  fact_name+=("$1") fact_text+=("$REPLY")
  printf '  %-20s %s\n' "$1" "$REPLY"
}

# Makes the step that ran what the worst of its checks is.
judge_step() {
  local state i
  step_state[step]="not run" step_why[step]="it had nothing to run"
  for state in passed "not run" "timed out" failed; do
    for i in "${!check_step[@]}"; do
      [[ ${check_step[i]} == "$step" && ${check_state[i]} == "$state" ]] || continue
      step_state[step]=$state step_why[step]=
      [[ $state == passed ]] || step_why[step]="${check_name[i]}${check_why[i]:+: ${check_why[i]}}"
      break
    done
  done
}

# Succeeds if all steps that were asked for have passed.
all_passed() {
  local i
  for i in "${!step_names[@]}"; do
    [[ -z $only_step || ${step_names[i]} == "$only_step" ]] || continue
    [[ ${step_state[i]} == passed ]] || return 1
  done
}

check_format='%-10s %-44s %-9s %7s  %s\n'
# Prints the row of a check.
check_row() {
  seconds_of "${check_ms[$1]}"
  # shellcheck disable=SC2059  # of ours
  printf "$check_format" "${step_names[check_step[$1]]}" "${check_name[$1]}" "${check_state[$1]}" "$REPLY" \
    "${check_why[$1]}"
}

# Prints the row of a figure.
figure_row() {
  local goal=${figure_goal[$1]} verdict=
  case $goal in
    none) ;;
    *[!0-9.]*) verdict="goal not judged: $goal" ;;
    *) verdict="goal $goal: ${figure_met[$1]}" ;;
  esac
  printf '  %-53s %9s %-8s %s\n' "${figure_name[$1]}" "${figure_value[$1]}" "${figure_unit[$1]}" "$verdict"
}

# Prints the row of a step.
step_row() {
  seconds_of "${step_ms[$1]}"
  printf '%-10s %-9s %7s %5s  %s\n' "${step_names[$1]}" "${step_state[$1]}" "$REPLY" "${step_limit_s[$1]}" \
    "${step_why[$1]}"
}

# Counts the values of an array that begins with the second argument.
count_of() {
  local value
  REPLY=0
  for value in "${@:2}"; do [[ $value != "$1" ]] || REPLY=$((REPLY + 1)); done
}

# Prints the report as text.
text_report() {
  local i passed met
  printf '%s\n%s, %s s of at most %s\n\n' "$archive_text" "$began_text" "$1" "$total_s"
  for i in "${!fact_name[@]}"; do printf '%-20s %s\n' "${fact_name[i]}" "${fact_text[i]}"; done
  # shellcheck disable=SC2059  # of ours
  printf "\n$check_format" step check state seconds why
  for i in "${!check_step[@]}"; do check_row "$i"; done
  printf '\nfigures\n'
  for i in "${!figure_name[@]}"; do figure_row "$i"; done
  printf '\n%-10s %-9s %7s %5s  %s\n' step state seconds limit why
  for i in "${!step_names[@]}"; do step_row "$i"; done
  count_of passed "${step_state[@]}" && passed=$REPLY
  count_of met "${figure_met[@]}" && met=$REPLY
  count_of missed "${figure_met[@]}"
  printf '\n%d of %d steps passed; goals: %d met, %d missed\n' "$passed" "${#step_names[@]}" "$met" "$REPLY"
}

# A string of JSON.
json_text() {
  one_line "$1"
  REPLY=${REPLY//\\/\\\\}
  REPLY="\"${REPLY//\"/\\\"}\""
}

# A number of JSON; null for all else.
json_number() {
  if [[ $1 =~ ^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$ ]]; then REPLY=$1; else REPLY=null; fi
}

# Prints the members of an object: key, kind (text, number, raw), value and so on; with commas between them.
json_members() {
  local separator=
  while (($#)); do
    case $2 in
      text) json_text "$3" ;;
      number) json_number "$3" ;;
      raw) REPLY=$3 ;;
    esac
    printf '%s"%s": %s' "$separator" "$1" "$REPLY"
    separator=', '
    shift 3
  done
}

# Prints the objects of the checks of a step.
json_checks() {
  local i separator=
  for i in "${!check_step[@]}"; do
    ((check_step[i] == $1)) || continue
    seconds_of "${check_ms[i]}"
    printf '%s\n      {' "$separator"
    json_members check text "${check_name[i]}" state text "${check_state[i]}" why text "${check_why[i]}" \
      seconds raw "$REPLY"
    if [[ -n ${check_output[i]} ]]; then printf ', "output": %s' "$(<"${check_output[i]}")"; fi
    printf '}'
    separator=,
  done
}

# Prints the objects of the figures of a step.
json_figures() {
  local i met separator=''
  for i in "${!figure_step[@]}"; do
    ((figure_step[i] == $1)) || continue
    case ${figure_met[i]} in met) met=true ;; missed) met=false ;; *) met=null ;; esac
    printf '%s\n      {' "$separator"
    json_members figure text "${figure_name[i]}" value number "${figure_value[i]}" unit text "${figure_unit[i]}" \
      goal number "${figure_goal[i]}" met raw "$met"
    printf '}'
    separator=,
  done
}

# Prints the report as one object.
json_report() {
  local i passed=false separator=''
  if all_passed; then passed=true; fi
  printf '{'
  json_members gpu_check raw 1 archive text "$archive_text" began text "$began_text" seconds raw "$1" \
    limit_seconds raw "$total_s" passed raw "$passed"
  printf ',\n"machine": {'
  for i in "${!fact_name[@]}"; do
    printf '%s' "$separator"
    json_members "${fact_name[i]}" text "${fact_text[i]}"
    separator=', '
  done
  printf '},\n"steps": ['
  separator=
  for i in "${!step_names[@]}"; do
    seconds_of "${step_ms[i]}"
    printf '%s\n  {' "$separator"
    json_members step text "${step_names[i]}" state text "${step_state[i]}" why text "${step_why[i]}" \
      seconds raw "$REPLY" limit_seconds raw "${step_limit_s[i]}"
    printf ',\n    "checks": ['
    json_checks "$i"
    printf '],\n    "figures": ['
    json_figures "$i"
    printf ']}'
    separator=,
  done
  printf ']}\n'
}

# Writes both into the folder of the report, so that a file is whole at any time.
write_report() {
  local seconds
  now_ms
  seconds_of $((REPLY - began_ms))
  seconds=$REPLY
  json_report "$seconds" >"$out_dir/gpu-check.json.partial"
  mv -- "$out_dir/gpu-check.json.partial" "$out_dir/gpu-check.json"
  text_report "$seconds" >"$out_dir/gpu-check.txt.partial"
  mv -- "$out_dir/gpu-check.txt.partial" "$out_dir/gpu-check.txt"
}
