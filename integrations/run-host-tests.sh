#!/usr/bin/env bash
# Runs a host's own tests with ptyd under it: run-host-tests.sh openhands|swe-rex|openai-agents [arguments of pytest]
#
# It makes an environment of its own in HOST_VENV, a folder that it keeps. Where the source package of the host has no tests,
# HOST_TESTS names the folder that holds the folder `tests` of the host's repository, at the tag that is told.
set -euo pipefail

folder=$(cd "$(dirname "$0")" && pwd)
host=${1:?the name of a host}
shift
python='' repository='' tag='' packages=() options=() files=()
# shellcheck source=/dev/null
source "$folder/$host/host-tests.conf"
venv=${HOST_VENV:-$folder/../target/hosts/$host}

if ! cmp -s "$folder/$host/host-tests.conf" "$venv/stamp"; then
  rm -rf "$venv"
  "$python" -m venv "$venv"
  "$venv/bin/pip" install --quiet "${packages[@]}"
  if [ "${tests_in_source-}" ]; then
    "$venv/bin/pip" download --quiet --no-deps --no-binary :all: --dest "$venv/source" "$tests_in_source"
    tar -xzf "$venv"/source/*.tar.gz -C "$venv/source" --strip-components=1
  fi
  cp "$folder/$host/host-tests.conf" "$venv/stamp"
fi

tests=${HOST_TESTS:-$venv/source}
if [ ! -d "$tests/tests" ]; then
  echo "HOST_TESTS has to name a folder with the tests of $repository at $tag" >&2
  exit 2
fi
sources=("$folder"/../clients/python/src "$folder/$host/src" "$folder")
export PTYD_HOST=$host PYTHONPATH
PYTHONPATH=$(IFS=:; echo "${sources[*]}")
cd "$tests"
exec "$venv/bin/python" -m pytest -p host_suite "${options[@]}" "${files[@]}" "$@"
