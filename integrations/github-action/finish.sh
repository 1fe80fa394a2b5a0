#!/usr/bin/env bash
# Ends as gpuemu did. Reads EXIT_STATUS, the output of run.sh.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/messages.sh"

[[ $EXIT_STATUS =~ ^[0-9]+$ ]] || refuse "gpuemu was not run: see the steps before this one"
case $EXIT_STATUS in
  0) echo "gpuemu: everything passed" ;;
  1) echo "gpuemu: a validation failed or regressed" ;;
  *) echo "gpuemu: something could not be judged (status $EXIT_STATUS)" ;;
esac
exit "$EXIT_STATUS"
