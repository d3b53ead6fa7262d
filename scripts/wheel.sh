#!/usr/bin/env bash
# Builds the Python wheel into dist/: one for every Python from 3.10 on, with all libraries that it needs inside. Its tag
# says for which glibc it is: that of this machine.
# Usage: scripts/wheel.sh [PYTHON]          PYTHON: an interpreter with pip and venv; python3 otherwise.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

python=${1:-python3}
tools=build/wheel-tools
[ -x "$tools/bin/pip" ] || "$python" -m venv "$tools"
"$tools/bin/pip" install --quiet --requirement python/requirements-wheel.txt

# The compiler that other builds use, so that ccache knows its results.
export CC=${CC:-cc} CXX=${CXX:-c++}
rm -rf build/wheel-raw
"$tools/bin/pip" wheel --quiet --no-deps --wheel-dir build/wheel-raw .
mkdir -p dist
PATH="$root/$tools/bin:$PATH" "$tools/bin/auditwheel" repair --wheel-dir dist build/wheel-raw/gradloom-*.whl
ls -l dist/gradloom-*.whl
