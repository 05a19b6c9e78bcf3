#!/usr/bin/env bash
# Builds and runs the speed comparisons. usage: scripts/bench.sh [PRESET]
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
scripts/build.sh "$preset" bench >/dev/null
exec "build/$preset/tests/bench"
