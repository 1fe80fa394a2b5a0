#!/usr/bin/env bash
# Makes sure that there is a gpuemu on the search path of the steps that follow. It is never installed by its name, which
# belongs to another project in the public package index.
# Reads INPUT_PACKAGE, INPUT_PYTHON, GITHUB_WORKSPACE.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/messages.sh"

choices="the path of a wheel in the repository, or an address such as git+https://HOST/REPOSITORY@REVISION"
case $INPUT_PACKAGE in
  '' | installed)
    program=$(command -v gpuemu) ||
      refuse "there is no gpuemu on the search path: set the input 'package' to $choices"
    echo "gpuemu is there already: $program"
    exit 0
    ;;
  *://*)
    requirement="gpuemu @ ${INPUT_PACKAGE#gpuemu @ }"
    ;;
  *.whl)
    requirement=$INPUT_PACKAGE
    [[ $requirement == /* ]] || requirement=$GITHUB_WORKSPACE/$requirement
    [[ -f $requirement ]] || refuse "package is '$INPUT_PACKAGE', but there is no file $requirement"
    ;;
  *)
    refuse "package is '$INPUT_PACKAGE': give 'installed', $choices"
    ;;
esac

python=$(command -v "${INPUT_PYTHON:-python3}") ||
  refuse "there is no Python '${INPUT_PYTHON:-python3}': install one, for example with actions/setup-python"
# pip would take another package of this name and version for the one that is asked for.
"$python" -m pip uninstall --disable-pip-version-check --quiet --quiet --yes gpuemu
"$python" -m pip install --disable-pip-version-check "$requirement"

# Only what comes from an index has no record of where it came from: see PEP 610.
folder=$(PYTHONSAFEPATH=1 "$python" -c '
import os
from importlib.metadata import distribution

package = distribution("gpuemu")
programs = [file.locate() for file in package.files or () if file.name == "gpuemu" and file.parent.name == "bin"]
if programs and package.read_text("direct_url.json"):
    print(os.path.normpath(programs[0].parent))
')
[[ -n $folder && -x $folder/gpuemu ]] || refuse "pip has not installed gpuemu from $INPUT_PACKAGE into $python"
printf '%s\n' "$folder" >>"$GITHUB_PATH"
echo "installed $("$folder/gpuemu" --version) in $folder"
