#!/usr/bin/env bash
# Builds and runs the speed comparisons, or one part of them. usage: scripts/bench.sh [PRESET [PART ...]]
# Steps and saves are compared with PyTorch from PyPI (1.6 GB, fetched once), tokenizers with tiktoken and tokenizers; without a network the
# bench says that they are left out.
set -euo pipefail
cd "$(dirname "$0")/.."
preset=${1:-release}
shift || true
scripts/build.sh "$preset" bench >/dev/null
scripts/transformers.sh
scripts/tokenizers.sh
exec "build/$preset/tests/bench" "$@"
