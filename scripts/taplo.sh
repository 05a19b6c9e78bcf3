#!/usr/bin/env bash
# Puts Taplo, the TOML tool behind many editors, into .deps/taplo for the one test that has it check jobs against the schema. Without a network
# or pip nothing happens: the test then says so.
set -uo pipefail
cd "$(dirname "$0")/.."
[ -e .deps/taplo/bin/taplo ] && exit 0
command -v python3 >/dev/null && python3 -m pip --version >/dev/null 2>&1 || exit 0
mkdir -p .deps
partial=$(mktemp -d .deps/.taplo.XXXXXX)
trap 'rm -rf "$partial"' EXIT
PIP_ROOT_USER_ACTION=ignore PIP_DISABLE_PIP_VERSION_CHECK=1 timeout 120 python3 -m pip install --quiet --retries 1 --timeout 10 --no-deps \
  --target "$partial/site" 'taplo==0.9.*' >/dev/null 2>&1 || exit 0
[ -e .deps/taplo ] || mv "$partial/site" .deps/taplo
