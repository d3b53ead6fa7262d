#!/usr/bin/env bash
# Builds everything and runs the tests, those of the GPU on Mesa's software device, which is installed with the other
# packages; says at the end how many passed, and which were skipped and why.
# Usage: scripts/test.sh [--quick] [--no-python] [--preset release|debug|asan-ubsan|tsan] [arguments for ctest, such as -R Spline]
#   --quick       only the tests labelled quick: about half a minute on two cores, once everything is built
#   --no-python   not those of the Python package (scripts/test_python.sh), which follow for all tests of the preset release
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

preset=release
chosen=()
python=yes
while true; do
  case "${1:-}" in
    --quick)
      chosen=(-L quick)
      python=no
      shift
      ;;
    --no-python)
      python=no
      shift
      ;;
    --preset)
      preset=${2:?--preset needs a name}
      shift 2
      ;;
    *) break ;;
  esac
done

scripts/install_deps.sh

if [ -z "${GRADLOOM_DATA:-}" ] && [ -d ../shared/data ]; then
  GRADLOOM_DATA=$(cd ../shared/data && pwd)
  export GRADLOOM_DATA
  echo "GRADLOOM_DATA is not set; using ../shared/data, which is there"
fi

scripts/build.sh "$preset"

results="$root/build/$preset/test-results.xml"
rm -f "$results"
status=0
ctest --preset "$preset" --no-tests=error --output-junit "$results" -j"$(nproc)" "${chosen[@]}" "$@" || status=$?
[ ! -f "$results" ] || scripts/summarise_tests "$results"
if [ "$status" -eq 0 ] && [ "$python" = yes ] && [ "$preset" = release ] && [ $# -eq 0 ]; then
  scripts/test_python.sh
fi
exit "$status"
