#!/usr/bin/env bash
# Builds the fuzz targets with clang and runs each of them; exits with 1 when one finds something.
# Usage: scripts/fuzz.sh [--seconds S] [--jobs N] [TARGET ...]
#   --seconds   for each target; default: 2, a minute for all on one core. For a night: 3600 and more
#   --jobs      targets at once; default: one for each core
# Targets are the names of tests/fuzz/*_fuzz.cpp without _fuzz.cpp; default: all. Inputs that reach new code are kept in
# build/fuzz/corpus and used again; what makes a target fail is left in build/fuzz/found. Installs clang if it is missing.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=2
jobs=$(nproc)
targets=()
while [ $# -gt 0 ]; do
  case "$1" in
    --seconds | --jobs)
      [ $# -gt 1 ] || { printf 'fuzz: %s needs a number\n' "$1" >&2; exit 2; }
      case "$2" in '' | *[!0-9]* | 0) printf 'fuzz: %s needs a number above 0, not %s\n' "$1" "$2" >&2; exit 2 ;; esac
      if [ "$1" = --seconds ]; then seconds=$2; else jobs=$2; fi
      shift 2
      ;;
    -h | --help) sed -n '2,7s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) printf 'fuzz: there is no option %s\n' "$1" >&2; exit 2 ;;
    *) targets+=("$1"); shift ;;
  esac
done
if [ "${#targets[@]}" -eq 0 ]; then
  for source in tests/fuzz/*_fuzz.cpp; do
    source=${source##*/}
    targets+=("${source%_fuzz.cpp}")
  done
fi
for target in "${targets[@]}"; do
  [ -f "tests/fuzz/${target}_fuzz.cpp" ] || { printf 'fuzz: there is no target %s\n' "$target" >&2; exit 2; }
done

scripts/install_deps.sh --with clang libclang-rt-dev
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz --parallel "$jobs" --target "${targets[@]/%/_fuzz}"
tests/fuzz/make_corpus build/fuzz/seeds
mkdir -p build/fuzz/found build/fuzz/logs

run_target() {
  local target=$1 log=build/fuzz/logs/$1.txt
  mkdir -p "build/fuzz/corpus/$target"
  if "build/fuzz/${target}_fuzz" -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="build/fuzz/found/$target-" "build/fuzz/corpus/$target" "build/fuzz/seeds/$target" >"$log" 2>&1; then
    printf '%-12s %10s inputs\n' "$target" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")"
  else
    printf '%-12s FAILED; the input is in build/fuzz/found, the report in %s\n' "$target" "$log"
    grep -m 3 -E 'ERROR|SUMMARY|not so' "$log" || tail -n 3 "$log"
    return 1
  fi
}
export -f run_target
export seconds
printf '%s\n' "${targets[@]}" | xargs -P "$jobs" -I{} bash -c 'run_target {}'
