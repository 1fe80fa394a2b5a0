# Messages that GitHub shows beside the run. Sourced by the other scripts.
# shellcheck shell=bash

# message LEVEL TEXT: one annotation; line breaks and percent signs would end or change it.
message() {
  local text=$2
  text=${text//'%'/'%25'}
  text=${text//$'\r'/'%0D'}
  text=${text//$'\n'/'%0A'}
  printf '::%s title=gpuemu::%s\n' "$1" "$text"
}

# refuse TEXT: says what is wrong and ends with 2, as gpuemu does where nothing could be judged.
refuse() {
  message error "$1"
  exit 2
}
