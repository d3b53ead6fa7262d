#!/usr/bin/env bash
# Installs the Debian 12 packages that gradloom is built and tested with; only those that are missing.
# Usage: scripts/install_deps.sh [--build | --with PACKAGE ...]          Root or sudo is needed only when something is missing.
#   --build     only what building needs
#   --with      packages that only some scripts need, such as clang for scripts/fuzz.sh
set -euo pipefail

build=(
  g++ cmake ninja-build ccache pkg-config git python3 libhwy-dev libeigen3-dev
  libcli11-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev libxxhash-dev
  libpng-dev zlib1g-dev libmuparser-dev libpugixml-dev libcadical-dev
  libgtest-dev libgmock-dev libvulkan-dev glslc
)
tests=(
  python3-numpy python3-venv python3-sklearn python3-pandas python3-networkx python3-matplotlib python3-pytest python3-nbclient python3-ipykernel
  clang clang-format libclang-rt-dev iverilog yosys libopenmpi-dev openmpi-bin mesa-vulkan-drivers vulkan-validationlayers
)
packages=("${build[@]}" "${tests[@]}")

stop() {
  printf 'install_deps: %s\n' "$1" >&2
  exit 1
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  stop "this is not Debian (no apt). Install the counterparts of these packages by hand: ${packages[*]}"
fi

if [ "${1:-}" = --with ]; then
  packages+=("${@:2}")
elif [ "${1:-}" = --build ]; then
  packages=("${build[@]}")
elif [ $# -gt 0 ]; then
  stop "unknown argument $1"
fi

installed=$(dpkg-query --show --showformat='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
missing=()
for package in "${packages[@]}"; do
  grep -qxF "$package installed" <<<"$installed" || missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || stop "neither root nor sudo. As root: apt-get install ${missing[*]}"
  as_root=(sudo)
fi

printf 'Installing %d packages: %s\n' "${#missing[@]}" "${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! "${as_root[@]}" apt-get update >"$log" 2>&1; then
  tail -n 5 "$log" >&2
  stop "apt-get update failed; is there a network?"
fi
if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
  tail -n 15 "$log" >&2
  stop "apt-get could not install ${missing[*]}"
fi
