#!/usr/bin/env bash
# Configures (once) and builds. usage: scripts/build.sh [PRESET] [TARGET...]       presets: release (default), debug, asan, cuda
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
if [ ! -e "build/$preset/build.ninja" ]; then
  cmake --preset "$preset"
fi
# A file that includes ATen takes up to 1.3 GB to compile.
jobs=$(nproc)
memory=$(awk '/MemAvailable/ { print int($2 / 1500000) }' /proc/meminfo)
if [ "$memory" -lt "$jobs" ]; then
  jobs=$((memory > 1 ? memory : 1))
fi
exec cmake --build "build/$preset" --parallel "$jobs" ${1:+--target "$@"}
