#!/usr/bin/env bash
# Puts Optuna into .deps/optuna for the one test that reads a sweep's store with it. Without a network or pip nothing happens: the test then
# checks the schema alone, and says so.
set -uo pipefail
cd "$(dirname "$0")/.."
[ -e .deps/optuna/optuna ] && exit 0
command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 || exit 0
mkdir -p .deps
partial=$(mktemp -d .deps/.optuna.XXXXXX)
trap 'rm -rf "$partial"' EXIT
PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 timeout 120 python3 -m pip install --quiet --retries 1 --timeout 10 \
  --target "$partial/site" 'optuna==5.*' >/dev/null 2>&1 || exit 0
[ -e .deps/optuna ] || mv "$partial/site" .deps/optuna
