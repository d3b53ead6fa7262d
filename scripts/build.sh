#!/usr/bin/env bash
# Configures and builds a preset. Shows one counting line; messages of compilers are printed as they come.
# Usage: scripts/build.sh PRESET [TARGET]          PRESET: release, debug, asan-ubsan, tsan, fuzz
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:?build.sh needs the name of a preset}
target=()
[ $# -lt 2 ] || target=(--target "$2")

cmake --preset "$preset" >/dev/null
terminal=0
[ ! -t 1 ] || terminal=1
cmake --build --preset "$preset" "${target[@]}" -j"$(nproc)" | awk -v terminal="$terminal" -v preset="$preset" '
  match($0, /^\[[0-9]+\/[0-9]+\] /) {  # a progress line of ninja
    split(substr($0, 2, RLENGTH - 3), count, "/")
    if (terminal) { printf "\rBuilding build/%s: %d of %d", preset, count[1], count[2]; counting = 1; fflush() }
    else if (int(10 * count[1] / count[2]) != tenths) { tenths = int(10 * count[1] / count[2]); printf "Building build/%s: %d of %d\n", preset, count[1], count[2]; fflush() }
    next
  }
  /^ninja: (Entering|no work)/ { next }
  { if (counting) { printf "\n"; counting = 0 } print; fflush() }
  END { if (counting) printf "\n" }'
