#!/usr/bin/env bash
# Tests the Python package twice: with Debian's Python and packages, and with the pinned ones of
# python/requirements-test.txt in a virtual environment under build/, which also checks types. Needs a built libgradloom.so.
# Usage: scripts/test_python.sh [--debian | --pinned] [arguments for pytest, such as -k kan]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

which=both
case "${1:-}" in
  --debian | --pinned)
    which=${1#--}
    shift
    ;;
esac
export GRADLOOM_LIBRARY=${GRADLOOM_LIBRARY:-$root/build/release/libgradloom.so}
[ -f "$GRADLOOM_LIBRARY" ] || {
  printf 'test_python: %s is not built: cmake --build --preset release --target gradloom_capi\n' "$GRADLOOM_LIBRARY" >&2
  exit 1
}
export PYTHONDONTWRITEBYTECODE=1

if [ "$which" != pinned ]; then
  printf -- '-- Debian: %s\n' "$(/usr/bin/python3 --version)"
  PYTHONPATH=$root/python /usr/bin/python3 -m pytest -p no:cacheprovider -q -rs "$@"
fi
if [ "$which" != debian ]; then
  venv=build/python-pypi
  [ -x "$venv/bin/pip" ] || /usr/bin/python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --requirement python/requirements-test.txt
  # As an installed package is, so that networkx finds the backend.
  "$venv/bin/python" python/link_package.py
  printf -- '-- pinned: %s\n' "$("$venv/bin/python" --version)"
  "$venv/bin/mypy"
  "$venv/bin/python" -m pytest -p no:cacheprovider -q -rs "$@"
fi
