#!/usr/bin/env bash
# Configures (once) and builds, after saying how long that will take. usage: scripts/build.sh [PRESET] [TARGET...]
# Presets: release (default), debug, asan, cuda. The target kf-host is what runs jobs, without the tests.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
if [ ! -e "build/$preset/build.ninja" ]; then
  cmake --preset "$preset"
fi
# A file that includes ATen takes up to 1.3 GB to compile.
jobs=$(env -u OMP_NUM_THREADS nproc)  # nproc itself follows OMP_NUM_THREADS
memory=$(awk '/MemAvailable/ { print int($2 / 1500000) }' /proc/meminfo)
if [ "$memory" -lt "$jobs" ]; then
  jobs=$((memory > 1 ? memory : 1))
fi

# Steps that are still to be done, and what a compilation takes of a core: 2 to 5 seconds on machines of 2020 to 2025.
files=$(ninja -C "build/$preset" -n "$@" 2>/dev/null | grep -c ' Building ' || true)
if [ "$files" -gt 20 ]; then
  minutes() { awk -v files="$files" -v jobs="$jobs" -v seconds="$1" 'BEGIN { m = files * seconds / jobs / 60; print m < 1 ? 1 : int(m + 0.5) }'; }
  cached=""
  if command -v ccache >/dev/null 2>&1; then
    cached="; what ccache still has takes no time"
  fi
  printf 'build: %s files on %s of %s cores, about %s to %s minutes%s\n' "$files" "$jobs" "$(nproc)" "$(minutes 2)" "$(minutes 5)" "$cached"
fi
exec cmake --build "build/$preset" --parallel "$jobs" ${1:+--target "$@"}
