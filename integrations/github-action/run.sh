#!/usr/bin/env bash
# Runs gpuemu once and renders its report in every format. What it ended with is an output that finish.sh ends with,
# so that the reports are published first. Reads INPUT_*, writes to GITHUB_OUTPUT.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/messages.sh"

# is_true NAME VALUE: anything but true and false is an error, not a no.
is_true() {
  case $2 in
    true) return 0 ;;
    false | '') return 1 ;;
    *) refuse "$1 is '$2': give true or false" ;;
  esac
}

# output NAME VALUE: a line break would be the start of another output.
output() {
  [[ $2 != *$'\n'* ]] || refuse "$1 has a line break in it"
  printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
}

# Only read by the steps after this one; checked before anything is run.
is_true comment "$INPUT_COMMENT" || true
is_true upload-sarif "$INPUT_UPLOAD_SARIF" || true

if [[ -n $INPUT_CONFIG ]]; then
  export GPUEMU_CONFIG=$INPUT_CONFIG
fi
if [[ -n $INPUT_PYTHON ]]; then
  GPUEMU_PYTHON=$(command -v "$INPUT_PYTHON") || refuse "there is no Python '$INPUT_PYTHON'"
  # A path from this folder is one from every other.
  [[ $GPUEMU_PYTHON == /* ]] || GPUEMU_PYTHON=$PWD/$GPUEMU_PYTHON
  export GPUEMU_PYTHON
fi

if [[ -n $INPUT_MERGE ]]; then
  for other in "$INPUT_SHARD" "$INPUT_BASELINE" "$INPUT_SEED"; do
    [[ -z $other ]] || refuse "merge joins reports and runs nothing: give shard, baseline and seed to the shards"
  done
  [[ -d $INPUT_MERGE ]] || refuse "merge is '$INPUT_MERGE', which is no folder"
  mapfile -d '' -t reports < <(find "$(realpath "$INPUT_MERGE")" -type f -name report.json -print0 | sort -z)
  ((${#reports[@]} > 0)) || refuse "merge is '$INPUT_MERGE', which holds no report.json"
  command=(report --merge "${reports[@]}")
else
  command=(ci)
  if is_true quick "$INPUT_QUICK"; then
    command+=(--quick)
  fi
  [[ -z $INPUT_SEED ]] || command+=("--seed=$INPUT_SEED")
  [[ -z $INPUT_SHARD ]] || command+=("--shard=$INPUT_SHARD")
  [[ -z $INPUT_BASELINE ]] || command+=("--baseline=$INPUT_BASELINE")
  if is_true fail-on-regression "$INPUT_FAIL_ON_REGRESSION"; then
    if [[ -n $INPUT_BASELINE ]]; then
      command+=(--fail-on-regression)
    else
      message notice "there is no baseline: nothing can regress"
    fi
  fi
fi

# A daemon that a step before has started holds the store. Without one, nothing is left running.
options=()
if ! gpuemu daemon status >/dev/null 2>&1; then
  options+=(--no-daemon)
fi

folder=$(mktemp -d "$RUNNER_TEMP/gpuemu.XXXXXX")
json=$folder/report.json
status=0
gpuemu "${options[@]}" "${command[@]}" --format json --output "$json" || status=$?

if [[ ! -s $json ]]; then
  ((status != 0)) || status=2
  output exit-status "$status"
  message error "gpuemu wrote no report and ended with $status"
  exit "$status"
fi

# render FORMAT OUTPUT FILE: a report that is missing is an error, whatever the run came to.
render() {
  local rendered=0
  gpuemu "${options[@]}" --quiet report --from "$json" --format "$1" --output "$folder/$3" || rendered=$?
  if [[ ! -s $folder/$3 ]] || ((rendered != 0 && rendered != status)); then
    ((status != 0)) || status=2
    message error "the report could not be written as $1 (status $rendered)"
  else
    output "$2" "$folder/$3"
  fi
}

output report-json "$json"
render junit report-junit report.xml
render sarif report-sarif report.sarif
render markdown report-markdown report.md
render html report-html report.html
# The log of the step shows what people read.
gpuemu --quiet report --from "$json" --format text || true

count() {
  jq "[.ops[], .kernels[]? | .status | select(IN(\"passed\", \"expected_failure\") $1)] | length" "$json"
}
passed=$(count '')
failed=$(count '| not')
output passed "$passed"
output failed "$failed"
output folder "$folder"
if [[ -n $INPUT_ARTIFACT ]]; then
  # The name of an artifact has no slash.
  output artifact "$INPUT_ARTIFACT${INPUT_SHARD:+-${INPUT_SHARD/\//-of-}}"
fi
output exit-status "$status"
