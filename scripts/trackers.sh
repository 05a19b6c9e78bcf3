#!/usr/bin/env bash
# Puts tensorboard, wandb, mlflow-skinny and prometheus_client into .deps/trackers for the tests that read with them what a run has written
# (about 300 MB). wandb is the last version that has a reader in Python. Without a network or pip nothing happens: the tests say that they
# leave the comparison out.
set -uo pipefail
cd "$(dirname "$0")/.."
oracle=.deps/trackers
[ -e "$oracle" ] && exit 0
command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 || exit 0
mkdir -p .deps
partial=$(mktemp -d .deps/.trackers.XXXXXX)
trap 'rm -rf "$partial"' EXIT
PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 timeout 600 python3 -m pip install --quiet --retries 1 --timeout 20 \
  --target "$partial/site" 'tensorboard==2.*' 'wandb==0.23.*' 'mlflow-skinny==3.*' 'prometheus_client==0.*' >/dev/null 2>&1 || exit 0
[ -e "$oracle" ] || mv "$partial/site" "$oracle"
