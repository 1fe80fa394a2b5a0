#!/usr/bin/env bash
# Makes sure that there is a gpuemu on the search path of the steps that follow.
# Reads INPUT_VERSION, INPUT_PYTHON.
set -euo pipefail

# shellcheck source-path=SCRIPTDIR
source "$(dirname "${BASH_SOURCE[0]}")/messages.sh"

# The version of the gpuemu on the search path; nothing where there is none.
version_there() {
  if command -v gpuemu >/dev/null; then
    gpuemu --version | awk '{ print $NF }'
  fi
}

there=$(version_there)
case $INPUT_VERSION in
  installed)
    [[ -n $there ]] || refuse "version is 'installed', but there is no gpuemu on the search path"
    ;;
  '')
    requirement=gpuemu
    ;;
  *)
    [[ $INPUT_VERSION =~ ^[0-9][0-9A-Za-z.+!-]*$ ]] ||
      refuse "version is '$INPUT_VERSION': give a version such as 0.1.0, 'installed' or nothing"
    [[ $there == "$INPUT_VERSION" ]] || there=
    requirement=gpuemu==$INPUT_VERSION
    ;;
esac
if [[ -n $there ]]; then
  echo "gpuemu $there is there already: $(command -v gpuemu)"
  exit 0
fi

python=$(command -v "${INPUT_PYTHON:-python3}") ||
  refuse "there is no Python '${INPUT_PYTHON:-python3}': install one, for example with actions/setup-python"
"$python" -m pip install --disable-pip-version-check "$requirement"

# pip installs for the user where it may not write to the folders of Python itself.
folders=$("$python" -c '
import sysconfig
print(sysconfig.get_path("scripts"))
print(sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user")))
')
while IFS= read -r folder; do
  if [[ -x $folder/gpuemu ]]; then
    printf '%s\n' "$folder" >>"$GITHUB_PATH"
    echo "installed $("$folder/gpuemu" --version) in $folder"
    exit 0
  fi
done <<<"$folders"
refuse "pip has installed $requirement, but no program gpuemu"
