#!/usr/bin/env bash
# Runs all tests of a build and ends with ctest's closing line. usage: scripts/test.sh [PRESET] [ctest option...]
set -uo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
scripts/optuna.sh
scripts/taplo.sh
scripts/trackers.sh
scripts/tokenizers.sh
scripts/gguf.sh
scripts/slurm.sh
scripts/chromium.sh
scripts/transformers.sh
scripts/setup.sh shells || echo "test: Tab is not pressed in shells that are not there"
jobs=$(env -u OMP_NUM_THREADS nproc)  # nproc itself follows OMP_NUM_THREADS
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-1}  # tiny models: more threads only get in each other's way
log=build/$preset/tests.log
scripts/processor.sh
ctest --preset "$preset" --parallel "$jobs" "$@" 2>&1 | tee "$log"
status=${PIPESTATUS[0]}
# Last, so that whoever looks at the end of a log sees it: "100% tests passed, 0 tests failed out of 40".
grep -E '^[0-9]+% tests passed' "$log" || true
exit "$status"
