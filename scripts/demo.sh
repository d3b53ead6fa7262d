#!/usr/bin/env bash
# Builds gradloom, trains the demo recipes, and says where their reports are.
# Usage: scripts/demo.sh          Earlier results of the same recipes in runs/demo/ are replaced.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

recipes=(kan-hello kan-special karate game-of-life checkerboard)

echo "This builds gradloom (6 to 8 minutes on 2 cores, once) and trains ${#recipes[@]} recipes (about a minute)."

scripts/install_deps.sh --build
scripts/build.sh release gradloom_cli

summary=()
for name in "${recipes[@]}"; do
  out="runs/demo/$name"
  rm -rf "${root:?}/$out"
  mkdir -p runs/demo
  printf '\n── %s ──\n' "$name"
  start=$SECONDS
  build/release/gradloom train "$name" --out "$out"
  [ -f "$out/report.html" ] || {
    echo "demo: $name trained, but left no $out/report.html" >&2
    exit 1
  }
  summary+=("$(printf '%-16s %4d s   report: %s' "$name" $((SECONDS - start)) "$root/$out/report.html")")
done

printf '\nDone. Open a report in a browser:\n'
printf '  %s\n' "${summary[@]}"
printf '\nNext, your own table: build/release/gradloom train kan-tabular --set data.path=FILE.csv --set data.target=COLUMN\n'
printf 'Automata, graphs and everything else: docs/README.md\n'
